"""Settlement: what a batch of applied events came to, written down in one transaction."""

from collections.abc import Collection
from dataclasses import dataclass, field, replace

from hookbox.rules import backoff
from hookbox.rules.suppression import Budget
from hookbox.store import forwarding, jobs, lanes, ledger, quarantine, sources
from hookbox.store.connections import Transaction
from hookbox.store.forwarding import Onward
from hookbox.store.jobs import Job, Lease
from hookbox.store.ledger import Applied

TRIES_MAX = 3
TRY_AGAIN_AFTER_S = (5, 60)
FAILED = "apply_failed"
CRASHED = "apply_crashed"
NO_SOURCE = "source not configured"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One job whose work raised."""

    job: Job
    started_at: int
    took_ms: int
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """One job whose event was read, and where the event goes on to."""

    job: Job
    applied: Applied
    onward: tuple[Onward, ...]


@dataclass(slots=True)
class Settlement:
    """What the last batch came to, on its way into the store."""

    lease: Lease
    applied: list[Done] = field(default_factory=list)
    failed: list[Failure] = field(default_factory=list)
    held: list[Job] = field(default_factory=list)

    @property
    def jobs(self) -> list[Job]:
        """All that the batch was about."""
        tried = [done.job for done in self.applied] + [failure.job for failure in self.failed]
        return tried + self.held

    def keep_to(self, targets: Collection[str]) -> None:
        """Nothing goes on to a destination that went away while the batch was worked on."""
        self.applied = [
            replace(done, onward=tuple(way for way in done.onward if way.target in targets))
            if done.onward
            else done
            for done in self.applied
        ]


def settle(transaction: Transaction, settlement: Settlement, now: int, budget: Budget) -> None:
    """Everything a batch came to, fenced: jobs that this lease no longer holds are left alone."""
    lease = settlement.lease
    ours = jobs.owned(transaction, [job.id for job in settlement.jobs], lease)
    kept = [done for done in settlement.applied if done.job.id in ours]
    if kept:
        ledger.append(transaction, [done.applied for done in kept], budget)
        forwarding.enqueue(transaction, [way for done in kept for way in done.onward], now)
        done_ids = [done.job.id for done in kept]
        jobs.complete(transaction, done_ids, lease, outcome="applied", now=now)
    for failure in settlement.failed:
        if failure.job.id in ours:
            _settle_failure(transaction, failure, now)
    for job in settlement.held:
        if job.id in ours:
            jobs.hold(transaction, job.id, outcome=NO_SOURCE)


def _settle_failure(transaction: Transaction, failure: Failure, now: int) -> None:
    job = failure.job
    jobs.record_attempt(
        transaction,
        job,
        started_at=failure.started_at,
        took_ms=failure.took_ms,
        outcome="error",
        excerpt=failure.error,
    )
    if job.attempts + 1 < TRIES_MAX:
        wait_s = backoff.delay_s(TRY_AGAIN_AFTER_S, job.attempts)
        jobs.put_off(transaction, job.id, run_at=now + round(wait_s * 1000), outcome=failure.error)
        return
    jobs.exhaust(transaction, job.id, outcome=failure.error, now=now)
    quarantine.set_aside(transaction, job.event_id, FAILED, now)


def succeed(transaction: Transaction, now: int) -> tuple[int, int]:
    """At start: take the place of the processes before; the number of this one, and how many jobs
    are taken back.
    """
    instance = sources.next_instance(transaction)
    lanes.forget_breakers(transaction)
    return instance, take_back(transaction, instance, now)


def take_back(transaction: Transaction, instance: int, now: int) -> int:
    """At start: jobs of dead processes are available again; an event that was there in three
    crashes is set aside.
    """
    found = jobs.take_back(transaction, instance, now)
    for job in found:
        if job.exhausted and job.target == jobs.APPLY:
            quarantine.set_aside(transaction, job.event_id, CRASHED, now)
    return len(found)
