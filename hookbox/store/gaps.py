"""Gaps: what a sender's list of events should have brought and has not.

A jump in a gapless sequence opens one, and the event that comes late closes it. An expired cursor
opens one that only the sender's own state can close, read message by message.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from hookbox.rules.sequences import Range, missing
from hookbox.store.connections import Transaction

JUMP = "sequence_jump"
EXPIRED = "cursor_expired"
BY_HAND = "skipped_by_hand"

# A credential that sees part of a project and is not declared so would open one for each event.
OPEN_MAX = 1_000

OPEN = """
INSERT INTO gap (source_id, from_sequence, to_sequence, reason, opened_at)
VALUES (:source_id, :first, :last, :reason, :opened_at)
"""
COUNT_OPEN = """
SELECT count(*) FROM (
  SELECT 1 FROM gap WHERE source_id = :source_id AND closed_at IS NULL LIMIT :limit
)
"""
OPEN_ONES = """
SELECT id, from_sequence, to_sequence, reason, opened_at, position
FROM gap WHERE source_id = :source_id AND closed_at IS NULL ORDER BY id
"""
CLOSE = "UPDATE gap SET closed_at = :now WHERE id = :id"
CLOSE_ALL = "UPDATE gap SET closed_at = :now WHERE source_id = :source_id AND closed_at IS NULL"
NOTE_POSITION = "UPDATE gap SET position = :position WHERE id = :id"
OPEN_BY_SOURCE = """
SELECT source_id, reason, count(*) AS number FROM gap WHERE closed_at IS NULL
GROUP BY source_id, reason
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """One gap that is open. `position`: how far reading the sender's state has come for it."""

    id: int
    first: int | None
    last: int | None
    reason: str
    opened_at: int
    position: str


def open_jumps(
    transaction: Transaction, source_id: int, jumps: Iterable[Range], now: int
) -> list[Range]:
    """Open one for each jump, as long as there is room; those that were opened."""
    asked = {"source_id": source_id, "limit": OPEN_MAX}
    (number,) = transaction.execute(COUNT_OPEN, asked).fetchone()
    opened = list(jumps)[: OPEN_MAX - number]
    for first, last in opened:
        open_one(transaction, source_id, JUMP, first, last, now)
    return opened


def open_one(
    transaction: Transaction,
    source_id: int,
    reason: str,
    first: int | None,
    last: int | None,
    now: int,
) -> None:
    """Open a gap from `first` to `last`, as far as they are known."""
    row = {"source_id": source_id, "first": first, "last": last, "reason": reason, "opened_at": now}
    transaction.execute(OPEN, row)


def open_ones(transaction: Transaction, source_id: int) -> list[Gap]:
    """Those of a source, oldest first."""
    return [
        Gap(
            id=row["id"],
            first=row["from_sequence"],
            last=row["to_sequence"],
            reason=row["reason"],
            opened_at=row["opened_at"],
            position=row["position"],
        )
        for row in transaction.execute(OPEN_ONES, {"source_id": source_id})
    ]


def fill(transaction: Transaction, source_id: int, sequences: Iterable[int], now: int) -> None:
    """These numbers have come: close the gaps that they were in, and keep open what is left."""
    came = set(sequences)
    for gap in open_ones(transaction, source_id):
        if gap.reason == EXPIRED or gap.first is None or gap.last is None:
            continue
        left = missing(gap.first, gap.last, came)
        if left == [(gap.first, gap.last)]:
            continue
        close(transaction, gap.id, now)
        for first, last in left:
            open_one(transaction, source_id, gap.reason, first, last, gap.opened_at)


def close(transaction: Transaction, gap_id: int, now: int) -> None:
    """What was missing has come, or is known in another way."""
    transaction.execute(CLOSE, {"id": gap_id, "now": now})


def close_all(transaction: Transaction, source_id: int, now: int) -> int:
    """A person vouches for all of them; how many that were."""
    return transaction.execute(CLOSE_ALL, {"source_id": source_id, "now": now}).rowcount


def note_position(transaction: Transaction, gap_id: int, position: str) -> None:
    """Reading the sender's state has come this far."""
    transaction.execute(NOTE_POSITION, {"id": gap_id, "position": position})


def open_counts(transaction: Transaction) -> dict[int, dict[str, int]]:
    """How many are open, by the source's id and the reason."""
    found: dict[int, dict[str, int]] = {}
    for row in transaction.execute(OPEN_BY_SOURCE):
        found.setdefault(row["source_id"], {})[row["reason"]] = row["number"]
    return found
