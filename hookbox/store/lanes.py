"""Lanes: what holds for a target as a whole: a pause, and what its circuit breaker found."""

from hookbox.store.connections import Transaction
from hookbox.store.decisions import Word

IS_PAUSED = "SELECT paused_at IS NOT NULL AS paused FROM lane WHERE target = :target"
PAUSE = """
INSERT INTO lane (target, paused_at, paused_by, pause_reason) VALUES (:target, :at, :who, :reason)
ON CONFLICT (target) DO UPDATE SET
  paused_at = excluded.paused_at, paused_by = excluded.paused_by,
  pause_reason = excluded.pause_reason
"""
RESUME = """
UPDATE lane SET paused_at = NULL, paused_by = NULL, pause_reason = NULL
WHERE target = :target AND paused_at IS NOT NULL
"""
FORGET_BREAKERS = "UPDATE lane SET failures = 0, broken_at = NULL, probe_at = NULL"
NOTE = """
INSERT INTO lane (target, failures, broken_at, probe_at, last_failure)
VALUES (:target, :failures, :broken_at, :probe_at, :last_failure)
ON CONFLICT (target) DO UPDATE SET
  failures = excluded.failures, probe_at = excluded.probe_at,
  broken_at = CASE WHEN excluded.broken_at IS NOT NULL
    THEN coalesce(lane.broken_at, excluded.broken_at) END,
  last_failure = excluded.last_failure
"""


def is_paused(transaction: Transaction, target: str) -> bool:
    """Whether a person has stopped this lane."""
    row = transaction.execute(IS_PAUSED, {"target": target}).fetchone()
    return row is not None and bool(row["paused"])


def pause(transaction: Transaction, target: str, word: Word) -> None:
    """Stop a lane on a person's word."""
    place = {"target": target, "at": word.at, "who": word.who, "reason": word.reason}
    transaction.execute(PAUSE, place)


def resume(transaction: Transaction, target: str) -> bool:
    """Let a lane go on; False when it was not paused."""
    return transaction.execute(RESUME, {"target": target}).rowcount > 0


def note(
    transaction: Transaction,
    target: str,
    *,
    failures: int,
    broken_at: int | None = None,
    probe_at: int | None = None,
    last_failure: str | None = None,
) -> None:
    """Write down what the circuit breaker found, for people to see: how many failures in a row,
    since when it has stopped trying (what was noted first stands), and when it tries one job.
    """
    place = {
        "target": target,
        "failures": failures,
        "broken_at": broken_at,
        "probe_at": probe_at,
        "last_failure": last_failure,
    }
    transaction.execute(NOTE, place)


def forget_breakers(transaction: Transaction) -> None:
    """At start: a new process has no findings yet."""
    transaction.execute(FORGET_BREAKERS)
