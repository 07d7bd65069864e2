"""Quarantine: authentic content that was not applied. Only a person's decision lets it out."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from hookbox.errors import OperatorError
from hookbox.model import Delivery, Via
from hookbox.store import jobs
from hookbox.store.connections import Row, Transaction
from hookbox.store.numbering import NEXT_ID
from hookbox.store.proposals import DeliveryRow

ENTRY = """
SELECT q.id, s.name AS source, q.key, q.digest, q.reason, q.raw_kind, q.event_id, q.resolved_at
FROM quarantine_entry AS q
JOIN source AS s ON s.id = q.source_id
WHERE q.id = :id
"""
INSERT = """
INSERT INTO quarantine_entry
  (id, source_id, key, digest, reason, delivery_id, raw_kind, slice_start, slice_length, content,
   received_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (source_id, key, digest, reason)
DO UPDATE SET repeats = repeats + 1, last_repeat_at = excluded.received_at
"""
NEW = "SELECT id FROM quarantine_entry WHERE id >= :first"
DELIVERY = """
SELECT d.id, d.source_id, s.name AS source, d.received_at, d.signed_at, d.via, d.verified_by,
  d.remote, d.headers, d.is_text, d.body
FROM quarantine_entry AS q
JOIN delivery AS d ON d.id = q.delivery_id
JOIN source AS s ON s.id = d.source_id
WHERE q.id = :id
"""
SET_ASIDE = f"""
INSERT INTO quarantine_entry
  (id, source_id, key, digest, reason, delivery_id, event_id, raw_kind, slice_start, slice_length,
   content, received_at)
SELECT {NEXT_ID.format(table="quarantine_entry")},
  e.source_id, e.key, e.digest, :reason, e.delivery_id, e.id, e.raw_kind, e.slice_start,
  e.slice_length, e.content, d.received_at
FROM event AS e JOIN delivery AS d ON d.id = e.delivery_id
WHERE e.id = :event_id
ON CONFLICT (source_id, key, digest, reason) DO UPDATE
SET repeats = repeats + 1, last_repeat_at = :now, resolved_at = NULL, resolution = NULL
"""
MARK_QUARANTINED = "UPDATE event SET state = 'quarantined' WHERE id = :event_id"
MARK_PENDING = "UPDATE event SET state = 'pending' WHERE id = :event_id"
RESOLVE = """
UPDATE quarantine_entry SET resolved_at = :now, resolution = :resolution
WHERE id = :id AND resolved_at IS NULL
"""
ACCEPT_AS_EVENT = f"""
INSERT INTO event
  (id, source_id, key, digest, delivery_id, raw_kind, slice_start, slice_length, synthesised,
   content)
SELECT {NEXT_ID.format(table="event")},
  source_id, :key, digest, delivery_id, :raw_kind, slice_start, slice_length, 1, content
FROM quarantine_entry WHERE id = :id
ON CONFLICT (source_id, key) DO NOTHING
RETURNING id
"""

# The raw kind of an event that a person accepted although it cannot be read.
ACCEPTED_UNREAD = "quarantine.accepted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Aside:
    """Content on its way here, with the id it has if the same is not here already. Its bytes are
    its own `content`, else the slice of its delivery's body, else that whole body.
    """

    id: int
    source_id: int
    key: str
    digest: bytes
    reason: str
    delivery_id: int
    received_at: int
    raw_kind: str = ""
    slice_start: int | None = None
    slice_length: int | None = None
    content: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One thing set aside. `event_id` is set when it is an event that was stored and could not be
    applied.
    """

    id: int
    source: str
    key: str
    reason: str
    raw_kind: str
    event_id: int | None
    resolved: bool


def insert(transaction: Transaction, asides: Sequence[Aside]) -> set[int]:
    """Set these aside; the ids of those that were not here before. The others are counted."""
    if not asides:
        return set()
    transaction.executemany(
        INSERT,
        [
            (a.id, a.source_id, a.key, a.digest, a.reason, a.delivery_id, a.raw_kind,
             a.slice_start, a.slice_length, a.content, a.received_at)
            for a in asides
        ],
    )  # fmt: skip
    first = min(aside.id for aside in asides)
    return {row[0] for row in transaction.execute(NEW, {"first": first})}


def entry(transaction: Transaction, entry_id: int) -> Entry:
    """Raises OperatorError when there is no such entry."""
    row = transaction.execute(ENTRY, {"id": entry_id}).fetchone()
    if row is None:
        raise OperatorError(f"no quarantine entry {entry_id}; see: hookbox quarantine list")
    return _entry(row)


def _entry(row: Row) -> Entry:
    return Entry(
        id=row["id"],
        source=row["source"],
        key=row["key"],
        reason=row["reason"],
        raw_kind=row["raw_kind"],
        event_id=row["event_id"],
        resolved=row["resolved_at"] is not None,
    )


def delivery(transaction: Transaction, entry_id: int) -> tuple[Delivery, DeliveryRow]:
    """The delivery that an entry came with, and its row.

    Raises OperatorError when retention took its body.
    """
    row = transaction.execute(DELIVERY, {"id": entry_id}).fetchone()
    if row["body"] is None:
        raise OperatorError(f"the content of quarantine entry {entry_id} is no longer kept")
    kept = json.loads(row["headers"])
    headers = tuple((name.encode("latin-1"), text.encode("latin-1")) for name, text in kept.items())
    came = Delivery(
        source=row["source"],
        headers=headers,
        body=row["body"],
        received_at=row["received_at"],
        remote=row["remote"],
        via=Via(row["via"]),
    )
    stored = DeliveryRow(
        id=row["id"],
        source_id=row["source_id"],
        received_at=row["received_at"],
        signed_at=row["signed_at"],
        via=came.via,
        verified_by=row["verified_by"],
        remote=came.remote,
        headers=row["headers"],
        is_text=bool(row["is_text"]),
        body=came.body,
    )
    return came, stored


def set_aside(transaction: Transaction, event_id: int, reason: str, now: int) -> None:
    """A stored event that cannot be applied leaves the queue and becomes visible here."""
    transaction.execute(SET_ASIDE, {"event_id": event_id, "reason": reason, "now": now})
    transaction.execute(MARK_QUARANTINED, {"event_id": event_id})


def accept(transaction: Transaction, entry_id: int, now: int) -> int:
    """Let the entry through: a stored event is applied again; anything else becomes an event of its
    own.

    Content whose key is taken gets the key with `~` and the first 8 digits of its digest. Returns
    the event's id. Raises OperatorError when the entry is not there or resolved already.
    """
    found = _open(transaction, entry_id)
    if found.event_id is not None:
        event_id = found.event_id
        transaction.execute(MARK_PENDING, {"event_id": event_id})
    else:
        event_id = _accept_as_event(transaction, found)
    jobs.replay(transaction, event_id, jobs.APPLY, now)
    resolve(transaction, entry_id, f"accepted as event {event_id}", now)
    return event_id


def _accept_as_event(transaction: Transaction, found: Entry) -> int:
    row = transaction.execute(ENTRY, {"id": found.id}).fetchone()
    key = f"{found.key or 'quarantine'}~{row['digest'].hex()[:8]}"
    place = {"id": found.id, "key": key, "raw_kind": found.raw_kind or ACCEPTED_UNREAD}
    made = transaction.execute(ACCEPT_AS_EVENT, place).fetchone()
    if made is None:
        raise OperatorError(
            f"quarantine entry {found.id}: its content is an event already, under the key {key}"
        )
    return int(made["id"])


def discard(transaction: Transaction, entry_id: int, reason: str, now: int) -> None:
    """Close the entry without effect. The content stays readable until retention takes it."""
    _open(transaction, entry_id)
    resolve(transaction, entry_id, f"discarded: {reason}", now)


def _open(transaction: Transaction, entry_id: int) -> Entry:
    found = entry(transaction, entry_id)
    if found.resolved:
        raise OperatorError(
            f"quarantine entry {entry_id} is resolved already; "
            f"see: hookbox quarantine show {entry_id}"
        )
    return found


def resolve(transaction: Transaction, entry_id: int, resolution: str, now: int) -> None:
    """Close the entry."""
    transaction.execute(RESOLVE, {"id": entry_id, "resolution": resolution, "now": now})
