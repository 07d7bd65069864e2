"""Forwarding: `forward` jobs come into being in the transaction that applies their event."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hookbox.store import lanes, turns
from hookbox.store.connections import Transaction
from hookbox.store.numbering import NEXT_REPLAY

PREFIX = "forward:"  # of a target that is a destination
PAUSED = "paused"
UNCONFIGURED = "destination not configured"

# The first time an event is applied each destination gets it. Only a person's replay brings it
# again, unless it waits to be brought anyway; what is under way was read before.
ENQUEUE = f"""
INSERT INTO job (event_id, target, replay, run_at)
SELECT :event_id, :target, CASE count(*) WHEN 0 THEN 0 ELSE {NEXT_REPLAY} END, :now
FROM job WHERE event_id = :event_id AND target = :target
HAVING count(*) = 0 OR (
  :again AND NOT sum(state IN ('available', 'held'))
)
RETURNING id
"""
HOLD = """
UPDATE job SET state = 'held', last_outcome = :outcome
WHERE id IN (
  SELECT id FROM job WHERE state = 'available' AND target = :target LIMIT :limit
)
"""
RELEASE = f"""
UPDATE job SET state = 'available'
WHERE id IN (
  SELECT id FROM job
  WHERE state = 'held' AND target = :target AND last_outcome <> '{turns.WAITS}' LIMIT :limit
)
"""
TARGETS = """
SELECT DISTINCT target FROM job
WHERE state = 'available' AND target >= 'forward:' AND target < 'forward;'
"""

# A step is one transaction: 5,000 rows hold the writer for about 20 ms.
STEP_MAX = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Onward:
    """One event's way to one destination. `things`: what it must keep the order of."""

    event_id: int
    target: str
    again: bool = False
    things: tuple[str, ...] = ()


def target_of(destination: str) -> str:
    """The target of a destination's jobs."""
    return PREFIX + destination


def enqueue(transaction: Transaction, onward: Iterable[Onward], now: int) -> None:
    """One job for each way that was not gone yet."""
    queued: list[tuple[str, str, int]] = []
    for each in onward:
        place = {
            "event_id": each.event_id,
            "target": each.target,
            "again": each.again,
            "now": now,
        }
        row = transaction.execute(ENQUEUE, place).fetchone()
        if row is not None:
            queued += [(each.target, thing, int(row["id"])) for thing in each.things]
    turns.take(transaction, queued)


def hold(transaction: Transaction, target: str, outcome: str, limit: int = STEP_MAX) -> int:
    """What waits at a target waits for more than its time; how many there were."""
    place = {"target": target, "outcome": outcome, "limit": limit}
    return transaction.execute(HOLD, place).rowcount


def release(transaction: Transaction, target: str, limit: int = STEP_MAX) -> int:
    """What was held at a target is due again, unless it waits for its turn; how many there were."""
    return transaction.execute(RELEASE, {"target": target, "limit": limit}).rowcount


def adopt(transaction: Transaction, targets: Sequence[str]) -> None:
    """These destinations are configured now. What waits for others is held, visibly; what was held
    until one of these came back is due.
    """
    known = set(targets)
    for row in transaction.execute(TARGETS).fetchall():
        if row["target"] not in known:
            hold(transaction, row["target"], UNCONFIGURED, limit=-1)
    for target in targets:
        if not lanes.is_paused(transaction, target):
            release(transaction, target, limit=-1)
