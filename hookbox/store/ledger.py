"""The ledger: events read for the work on them, and what the work found out about recipients."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hookbox.model import Notification, StoredEvent, Via
from hookbox.store.connections import Row, Transaction

EVENTS_BY_ID = """
SELECT
  e.id, s.name AS source, e.key, e.raw_kind, d.headers, d.received_at, d.signed_at, d.via,
  coalesce(e.content, substr(d.body, e.slice_start + 1, e.slice_length), d.body) AS content
FROM event AS e
JOIN delivery AS d ON d.id = e.delivery_id
JOIN source AS s ON s.id = e.source_id
WHERE e.id IN (SELECT value FROM json_each(:ids))
"""
INSERT_NOTIFICATIONS = """
INSERT INTO notification
  (event_id, source_id, message_id, recipient, kind, bounce_class, reject_reason, occurred_at,
   time_source, ambiguous)
SELECT id, source_id, ?, ?, ?, ?, ?, ?, ?, ? FROM event WHERE id = ?
"""
FORGET_NOTIFICATIONS = (
    "DELETE FROM notification WHERE event_id IN (SELECT value FROM json_each(:ids))"
)
MARK_APPLIED = """
UPDATE event SET state = 'applied', kind = ?, recipient = ?, message_id = ?, occurred_at = ?
WHERE id = ?
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """One event and what it says; at least one notification, each with its time settled."""

    event_id: int
    notifications: tuple[Notification, ...]


def events(transaction: Transaction, ids: Iterable[int]) -> list[StoredEvent]:
    """The events with these ids, in no particular order. An event whose content retention took has
    empty content.
    """
    rows = transaction.execute(EVENTS_BY_ID, {"ids": json.dumps(list(ids))}).fetchall()
    return [_stored_event(row) for row in rows]


def _stored_event(row: Row) -> StoredEvent:
    headers: Mapping[str, str] = json.loads(row["headers"])
    return StoredEvent(
        id=row["id"],
        source=row["source"],
        key=row["key"],
        raw_kind=row["raw_kind"],
        content=row["content"] or b"",
        headers=headers,
        received_at=row["received_at"],
        signed_at=row["signed_at"],
        via=Via(row["via"]),
    )


def append(transaction: Transaction, applied: Sequence[Applied]) -> None:
    """Record what the events say and mark them applied. Doing it again for an event replaces what
    it said before.
    """
    ids = json.dumps([entry.event_id for entry in applied])
    transaction.execute(FORGET_NOTIFICATIONS, {"ids": ids})
    transaction.executemany(
        INSERT_NOTIFICATIONS,
        [
            (
                n.message_id,
                n.recipient,
                n.kind,
                n.bounce_class,
                n.reject_reason,
                n.occurred_at,
                n.time_source,
                n.ambiguous,
                entry.event_id,
            )
            for entry in applied
            for n in entry.notifications
        ],
    )
    transaction.executemany(MARK_APPLIED, [_summary(entry) for entry in applied])


def _summary(entry: Applied) -> tuple[str, str | None, str | None, int | None, int]:
    """What the `events` view shows of an event: its recipients joined, everything else from the
    first notification.
    """
    first = entry.notifications[0]
    named = dict.fromkeys(n.recipient for n in entry.notifications if n.recipient is not None)
    recipients = ", ".join(named) or None
    return first.kind, recipients, first.message_id, first.occurred_at, entry.event_id
