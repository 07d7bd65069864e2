"""Events read back, for the work on them."""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from hookbox.model import StoredEvent, Via
from hookbox.store.connections import Row, Transaction

SIZES = """
SELECT e.id, coalesce(length(e.content), e.slice_length, length(d.body), 0) AS size
FROM event AS e JOIN delivery AS d ON d.id = e.delivery_id
WHERE e.id IN (SELECT value FROM json_each(:ids))
"""
EVENTS_BY_ID = """
SELECT
  e.id, e.source_id, s.name AS source, e.key, e.raw_kind, d.headers, d.received_at, d.signed_at,
  d.via, e.forgotten,
  coalesce(e.content, substr(d.body, e.slice_start + 1, e.slice_length), d.body) AS content
FROM event AS e
JOIN delivery AS d ON d.id = e.delivery_id
JOIN source AS s ON s.id = e.source_id
WHERE e.id IN (SELECT value FROM json_each(:ids))
"""


def fitting(transaction: Transaction, ids: Sequence[int], bytes_max: int) -> int:
    """How many of these events, the first ones, have contents that fit into so many bytes together;
    the first one counts in any case. None of them is read for that.
    """
    rows = transaction.execute(SIZES, {"ids": json.dumps(ids)})
    sizes = {row["id"]: row["size"] for row in rows}
    held_bytes = 0
    for count, event_id in enumerate(ids):
        held_bytes += sizes.get(event_id, 0)  # retention may have been quicker
        if held_bytes > bytes_max and count > 0:
            return count
    return len(ids)


def by_id(transaction: Transaction, ids: Iterable[int]) -> list[StoredEvent]:
    """The events with these ids, in any order; content is empty once retention took it."""
    rows = transaction.execute(EVENTS_BY_ID, {"ids": json.dumps(list(ids))}).fetchall()
    return [_stored_event(row) for row in rows]


def _stored_event(row: Row) -> StoredEvent:
    return StoredEvent(
        id=row["id"],
        source_id=row["source_id"],
        source=row["source"],
        key=row["key"],
        raw_kind=row["raw_kind"],
        content=row["content"] or b"",
        headers=_headers(row["headers"]),
        received_at=row["received_at"],
        signed_at=row["signed_at"],
        via=Via(row["via"]),
        forgotten=bool(row["forgotten"]),
    )


@lru_cache(maxsize=256)  # most providers keep none, or the same few for many events
def _headers(text: str) -> Mapping[str, str]:
    """What was kept of the headers. A damaged row must not keep its neighbours from their work."""
    try:
        headers: Mapping[str, str] = json.loads(text)
    except ValueError:
        return {}
    return headers
