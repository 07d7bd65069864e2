"""Attempts: what one came to is recorded, and decides what becomes of its job."""

import logging
import random
from collections.abc import Sequence
from dataclasses import dataclass

from hookbox.model import Attempt, Verdict
from hookbox.rules import backoff
from hookbox.rules.retry_after import RETRY_AFTER_MAX_S
from hookbox.store import jobs, turns
from hookbox.store.connections import Transaction
from hookbox.store.jobs import Job, Lease

log = logging.getLogger("hookbox.lane")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """One attempt that is over and not recorded yet."""

    job: Job
    lease: Lease
    attempt: Attempt
    started_at: int
    took_ms: int


def record(transaction: Transaction, done: Finished, schedule_s: Sequence[float], now: int) -> None:
    """What one attempt came to, fenced: a job that was taken back meanwhile is left alone."""
    job, attempt = done.job, done.attempt
    if attempt.verdict is Verdict.DONE:
        if jobs.complete(transaction, [job.id], done.lease, outcome=attempt.outcome, now=now):
            _remember(transaction, done)
            turns.leave(transaction, [job.id])
        return
    if job.id not in jobs.owned(transaction, [job.id], done.lease):
        return
    _remember(transaction, done)
    failures = job.attempts - job.spared
    if attempt.spared:
        jobs.put_off(transaction, job.id, run_at=now, outcome=attempt.outcome, spared=True)
    elif attempt.verdict is Verdict.NEVER or failures >= len(schedule_s):
        log.warning("given up job=%d event=%d last=%s", job.id, job.event_id, attempt.outcome)
        jobs.exhaust(transaction, job.id, outcome=attempt.outcome, now=now)
    else:
        run_at = now + round(_wait_s(schedule_s, failures, attempt) * 1000)
        jobs.put_off(transaction, job.id, run_at=run_at, outcome=attempt.outcome)


def _remember(transaction: Transaction, done: Finished) -> None:
    jobs.record_attempt(
        transaction,
        done.job,
        started_at=done.started_at,
        took_ms=done.took_ms,
        outcome=done.attempt.outcome,
        status=done.attempt.status,
        excerpt=done.attempt.excerpt,
    )


def _wait_s(schedule_s: Sequence[float], failures: int, attempt: Attempt) -> float:
    jitter = random.random()  # noqa: S311  (spreads load, protects nothing)
    wait_s = backoff.delay_s(schedule_s, failures, jitter)
    if attempt.retry_after_s is not None:
        wait_s = max(wait_s, min(attempt.retry_after_s, RETRY_AFTER_MAX_S))
    return wait_s
