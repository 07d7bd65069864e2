"""Taking content away from under events, for an address that is erased.

A body may hold several events. Those that are not about the address keep their piece of it, as
content of their own.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from hookbox.store.connections import Row, Transaction

DELIVERY = "SELECT body, headers FROM delivery WHERE id = :id"
EVENTS = """
SELECT
  id, slice_start, slice_length, content,
  EXISTS (
    SELECT 1 FROM job
    WHERE event_id = event.id AND target = 'apply' AND state IN ('available', 'running', 'held')
  ) AS pending
FROM event WHERE delivery_id = :id
"""
ENTRIES = """
SELECT id, slice_start, slice_length, content, 0 AS pending
FROM quarantine_entry WHERE delivery_id = :id
"""
KEEP = "UPDATE {table} SET content = ?, slice_start = NULL, slice_length = NULL WHERE id = ?"
RESOLVE = """
UPDATE quarantine_entry SET resolved_at = :now, resolution = 'erased'
WHERE id = :id AND resolved_at IS NULL
"""
DROP_BODY = "UPDATE delivery SET body = NULL WHERE id = :id"
NOTHING_IS_TEXT = """
UPDATE delivery SET is_text = 1 WHERE id = :id
  AND NOT EXISTS (SELECT 1 FROM event WHERE delivery_id = :id AND content IS NOT NULL)
  AND NOT EXISTS (SELECT 1 FROM quarantine_entry WHERE delivery_id = :id AND content IS NOT NULL)
"""


@dataclass(slots=True)
class _Pieces:
    """What rests on one body: `about` goes, `others` stay."""

    about: list[int] = field(default_factory=list)
    others: list[tuple[bytes | None, int]] = field(default_factory=list)
    pending: bool = False


def erase(
    transaction: Transaction,
    delivery_id: int,
    about: Collection[int],
    mentions: Callable[[bytes], bool],
    now: int,
) -> bool:
    """Take the body of a delivery, and all content that is about the address: of these events, and
    of whatever mentions it. False when some of it is still to be applied: then nothing is taken.
    """
    place = {"id": delivery_id}
    delivery = transaction.execute(DELIVERY, place).fetchone()
    body = delivery["body"]
    events = _sorted(transaction.execute(EVENTS, place).fetchall(), body, about, mentions)
    if events.pending:
        return False
    entries = _sorted(transaction.execute(ENTRIES, place).fetchall(), body, (), mentions)
    for table, pieces in (("event", events), ("quarantine_entry", entries)):
        gone = [(None, row_id) for row_id in pieces.about]
        transaction.executemany(KEEP.format(table=table), [*pieces.others, *gone])
    transaction.executemany(RESOLVE, [{"id": row_id, "now": now} for row_id in entries.about])
    transaction.execute(DROP_BODY, place)
    transaction.execute(NOTHING_IS_TEXT, place)
    return True


def _sorted(
    rows: list[Row],
    body: bytes | None,
    about: Collection[int],
    mentions: Callable[[bytes], bool],
) -> _Pieces:
    pieces = _Pieces()
    for row in rows:
        content = _content(row, body)
        if row["id"] in about or (content is not None and mentions(content)):
            pieces.about.append(row["id"])
            pieces.pending |= bool(row["pending"]) and content is not None
        else:
            pieces.others.append((content, row["id"]))
    return pieces


def _content(row: Row, body: bytes | None) -> bytes | None:
    if row["content"] is not None or body is None:
        return row["content"]  # type: ignore[no-any-return]  # a BLOB column
    if row["slice_start"] is None:
        return body
    return body[row["slice_start"] : row["slice_start"] + row["slice_length"]]
