"""Work: the in-process worker that applies stored events.

It claims a batch of `apply` jobs, works out what the events say, and settles that batch in the
transaction that claims the next one. It gives way to senders. An event whose work fails is tried
again, then set aside in quarantine; it never holds up the others.
"""

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from hookbox.clock import Clock
from hookbox.errors import StoreError, StoreRejected
from hookbox.flows.apply import apply
from hookbox.flows.sources import Sources
from hookbox.model import StoredEvent
from hookbox.rules import backoff
from hookbox.rules.suppression import Budget
from hookbox.store import claims, events, forwarding, jobs, ledger, quarantine
from hookbox.store.connections import Transaction
from hookbox.store.jobs import Job, Lease
from hookbox.store.ledger import Applied
from hookbox.store.writer import Writer

log = logging.getLogger("hookbox.work")

TARGET = jobs.APPLY
BATCH_MAX = 100  # about 10 ms of work between two looks at the senders
LONE_BATCH_MAX = 400  # when nobody sends: fewer commits, and whoever comes waits for 50 ms
LONE_AFTER_S = 0.25
TRIES_MAX = 3
TRY_AGAIN_AFTER_S = (5, 60)
LONGEST_WAIT_MS = 3_600_000  # a job due later than this was put there by another clock
LOOK_AGAIN_S = 60.0  # when nobody woke it: a missed wake-up costs a minute, never an event
PAUSE_AFTER_TROUBLE_S = 1.0
# Under constant load the worker takes one part in eleven of the time. When that leaves it behind
# for longer than a burst lasts, it takes more and more: what is known too late is known too late.
YIELD_SHARE = 10
YIELD_MAX_S = 1.0
LAG_TOLERATED_S = 5.0
FAILED = "apply_failed"
CRASHED = "apply_crashed"
NO_SOURCE = "source not configured"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Failure:
    """One job whose work raised."""

    job: Job
    started_at: int
    took_ms: int
    error: str


@dataclass(slots=True)
class _Settlement:
    """What the last batch came to, on its way into the store."""

    lease: Lease
    applied: list[tuple[Job, Applied]] = field(default_factory=list)
    failed: list[_Failure] = field(default_factory=list)
    held: list[Job] = field(default_factory=list)

    @property
    def jobs(self) -> list[Job]:
        """All that the batch was about."""
        tried = [job for job, _ in self.applied] + [failure.job for failure in self.failed]
        return tried + self.held


@dataclass(frozen=True, slots=True, kw_only=True)
class _Claimed:
    lease: Lease
    jobs: Sequence[Job]
    events: Sequence[StoredEvent]
    next_due: int | None


class Worker:
    """Runs until cancelled; `stop` lets the batch at hand be settled first."""

    def __init__(
        self, writer: Writer, sources: Sources, clock: Clock, instance: int, budget: Budget
    ) -> None:
        self.budget = budget
        self._writer, self._sources, self._clock, self._instance = writer, sources, clock, instance
        self.turning = asyncio.Lock()  # whoever holds it keeps the ledger still
        self._token = 0
        self._wake = asyncio.Event()
        self._stopping = False
        self._busy_s = 0.0  # how long the last batch took
        self._lag_s = 0.0  # how long its oldest event had waited

    def wake(self) -> None:
        """There is something new to work on."""
        self._wake.set()

    def stop(self) -> None:
        """Settle what is at hand, claim nothing more, and end."""
        self._stopping = True
        self._wake.set()

    async def run(self) -> None:
        """Work until stopped. Trouble with the store is waited out; what was worked out is kept
        meanwhile.
        """
        settlement: _Settlement | None = None
        while True:
            self._wake.clear()
            await self._writer.quiet(self._patience_s())
            started = self._clock.monotonic()
            try:
                async with self.turning:
                    claimed = await self._turn(settlement)
            except StoreRejected as error:
                async with self.turning:
                    settlement = await self._single_out(settlement, error)
                continue
            except StoreError as error:
                log.warning("worker waits error=%s", error)
                if self._stopping:
                    return
                await self._pause(PAUSE_AFTER_TROUBLE_S)
                continue
            if self._stopping and not claimed.jobs:
                return
            settlement = await self._work_on(claimed)
            oldest = min((job.run_at for job in claimed.jobs), default=self._clock.now())
            self._lag_s = max(0, self._clock.now() - oldest) / 1000
            self._busy_s = self._clock.monotonic() - started
            if not claimed.jobs:
                await self._pause(self._until(claimed.next_due))

    def _patience_s(self) -> float:
        """How long to wait for a moment without senders."""
        share = YIELD_SHARE * min(1.0, LAG_TOLERATED_S / max(self._lag_s, LAG_TOLERATED_S))
        return min(YIELD_MAX_S, self._busy_s * share)

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()

    def _until(self, due: int | None) -> float:
        if due is None:
            return LOOK_AGAIN_S
        return min(LOOK_AGAIN_S, max(0.01, (due - self._clock.now()) / 1000))

    async def _turn(self, settlement: _Settlement | None) -> _Claimed:
        """One transaction: settle the last batch, claim the next one."""
        self._token += 1
        lease = Lease(instance=self._instance, token=self._token)
        alone = self._writer.quiet_for_s > LONE_AFTER_S
        limit = 0 if self._stopping else LONE_BATCH_MAX if alone else BATCH_MAX
        now = self._clock.now()

        def work(transaction: Transaction) -> _Claimed:
            if settlement is not None:
                _settle(transaction, settlement, now, self.budget)
            if not limit:
                return _Claimed(lease=lease, jobs=(), events=(), next_due=None)
            horizon = now + LONGEST_WAIT_MS
            found = claims.claim(transaction, TARGET, lease, now=now, horizon=horizon, limit=limit)
            read = events.by_id(transaction, [job.event_id for job in found])
            due = None if found else jobs.next_due(transaction, TARGET)
            return _Claimed(lease=lease, jobs=found, events=read, next_due=due)

        return await self._writer.write(work)

    async def _single_out(
        self, settlement: _Settlement | None, error: StoreRejected
    ) -> _Settlement | None:
        """One of the batch cannot be stored: settle each alone, so that only that one counts as
        failed.
        """
        if settlement is None or not settlement.jobs:
            log.critical("the claim itself is refused error=%s", error)
            await self._pause(PAUSE_AFTER_TROUBLE_S)
            return None
        log.error("batch refused jobs=%d error=%s", len(settlement.applied), error)
        guilty = _Settlement(
            settlement.lease, failed=list(settlement.failed), held=list(settlement.held)
        )
        for job, applied in settlement.applied:
            alone = _Settlement(settlement.lease, applied=[(job, applied)])
            now = self._clock.now()
            try:
                await self._writer.write(
                    partial(_settle, settlement=alone, now=now, budget=self.budget)
                )
            except StoreRejected as refused:
                guilty.failed.append(
                    _Failure(job=job, started_at=now, took_ms=0, error=str(refused))
                )
            except StoreError:
                guilty.applied.append((job, applied))
        return guilty

    async def _work_on(self, claimed: _Claimed) -> _Settlement:
        settlement = _Settlement(claimed.lease)
        found = {event.id: event for event in claimed.events}
        for count, job in enumerate(claimed.jobs, 1):
            self._work_out(job, found[job.event_id], settlement)
            if count % 20 == 0:
                await self._clock.sleep(0)  # senders' requests are read in between
        return settlement

    def _work_out(self, job: Job, event: StoredEvent, settlement: _Settlement) -> None:
        source = self._sources.get(event.source)
        if source is None:
            settlement.held.append(job)
            return
        started_at, started = self._clock.now(), self._clock.monotonic()
        try:
            settlement.applied.append((job, apply(source, event)))
        except (
            Exception
        ) as error:  # a mistake of ours in a provider: this event waits, the others go on
            log.exception("apply failed event=%d source=%s", event.id, event.source)
            took_ms = round((self._clock.monotonic() - started) * 1000)
            failure = _Failure(
                job=job, started_at=started_at, took_ms=took_ms, error=type(error).__name__
            )
            settlement.failed.append(failure)


def _settle(transaction: Transaction, settlement: _Settlement, now: int, budget: Budget) -> None:
    """Everything a batch came to, fenced: jobs that this lease no longer holds are left alone."""
    lease = settlement.lease
    ours = jobs.owned(transaction, [job.id for job in settlement.jobs], lease)
    kept = [(job, applied) for job, applied in settlement.applied if job.id in ours]
    if kept:
        ledger.append(transaction, [applied for _, applied in kept], budget)
        jobs.complete(transaction, [job.id for job, _ in kept], lease, outcome="applied", now=now)
    for failure in settlement.failed:
        if failure.job.id in ours:
            _settle_failure(transaction, failure, now)
    for job in settlement.held:
        if job.id in ours:
            jobs.hold(transaction, job.id, outcome=NO_SOURCE)


def _settle_failure(transaction: Transaction, failure: _Failure, now: int) -> None:
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


def take_back(transaction: Transaction, instance: int, now: int) -> int:
    """At start: jobs of dead processes are available again; an event that was there in three
    crashes is set aside.
    """
    found = jobs.take_back(transaction, instance, now)
    for job in found:
        if job.exhausted and job.target == TARGET:
            quarantine.set_aside(transaction, job.event_id, CRASHED, now)
    return len(found)
