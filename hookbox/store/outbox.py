"""What a person does about the outbox: try a job now, give it up, stop and start a lane."""

import json
from collections.abc import Iterable, Mapping, Sequence

from hookbox.errors import OperatorError
from hookbox.store import forwarding, jobs, lanes, turns
from hookbox.store.connections import Row, Transaction
from hookbox.store.decisions import Word

JOB = "SELECT id, event_id, target, state, last_outcome FROM job WHERE id = :id"
RETRY = """
UPDATE job
SET state = CASE WHEN :paused THEN 'held' ELSE 'available' END, run_at = :now,
  spared = attempts, crashes = 0, finished_at = NULL,
  last_outcome = CASE WHEN :paused THEN 'paused' ELSE last_outcome END
WHERE id IN (SELECT value FROM json_each(:ids))
"""
EXHAUSTED = """
SELECT id FROM job WHERE state = 'exhausted' AND target = :target ORDER BY id LIMIT :limit
"""
CANCEL = """
UPDATE job SET state = 'cancelled', finished_at = :now, last_outcome = :outcome WHERE id = :id
"""

# What becomes of a job that somebody else is at, or that is over, in words for a refusal.
DOING: Mapping[str, str] = {
    "running": "is under way right now",
    "completed": "is done",
    "cancelled": "is cancelled",
}


def retry(transaction: Transaction, job_ids: Iterable[int], now: int) -> None:
    """Have jobs tried at once, with their whole schedule before them again.

    A job of a paused lane is tried when that is resumed. Raises OperatorError for one that cannot
    be tried, and then none of them should be.
    """
    for job_id in job_ids:
        _retry_one(transaction, job_id, now)


def _retry_one(transaction: Transaction, job_id: int, now: int) -> None:
    job = _job(transaction, job_id)
    if job["state"] in DOING:
        hint = "" if job["state"] == "running" else _replay_instead(job)
        raise OperatorError(f"job {job_id} {DOING[job['state']]}{hint}")
    if job["target"] == jobs.APPLY and job["state"] == "exhausted":
        raise OperatorError(
            f"job {job_id} is over: event {job['event_id']} is in quarantine; "
            "see: hookbox quarantine list"
        )
    if job["last_outcome"] == forwarding.UNCONFIGURED:
        raise OperatorError(
            f"job {job_id} goes to a destination that is not configured; configure it again, or "
            f"give the job up with: hookbox outbox cancel {job_id} --reason ..."
        )
    turns.leave(transaction, [job_id])  # a person wants it now, whoever is before it
    _retry(transaction, job["target"], [job_id], now)


def retry_exhausted(
    transaction: Transaction, destination: str, now: int, limit: int = forwarding.STEP_MAX
) -> int:
    """Have every job tried again that a destination's attempts were given up on; how many."""
    target = forwarding.target_of(destination)
    rows = transaction.execute(EXHAUSTED, {"target": target, "limit": limit})
    ids = [int(row["id"]) for row in rows]
    _retry(transaction, target, ids, now)
    return len(ids)


def _retry(transaction: Transaction, target: str, ids: Sequence[int], now: int) -> None:
    paused = lanes.is_paused(transaction, target)
    transaction.execute(RETRY, {"ids": json.dumps(ids), "now": now, "paused": paused})


def cancel(transaction: Transaction, job_ids: Iterable[int], word: Word) -> None:
    """Give jobs up. Raises OperatorError for one that is under way or over, and then none of them
    should be.
    """
    for job_id in job_ids:
        _cancel_one(transaction, job_id, word)


def _cancel_one(transaction: Transaction, job_id: int, word: Word) -> None:
    job = _job(transaction, job_id)
    if not job["target"].startswith(forwarding.PREFIX):
        raise OperatorError(
            f"job {job_id} is hookbox's own work on event {job['event_id']} ({job['target']}), "
            "which is not given up"
        )
    if job["state"] in DOING:
        raise OperatorError(f"job {job_id} {DOING[job['state']]}")
    outcome = f"cancelled by {word.who}: {word.reason}"
    transaction.execute(CANCEL, {"id": job_id, "now": word.at, "outcome": outcome})
    turns.leave(transaction, [job_id])


def pause(transaction: Transaction, destination: str, word: Word) -> None:
    """Bring nothing more to a destination until `resume`; then `hold` what waits for it."""
    lanes.pause(transaction, forwarding.target_of(destination), word)


def resume(transaction: Transaction, destination: str) -> None:
    """Let a destination go on; then `release` what waits for it. Raises OperatorError when it is
    not paused.
    """
    if not lanes.resume(transaction, forwarding.target_of(destination)):
        raise OperatorError(
            f"destination {destination} is not paused; what stands still is said by: hookbox outbox"
        )


def hold(transaction: Transaction, destination: str, limit: int = forwarding.STEP_MAX) -> int:
    """Hold the next of what waits for a paused destination; how many, 0 at the end."""
    target = forwarding.target_of(destination)
    return forwarding.hold(transaction, target, forwarding.PAUSED, limit)


def release(transaction: Transaction, destination: str, limit: int = forwarding.STEP_MAX) -> int:
    """Let the next of what was held go; how many, 0 at the end."""
    return forwarding.release(transaction, forwarding.target_of(destination), limit)


def _job(transaction: Transaction, job_id: int) -> Row:
    row: Row | None = transaction.execute(JOB, {"id": job_id}).fetchone()
    if row is None:
        raise OperatorError(f"no job {job_id}; see: hookbox outbox list")
    return row


def _replay_instead(job: Row) -> str:
    destination = job["target"].removeprefix(forwarding.PREFIX)
    if destination == job["target"]:
        return ""
    return (
        "; to bring the event there again: "
        f"hookbox events replay {job['event_id']} --to {destination}"
    )
