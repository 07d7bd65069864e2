"""Early: verified webhooks of sources that are taken in the order of their event list.

They are on disk, acknowledged, and no events yet. When the list brings an event, what waited under
its key is admitted behind it: as the repeat that it is, or as a conflict when it says something
else. What the list never brings is admitted by itself in the end.
"""

import json
from collections.abc import Collection, Iterable, Sequence

from hookbox.model import SplitEvent, Via
from hookbox.store.connections import Row, Transaction
from hookbox.store.proposals import DeliveryRow, Proposal

KNOWN = """
SELECT e.key FROM json_each(:keys) AS wanted
CROSS JOIN event AS e ON e.source_id = :source_id AND e.key = wanted.value
"""
KEEP = """
INSERT INTO early
  (source_id, key, digest, raw_kind, received_at, signed_at, via, verified_by, remote, headers,
   is_text, body, content)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (source_id, key, digest) DO NOTHING
"""
COLUMNS = """
SELECT w.id, w.source_id, w.key, w.digest, w.raw_kind, w.received_at, w.signed_at, w.via,
  w.verified_by, w.remote, w.headers, w.is_text, w.body, w.content
"""
UNDER_KEYS = f"""
{COLUMNS} FROM json_each(:keys) AS wanted
CROSS JOIN early AS w ON w.source_id = :source_id AND w.key = wanted.value ORDER BY w.id
"""
OVERDUE = f"""
{COLUMNS} FROM early AS w
WHERE w.source_id = :source_id AND w.received_at <= :before ORDER BY w.received_at, w.id LIMIT 100
"""
DROP = "DELETE FROM early WHERE id = ?"
COUNTS = "SELECT source_id, count(*) AS number FROM early GROUP BY source_id"


def known(transaction: Transaction, source_id: int, keys: Iterable[str]) -> set[str]:
    """Which of these keys are events already."""
    asked = {"source_id": source_id, "keys": json.dumps(list(keys))}
    return {row["key"] for row in transaction.execute(KNOWN, asked)}


def keep(transaction: Transaction, delivery: DeliveryRow, events: Sequence[SplitEvent]) -> int:
    """Have them wait for their place; how many did not wait already. Each brings its own bytes."""
    rows = [
        (
            delivery.source_id,
            event.key,
            event.digest,
            event.raw_kind,
            delivery.received_at,
            delivery.signed_at,
            delivery.via,
            delivery.verified_by,
            delivery.remote,
            delivery.headers,
            delivery.is_text,
            delivery.body,
            event.content if event.end is None else delivery.body[event.start : event.end],
        )
        for event in events
    ]
    return transaction.executemany(KEEP, rows).rowcount


def take(transaction: Transaction, source_id: int, keys: Collection[str]) -> list[Proposal]:
    """What waited under these keys, to be admitted in this very transaction."""
    asked = {"source_id": source_id, "keys": json.dumps(list(keys))}
    return _taken(transaction, transaction.execute(UNDER_KEYS, asked))


def take_overdue(transaction: Transaction, source_id: int, before: int) -> list[Proposal]:
    """Some of what has waited since before, and that the list should have brought by now."""
    asked = {"source_id": source_id, "before": before}
    return _taken(transaction, transaction.execute(OVERDUE, asked))


def _taken(transaction: Transaction, rows: Iterable[Row]) -> list[Proposal]:
    found = list(rows)
    transaction.executemany(DROP, [(row["id"],) for row in found])
    return [_proposal(row) for row in found]


def _proposal(row: Row) -> Proposal:
    delivery = DeliveryRow(
        source_id=row["source_id"],
        received_at=row["received_at"],
        signed_at=row["signed_at"],
        via=Via(row["via"]),
        verified_by=row["verified_by"],
        remote=row["remote"],
        headers=row["headers"],
        is_text=bool(row["is_text"]),
        body=row["body"],
    )
    event = SplitEvent(
        key=row["key"], digest=row["digest"], raw_kind=row["raw_kind"], content=row["content"]
    )
    return Proposal(delivery=delivery, events=(event,))


def counts(transaction: Transaction) -> dict[int, int]:
    """How many wait, by the source's id."""
    return {row["source_id"]: row["number"] for row in transaction.execute(COUNTS)}
