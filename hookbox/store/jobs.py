"""Jobs, the outbox: claiming, finishing, putting off, and taking back after a crash.

There are no wall-clock leases. A running job belongs to (instance, token); the server's lock makes
it certain that every older instance is dead. Finishing needs the token, so a late finisher changes
nothing.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hookbox.store import turns
from hookbox.store.connections import Transaction
from hookbox.store.numbering import NEXT_REPLAY

APPLY = "apply"  # the target that works out what an event says
CRASHES_MAX = 3  # a job that was running in three dead processes is suspected of killing them
EXCERPT_MAX = 200

# A job due later than the longest back-off is due now: the clock was set back.
MEND_DUE = """
UPDATE job SET run_at = :now
WHERE state = 'available' AND target = :target AND run_at > :horizon
"""
# Jobs that were running in a crash are claimed one at a time and last, so that the one that kills
# the process is found without its neighbours paying for it. They have an index of their own: among
# a long queue of others they could only be looked for.
CLAIM = """
UPDATE job SET state = 'running', instance = :instance, token = :token
WHERE id IN (
  SELECT id FROM job
  WHERE state = 'available' AND target = :target AND {which} AND run_at <= :now
  ORDER BY run_at, id LIMIT {limit}
)
RETURNING id, event_id, attempts, replay, run_at, spared, hands_on
"""
CLAIM_FRESH = CLAIM.format(which="crashes = 0", limit=":limit")
CLAIM_SUSPECT = CLAIM.format(which="crashes > 0", limit="1")
OWNED = """
SELECT id FROM job
WHERE id IN (SELECT value FROM json_each(:ids))
  AND state = 'running' AND instance = :instance AND token = :token
"""
COMPLETE = """
UPDATE job
SET state = 'completed', attempts = attempts + 1, finished_at = :now, instance = NULL, token = NULL,
  last_outcome = :outcome
WHERE id IN (SELECT value FROM json_each(:ids))
  AND state = 'running' AND instance = :instance AND token = :token
"""
GIVE_BACK = """
UPDATE job SET state = 'available', instance = NULL, token = NULL
WHERE id IN (SELECT value FROM json_each(:ids))
  AND state = 'running' AND instance = :instance AND token = :token
"""
PUT_OFF = """
UPDATE job
SET state = 'available', attempts = attempts + 1, run_at = ?, instance = NULL, token = NULL,
  last_outcome = ?, spared = spared + ?
WHERE id = ?
"""
EXHAUST = """
UPDATE job
SET state = 'exhausted', attempts = attempts + 1, finished_at = ?, instance = NULL, token = NULL,
  last_outcome = ?
WHERE id = ?
"""
HOLD = """
UPDATE job SET state = 'held', instance = NULL, token = NULL, last_outcome = ?
WHERE id = ? AND state = 'running'
"""
RELEASE = """
UPDATE job SET state = 'available', run_at = :now
WHERE state = 'held' AND target = :target AND (
  SELECT s.name FROM event AS e JOIN source AS s ON s.id = e.source_id WHERE e.id = job.event_id
) IN (SELECT value FROM json_each(:sources))
"""
UNAPPLIED = """
SELECT count(*) FROM job AS j JOIN event AS e ON e.id = j.event_id
JOIN source AS s ON s.id = e.source_id
WHERE s.name = :source AND j.target = 'apply' AND j.state IN ('available', 'running', 'held')
"""
RECORD_ATTEMPT = """
INSERT INTO attempt (job_id, number, started_at, took_ms, outcome, status, excerpt)
VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (job_id, number) DO NOTHING
"""
TAKE_BACK = """
UPDATE job
SET crashes = crashes + 1, instance = NULL, token = NULL, last_outcome = 'crashed',
  state = CASE WHEN crashes + 1 >= :crashes_max THEN 'exhausted' ELSE 'available' END,
  finished_at = CASE WHEN crashes + 1 >= :crashes_max THEN :now END
WHERE state = 'running' AND instance < :instance
RETURNING id, event_id, target, state
"""
NEXT_DUE = "SELECT min(run_at) FROM job WHERE state = 'available' AND target = :target"
REPLAY = f"""
INSERT INTO job (event_id, target, replay, run_at, hands_on)
SELECT :event_id, :target, {NEXT_REPLAY}, :now, :hands_on
FROM job WHERE event_id = :event_id AND target = :target
RETURNING id, replay
"""
UNFINISHED = """
SELECT state FROM job
WHERE event_id = :event_id AND target = :target AND state IN ('available', 'running', 'held')
LIMIT 1
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """Who holds the claimed jobs."""

    instance: int
    token: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One claimed job. `attempts` counts the earlier ones, `spared` those of them that do not count
    against the schedule; `run_at` is when it was due. An `apply` job that does not `hands_on` leads
    to no forwarding.
    """

    id: int
    event_id: int
    attempts: int
    replay: int
    run_at: int = 0
    spared: int = 0
    hands_on: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenBack:
    """A job that was running when its process died."""

    id: int
    event_id: int
    target: str
    exhausted: bool


def claim(
    transaction: Transaction, target: str, lease: Lease, *, now: int, horizon: int, limit: int
) -> list[Job]:
    """Take up to `limit` due jobs of `target`, oldest first. `horizon`: an instant later than any
    honest `run_at`.

    Every eighth lease looks at the suspects first, so that a steady flow of fresh jobs does not
    starve them.
    """
    place = {
        "target": target,
        "instance": lease.instance,
        "token": lease.token,
        "now": now,
        "horizon": horizon,
        "limit": limit,
    }
    transaction.execute(MEND_DUE, place)
    order = (CLAIM_SUSPECT, CLAIM_FRESH) if lease.token % 8 == 0 else (CLAIM_FRESH, CLAIM_SUSPECT)
    rows = (
        transaction.execute(order[0], place).fetchall()
        or transaction.execute(order[1], place).fetchall()
    )
    found = [
        Job(
            id=r["id"],
            event_id=r["event_id"],
            attempts=r["attempts"],
            replay=r["replay"],
            run_at=r["run_at"],
            spared=r["spared"],
            hands_on=bool(r["hands_on"]),
        )
        for r in rows
    ]
    return sorted(found, key=lambda job: job.id)


def _held(ids: Iterable[int], lease: Lease) -> dict[str, object]:
    """What fences a statement: these jobs, as far as this lease holds them."""
    return {"ids": json.dumps(list(ids)), "instance": lease.instance, "token": lease.token}


def owned(transaction: Transaction, ids: Iterable[int], lease: Lease) -> set[int]:
    """Which of the jobs this lease still holds."""
    return {row["id"] for row in transaction.execute(OWNED, _held(ids, lease))}


def complete(
    transaction: Transaction, ids: Iterable[int], lease: Lease, *, outcome: str, now: int
) -> int:
    """Finish the jobs that this lease still holds; how many those are."""
    done = {**_held(ids, lease), "outcome": outcome, "now": now}
    return transaction.execute(COMPLETE, done).rowcount


def give_back(transaction: Transaction, ids: Iterable[int], lease: Lease) -> None:
    """Let others have jobs that were claimed and not begun."""
    transaction.execute(GIVE_BACK, _held(ids, lease))


def put_off(
    transaction: Transaction, job_id: int, *, run_at: int, outcome: str, spared: bool = False
) -> None:
    """Try again later; a `spared` attempt does not count against the schedule. The caller has
    checked that it owns the job.
    """
    transaction.execute(PUT_OFF, (run_at, outcome, spared, job_id))


def exhaust(transaction: Transaction, job_id: int, *, outcome: str, now: int) -> None:
    """Give up, visibly. The caller has checked that it owns the job."""
    transaction.execute(EXHAUST, (now, outcome, job_id))
    turns.leave(transaction, [job_id])


def hold(transaction: Transaction, job_id: int, *, outcome: str) -> None:
    """Not now, and no failure: it waits until `release`. The caller has checked its lease."""
    transaction.execute(HOLD, (outcome, job_id))


def release(transaction: Transaction, target: str, sources: Iterable[str], now: int) -> int:
    """Held jobs of these sources are due; how many there were."""
    place = {"target": target, "sources": json.dumps(list(sources)), "now": now}
    return transaction.execute(RELEASE, place).rowcount


def unapplied(transaction: Transaction, source: str) -> int:
    """How many events of a source still wait to be applied."""
    (count,) = transaction.execute(UNAPPLIED, {"source": source}).fetchone()
    return int(count)


def record_attempt(
    transaction: Transaction,
    job: Job,
    *,
    started_at: int,
    took_ms: int,
    outcome: str,
    status: int | None = None,
    excerpt: str = "",
) -> None:
    """Remember one try. `excerpt` is cut to 200 characters."""
    row = (job.id, job.attempts + 1, started_at, took_ms, outcome, status, excerpt[:EXCERPT_MAX])
    transaction.execute(RECORD_ATTEMPT, row)


def take_back(transaction: Transaction, instance: int, now: int) -> Sequence[TakenBack]:
    """Jobs of dead processes are available again at once; the third crash exhausts a job."""
    rows = transaction.execute(
        TAKE_BACK, {"instance": instance, "now": now, "crashes_max": CRASHES_MAX}
    )
    found = [
        TakenBack(
            id=r["id"],
            event_id=r["event_id"],
            target=r["target"],
            exhausted=r["state"] == "exhausted",
        )
        for r in rows.fetchall()
    ]
    turns.leave(transaction, [job.id for job in found if job.exhausted])
    return found


def next_due(transaction: Transaction, target: str) -> int | None:
    """When the next job of `target` is due; None when none waits."""
    (instant,) = transaction.execute(NEXT_DUE, {"target": target}).fetchone()
    return None if instant is None else int(instant)


def unfinished(transaction: Transaction, event_id: int, target: str) -> str | None:
    """The state of a job of this event that is still to be done; None when it may be replayed."""
    row = transaction.execute(UNFINISHED, {"event_id": event_id, "target": target}).fetchone()
    return None if row is None else str(row["state"])


def replay(
    transaction: Transaction, event_id: int, target: str, now: int, *, hands_on: bool = True
) -> int:
    """Queue the event for `target` once more; the number of the replay."""
    place = {"event_id": event_id, "target": target, "now": now, "hands_on": hands_on}
    row = transaction.execute(REPLAY, place).fetchone()
    return int(row["replay"])
