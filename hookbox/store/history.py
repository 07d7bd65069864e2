"""The history of the ledger, read back in its one order: events as first applied, and decisions.

What has no event to read any more (retention took it, or its source is no longer configured) is
carried over as it stands: a fact whose origin is forgotten is still a fact.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from hookbox.model import StoredEvent
from hookbox.rules.suppression import Cause, Suppression
from hookbox.store import notifications
from hookbox.store.connections import Row, Transaction
from hookbox.store.decisions import Verb
from hookbox.store.ratchet import Ratchet

# `+source_id`: in the order of places, not of sources.
EVENTS = """
SELECT place, id FROM event
WHERE place > :after AND +source_id IN (SELECT value FROM json_each(:sources))
ORDER BY place LIMIT :limit
"""
DECISIONS = """
SELECT id, verb, address, scope, event_id FROM decision WHERE id > :after ORDER BY id LIMIT :limit
"""
WORD_GIVEN = """
SELECT p.address, p.scope, p.shown, c.reason, c.since
FROM suppression_cause AS c JOIN suppression AS p ON p.id = c.suppression_id
WHERE c.decision_id = :decision_id
"""
LIFTED = """
SELECT address, scope, shown, reason, since, event_id, source_id, lift_id
FROM suppression WHERE address = :address AND scope = :scope AND lift_id = :lift_id
"""
LIFTED_CAUSES = """
SELECT c.reason, c.since, c.event_id, c.source_id, c.decision_id
FROM suppression_cause AS c JOIN suppression AS p ON p.id = c.suppression_id
WHERE p.address = :address AND p.scope = :scope AND p.lift_id = :lift_id
"""
DECISION = "SELECT id, verb, at, who, reason, address, scope, event_id FROM decision WHERE id = ?"
COPY_DECISION = """
INSERT INTO decision (id, verb, at, who, reason, address, scope, event_id)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
DROP_OPEN_CAUSES = """
DELETE FROM suppression_cause WHERE suppression_id IN (
  SELECT id FROM suppression WHERE address = :address AND scope = :scope AND lift_id IS NULL
)
"""
DROP_OPEN = """
DELETE FROM suppression WHERE address = :address AND scope = :scope AND lift_id IS NULL
"""
COPY_LIFTED = """
INSERT INTO suppression (address, scope, shown, reason, since, event_id, source_id, lift_id)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
RETURNING id
"""
COPY_LIFTED_CAUSE = """
INSERT INTO suppression_cause
  (suppression_id, reason, since, event_id, source_id, decision_id)
VALUES (?, ?, ?, ?, ?, ?)
"""
STUB = """
INSERT INTO event (id, source_id, key, digest, delivery_id, raw_kind, synthesised)
VALUES (?, ?, ?, zeroblob(32), 0, '', 0)
"""
STATUSES = """
SELECT
  t.source_id, t.message_id, t.recipient, t.shown, t.rank, t.kind, t.bounce_class, t.status_at,
  t.event_id, t.settled, NOT EXISTS (SELECT 1 FROM event WHERE id = t.event_id) AS gone
FROM status AS t
WHERE (t.source_id, t.message_id, t.recipient) > (:source_id, :message_id, :recipient)
ORDER BY t.source_id, t.message_id, t.recipient LIMIT :limit
"""
COPY_STATUS = """
INSERT INTO status
  (source_id, message_id, recipient, shown, rank, kind, bounce_class, status_at, event_id)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
CAUSES = """
SELECT
  p.address, p.scope, p.shown, c.reason, c.since, c.event_id, c.source_id,
  NOT EXISTS (SELECT 1 FROM event WHERE id = c.event_id) AS gone
FROM suppression AS p JOIN suppression_cause AS c ON c.suppression_id = p.id
WHERE p.lift_id IS NULL AND c.event_id IS NOT NULL AND p.id > :after AND p.id <= :after + :limit
ORDER BY p.id
"""
LAST_SUPPRESSION = "SELECT coalesce(max(id), 0) FROM suppression"

PAGE = 5_000  # rows a read: one left open would keep the server from folding the WAL


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of the history: an event that was applied, or (with a verb) a decision."""

    place: int
    event_id: int | None = None
    verb: Verb | None = None
    address: str | None = None
    scope: str | None = None


def steps(live: Transaction, after: int, source_ids: Collection[int], limit: int) -> Sequence[Step]:
    """What happened next: decisions, and events of these sources."""
    asked = {"after": after, "sources": json.dumps(list(source_ids)), "limit": limit}
    found = [Step(place=row["place"], event_id=row["id"]) for row in live.execute(EVENTS, asked)]
    found += [
        Step(
            place=row["id"],
            event_id=row["event_id"],
            verb=Verb(row["verb"]),
            address=row["address"],
            scope=row["scope"],
        )
        for row in live.execute(DECISIONS, asked)
    ]
    return sorted(found, key=lambda step: step.place)[:limit]


def decide_again(live: Transaction, fresh: Transaction, step: Step) -> set[str]:
    """Let a decision have its effect on the fresh ledger; the folded addresses it is about."""
    if step.verb in (Verb.ADD, Verb.IMPORT):
        return _suppress_again(live, fresh, step.place)
    if step.verb is Verb.LIFT:
        return _lift_again(live, fresh, step)
    if step.verb is Verb.FORGET and step.event_id is not None:
        notifications.disclaim(fresh, step.event_id)
    return set()


def _suppress_again(live: Transaction, fresh: Transaction, decision_id: int) -> set[str]:
    rows = live.execute(WORD_GIVEN, {"decision_id": decision_id}).fetchall()
    ratchet = Ratchet(fresh, [row["address"] for row in rows])
    for row in rows:
        new = Suppression(cause=Cause(row["reason"]), at=row["since"])
        ratchet.count(row["shown"], row["scope"], new, decision_id=decision_id)
    ratchet.save()
    return {row["address"] for row in rows}


def _lift_again(live: Transaction, fresh: Transaction, step: Step) -> set[str]:
    """What a person lifted is closed for good, so it is copied as it is, with its causes."""
    assert step.address is not None, "a lift is about an address"
    place = {"address": step.address, "scope": step.scope}
    fresh.execute(DROP_OPEN_CAUSES, place)
    fresh.execute(DROP_OPEN, place)
    fresh.execute(COPY_DECISION, tuple(live.execute(DECISION, (step.place,)).fetchone()))
    asked = {**place, "lift_id": step.place}
    for row in live.execute(LIFTED, asked).fetchall():
        (row_id,) = fresh.execute(COPY_LIFTED, tuple(row)).fetchone()
        causes = live.execute(LIFTED_CAUSES, asked).fetchall()
        fresh.executemany(COPY_LIFTED_CAUSE, [(row_id, *tuple(cause)) for cause in causes])
    return {step.address}


def stub(fresh: Transaction, events: Iterable[StoredEvent]) -> None:
    """Rows that stand for these events in the fresh ledger."""
    fresh.executemany(STUB, [(event.id, event.source_id, str(event.id)) for event in events])


def statuses(ledger: Transaction) -> Iterator[Row]:
    """Every status in the order of its key; `gone` says that its event is no longer there."""
    place: dict[str, object] = {"source_id": -1, "message_id": "", "recipient": ""}
    while rows := ledger.execute(STATUSES, {**place, "limit": PAGE}).fetchall():
        yield from rows
        place = {name: rows[-1][name] for name in place}


def carry_statuses(live: Transaction, fresh: Transaction, source_ids: Collection[int]) -> None:
    """Begin with the statuses that no event can tell again, and with how far events that are gone
    had brought the others.
    """
    fresh.executemany(COPY_STATUS, _carried(live, source_ids))


def _carried(live: Transaction, source_ids: Collection[int]) -> Iterator[tuple[object, ...]]:
    for row in statuses(live):
        key = (row["source_id"], row["message_id"], row["recipient"], row["shown"])
        if row["gone"] or row["source_id"] not in source_ids:
            told = (row["rank"], row["kind"], row["bounce_class"], row["status_at"])
            yield (*key, *told, row["event_id"])
        elif row["settled"] is not None:
            yield (*key, *json.loads(row["settled"]))


def carry_causes(
    live: Transaction, fresh: Transaction, source_ids: Collection[int], counted_from: int
) -> None:
    """End with the causes that no event can tell again. `counted_from`: what was suppressed before
    then by the number of soft bounces stands, since those that counted are not all there.
    """
    (last,) = live.execute(LAST_SUPPRESSION).fetchone()
    for after in range(0, last, PAGE):
        rows = [
            row
            for row in live.execute(CAUSES, {"after": after, "limit": PAGE})
            if row["gone"]
            or row["source_id"] not in source_ids
            or (row["reason"] == Cause.TRANSIENT_BUDGET and row["since"] <= counted_from)
        ]
        ratchet = Ratchet(fresh, [row["address"] for row in rows])
        for row in rows:
            new = Suppression(
                cause=Cause(row["reason"]),
                at=row["since"],
                event_id=row["event_id"],
                source_id=row["source_id"],
            )
            ratchet.count(row["shown"], row["scope"], new)
        ratchet.save()
