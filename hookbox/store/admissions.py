"""Admissions: what arrived becomes rows, and the unique index decides what is new.

Everything is set-based. Ids are given out here, rising, so that "new in this batch" is simply `id
>= first`, the outbox is one INSERT … SELECT, and only a short row count makes it look for what was
known already.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from hookbox.model import Admission, SplitEvent
from hookbox.store import quarantine, tokens
from hookbox.store.connections import Row, Transaction
from hookbox.store.numbering import NEXT_ID
from hookbox.store.proposals import Proposal
from hookbox.store.quarantine import Aside

CONFLICT = "payload_digest_conflict"

NEXT_IDS = f"""
SELECT
  {NEXT_ID.format(table="delivery")},
  {NEXT_ID.format(table="event")},
  {NEXT_ID.format(table="quarantine_entry")}
"""
INSERT_EVENTS = """
INSERT INTO event
  (id, source_id, key, digest, delivery_id, raw_kind, slice_start, slice_length, synthesised,
   content)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (source_id, key) DO NOTHING
"""
NEW_EVENTS = "SELECT id FROM event WHERE id >= :first"
# Joined by key, never by position: the rows come back in any order.
KNOWN_EVENTS = """
SELECT wanted.key AS position, event.id, event.digest
FROM json_each(:wanted) AS wanted
CROSS JOIN event
  ON event.source_id = json_extract(wanted.value, '$[0]')
  AND event.key = json_extract(wanted.value, '$[1]')
"""
COUNT_DUPLICATES = """
UPDATE event SET duplicates = duplicates + 1, last_duplicate_at = ? WHERE id = ?
"""
INSERT_DELIVERIES = """
INSERT INTO delivery
  (id, source_id, received_at, signed_at, via, verified_by, remote, headers, is_text, body)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO NOTHING
"""
INSERT_JOB = """
INSERT INTO job (event_id, target, run_at) SELECT id, ?, ? FROM event WHERE id = ?
"""
INSERT_APPLY_JOBS = """
INSERT INTO job (event_id, target, run_at)
SELECT id, 'apply', :now FROM event WHERE id >= :first
"""


@dataclass(slots=True)
class Ids:
    """The next free ids. They only rise: the chunks of one delivery carry its id from batch to
    batch, stored or not, so nobody else may ever be given it.
    """

    delivery: int = 0
    event: int = 0
    quarantine: int = 0

    def refresh(self, transaction: Transaction) -> None:
        """Step over rows that came another way: accepted by a person, set aside by the worker."""
        delivery, event, quarantine = transaction.execute(NEXT_IDS).fetchone()
        self.delivery = max(self.delivery, delivery)
        self.event = max(self.event, event)
        self.quarantine = max(self.quarantine, quarantine)


@dataclass(slots=True)
class _Offer:
    """One event of one proposal, with the id it has if it turns out to be new."""

    id: int
    proposal: int
    event: SplitEvent


@dataclass(slots=True)
class _Tally:
    new: int = 0
    duplicate: int = 0
    conflicting: int = 0
    quarantined: int = 0
    token_reused: bool = False
    kept: bool = False  # something of it was stored, so its delivery must be

    def admission(self) -> Admission:
        return Admission(
            new=self.new,
            duplicate=self.duplicate,
            conflicting=self.conflicting,
            quarantined=self.quarantined,
            token_reused=self.token_reused,
        )


@dataclass(slots=True)
class _Batch:
    """The state of one call of `admit`."""

    proposals: Sequence[Proposal]
    now: int
    offers: list[_Offer] = field(default_factory=list)
    asides: list[tuple[int, Aside]] = field(default_factory=list)
    tallies: list[_Tally] = field(default_factory=list)


def admit(
    transaction: Transaction, proposals: Sequence[Proposal], ids: Ids, now: int
) -> list[Admission]:
    """Store the proposals; one Admission each, in their order.

    Deliveries, events, conflicts and `apply` jobs go in together or not at all. An event known with
    the same digest is a duplicate; with another digest a conflict, kept in quarantine once however
    often it comes.
    """
    batch = _Batch(proposals=proposals, now=now)
    batch.tallies = [_Tally() for _ in proposals]
    ids.refresh(transaction)
    first_event = ids.event
    reused = tokens.bind(transaction, proposals, now)
    for position, proposal in enumerate(proposals):
        if position in reused:
            batch.tallies[position].token_reused = True
            continue
        if not proposal.delivery.id:
            proposal.delivery.id = ids.delivery
            ids.delivery += 1
        _offer(batch, position, proposal, ids)
    _insert_events(transaction, batch, ids, first_event)
    _insert_quarantine(transaction, batch)
    _insert_deliveries(transaction, batch)
    transaction.execute(INSERT_APPLY_JOBS, {"now": now, "first": first_event})
    _insert_other_jobs(transaction, batch)
    return [tally.admission() for tally in batch.tallies]


def _offer(batch: _Batch, position: int, proposal: Proposal, ids: Ids) -> None:
    for event in proposal.events:
        batch.offers.append(_Offer(ids.event, position, event))
        ids.event += 1
    for piece in proposal.rotten:
        digest = hashlib.sha256(piece.content).digest()
        aside = _aside(proposal, ids, piece.reason, piece.key, digest, content=piece.content)
        batch.asides.append((position, aside))
        batch.tallies[position].quarantined += 1


def _aside(
    proposal: Proposal, ids: Ids, reason: str, key: str, digest: bytes, **content: object
) -> Aside:
    delivery = proposal.delivery
    ids.quarantine += 1
    return Aside(
        id=ids.quarantine - 1,
        source_id=delivery.source_id,
        key=key,
        digest=digest,
        reason=reason,
        delivery_id=delivery.id,
        received_at=delivery.received_at,
        **content,  # type: ignore[arg-type]  # the fields of Aside that say where the bytes are
    )


def _insert_events(transaction: Transaction, batch: _Batch, ids: Ids, first: int) -> None:
    if not batch.offers:
        return
    rows = []
    for offer in batch.offers:
        delivery, event = batch.proposals[offer.proposal].delivery, offer.event
        start, length = _slice(event)
        rows.append(
            (
                offer.id,
                delivery.source_id,
                event.key,
                event.digest,
                delivery.id,
                event.raw_kind,
                start,
                length,
                event.synthesised,
                event.content,
            )
        )
    inserted = transaction.executemany(INSERT_EVENTS, rows).rowcount
    if inserted == len(rows):
        for offer in batch.offers:
            tally = batch.tallies[offer.proposal]
            tally.new += 1
            tally.kept = True
        return
    _sort_out_known(transaction, batch, ids, first)


def _slice(event: SplitEvent) -> tuple[int | None, int | None]:
    """The place of the content in the body; (None, None) when it is all of it, or stored apart."""
    if event.content is not None or (event.end is None and event.start == 0):
        return None, None
    assert event.end is not None, "a slice has an end"
    return event.start, event.end - event.start


def _sort_out_known(transaction: Transaction, batch: _Batch, ids: Ids, first: int) -> None:
    """Some events were known: tell the new from the duplicates and the conflicts."""
    fresh = {row[0] for row in transaction.execute(NEW_EVENTS, {"first": first})}
    known: list[_Offer] = []
    for offer in batch.offers:
        if offer.id in fresh:
            tally = batch.tallies[offer.proposal]
            tally.new += 1
            tally.kept = True
        else:
            known.append(offer)
    stored = _stored(transaction, batch, known)
    repeats: list[tuple[int, int]] = []
    for position, offer in enumerate(known):
        row = stored[position]
        tally = batch.tallies[offer.proposal]
        if row["digest"] == offer.event.digest:
            tally.duplicate += 1
            repeats.append((batch.now, row["id"]))
        else:
            tally.conflicting += 1
            batch.asides.append((offer.proposal, _conflict(batch, ids, offer)))
    transaction.executemany(COUNT_DUPLICATES, repeats)


def _stored(transaction: Transaction, batch: _Batch, known: Sequence[_Offer]) -> dict[int, Row]:
    wanted = [[batch.proposals[o.proposal].delivery.source_id, o.event.key] for o in known]
    rows = transaction.execute(KNOWN_EVENTS, {"wanted": json.dumps(wanted)})
    return {row["position"]: row for row in rows}


def _conflict(batch: _Batch, ids: Ids, offer: _Offer) -> Aside:
    event = offer.event
    start, length = _slice(event)
    return _aside(
        batch.proposals[offer.proposal],
        ids,
        CONFLICT,
        event.key,
        event.digest,
        raw_kind=event.raw_kind,
        slice_start=start,
        slice_length=length,
        content=event.content,
    )


def _insert_other_jobs(transaction: Transaction, batch: _Batch) -> None:
    """What few events ask for besides being applied. An id that went unused selects no row."""
    rows = [(job, batch.now, o.id) for o in batch.offers for job in o.event.jobs]
    if rows:
        transaction.executemany(INSERT_JOB, rows)


def _insert_quarantine(transaction: Transaction, batch: _Batch) -> None:
    fresh = quarantine.insert(transaction, [aside for _, aside in batch.asides])
    for position, aside in batch.asides:
        if aside.id in fresh:
            batch.tallies[position].kept = True


def _insert_deliveries(transaction: Transaction, batch: _Batch) -> None:
    rows = [
        (
            d.id,
            d.source_id,
            d.received_at,
            d.signed_at,
            d.via,
            d.verified_by,
            d.remote,
            d.headers,
            d.is_text,
            d.body,
        )
        for d, tally in zip((p.delivery for p in batch.proposals), batch.tallies, strict=True)
        if tally.kept
    ]
    transaction.executemany(INSERT_DELIVERIES, rows)
