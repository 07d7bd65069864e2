"""Work: the in-process worker that applies stored events.

It claims a batch of `apply` jobs, works out what the events say, and settles that batch in the
transaction that claims the next one. It gives way to senders. An event whose work fails is tried
again, then set aside in quarantine; it never holds up the others.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial

from hookbox.clock import Clock
from hookbox.errors import StoreError, StoreRejected
from hookbox.flows.apply import apply
from hookbox.flows.routes import Route, ways
from hookbox.flows.settlement import Done, Failure, Settlement, settle
from hookbox.flows.signal import Signal
from hookbox.flows.sources import Sources
from hookbox.model import StoredEvent
from hookbox.rules.suppression import Budget
from hookbox.store import claims, events, jobs
from hookbox.store.connections import Transaction
from hookbox.store.forwarding import Onward, target_of
from hookbox.store.jobs import Job, Lease
from hookbox.store.ledger import Applied
from hookbox.store.writer import Writer

log = logging.getLogger("hookbox.work")

TARGET = jobs.APPLY
BATCH_MAX = 100  # about 10 ms of work between two looks at the senders
LONE_BATCH_MAX = 400  # when nobody sends: fewer commits, and whoever comes waits for 50 ms
LONE_AFTER_S = 0.25
LONGEST_WAIT_MS = 3_600_000  # a job due later than this was put there by another clock
LOOK_AGAIN_S = 60.0  # when nobody woke it: a missed wake-up costs a minute, never an event
PAUSE_AFTER_TROUBLE_S = 1.0
# Under constant load the worker takes one part in eleven of the time. When that leaves it behind
# for longer than a burst lasts, it takes more and more: what is known too late is known too late.
YIELD_SHARE = 10
YIELD_MAX_S = 1.0
LAG_TOLERATED_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Claimed:
    lease: Lease
    jobs: Sequence[Job]
    events: Sequence[StoredEvent]
    next_due: int | None


class Worker:
    """Runs until cancelled; `stop` lets the batch at hand be settled first."""

    def __init__(
        self,
        writer: Writer,
        sources: Sources,
        clock: Clock,
        instance: int,
        budget: Budget,
        forwarded: Callable[[Collection[str]], None] = lambda targets: None,
    ) -> None:
        self.budget = budget
        self._forwarded = forwarded  # there are new jobs for these targets
        self.routes: Sequence[Route] = ()
        self._writer, self._sources, self._clock, self._instance = writer, sources, clock, instance
        self.turning = asyncio.Lock()  # whoever holds it keeps the ledger still
        self.applied = Signal()  # rung when what a batch came to is in the store
        self._token = 0
        self._missing: set[str] = set()  # sources that jobs were held for
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
        settlement: Settlement | None = None
        while True:
            self._wake.clear()
            await self._writer.quiet(self._patience_s())
            started = self._clock.monotonic()
            try:
                async with self.turning:
                    claimed = await self._turn(settlement)
            except StoreRejected as error:
                tried = settlement
                async with self.turning:
                    settlement = await self._single_out(tried, error)
                self._tell(tried)
                continue
            except StoreError as error:
                log.warning("worker waits error=%s", error)
                if self._stopping:
                    return
                await self._pause(PAUSE_AFTER_TROUBLE_S)
                continue
            self._tell(settlement)
            if self._stopping and not claimed.jobs:
                return
            settlement = await self._work_on(claimed)
            oldest = min((job.run_at for job in claimed.jobs), default=self._clock.now())
            self._lag_s = max(0, self._clock.now() - oldest) / 1000
            self._busy_s = self._clock.monotonic() - started
            if not claimed.jobs:
                await self._pause(self._until(claimed.next_due))

    def _tell(self, settlement: Settlement | None) -> None:
        """Wake the lanes that have new jobs, and who waits for what was applied."""
        if settlement is not None and settlement.jobs:
            self.applied.ring()
            targets = {way.target for done in settlement.applied for way in done.onward}
            if targets:
                self._forwarded(targets)

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

    async def _turn(self, settlement: Settlement | None) -> _Claimed:
        """One transaction: settle the last batch, claim the next one."""
        self._token += 1
        lease = Lease(instance=self._instance, token=self._token)
        alone = self._writer.quiet_for_s > LONE_AFTER_S
        limit = 0 if self._stopping else LONE_BATCH_MAX if alone else BATCH_MAX
        now = self._clock.now()
        if settlement is not None:
            settlement.keep_to({target_of(route.destination) for route in self.routes})
        # A source may have come back between a look at its event and the hold.
        back = {name for name in self._missing if self._sources.get(name) is not None}

        def work(transaction: Transaction) -> _Claimed:
            if settlement is not None:
                settle(transaction, settlement, now, self.budget)
            if back:
                jobs.release(transaction, TARGET, back, now)
            if not limit:
                return _Claimed(lease=lease, jobs=(), events=(), next_due=None)
            horizon = now + LONGEST_WAIT_MS
            found = claims.claim(transaction, TARGET, lease, now=now, horizon=horizon, limit=limit)
            read = events.by_id(transaction, [job.event_id for job in found])
            due = None if found else jobs.next_due(transaction, TARGET)
            return _Claimed(lease=lease, jobs=found, events=read, next_due=due)

        claimed = await self._writer.write(work)
        self._missing -= back
        return claimed

    async def _single_out(
        self, settlement: Settlement | None, error: StoreRejected
    ) -> Settlement | None:
        """One of the batch cannot be stored: settle each alone, so that only that one counts as
        failed.
        """
        if settlement is None or not settlement.jobs:
            log.critical("the claim itself is refused error=%s", error)
            await self._pause(PAUSE_AFTER_TROUBLE_S)
            return None
        log.error("batch refused jobs=%d error=%s", len(settlement.applied), error)
        guilty = Settlement(
            settlement.lease, failed=list(settlement.failed), held=list(settlement.held)
        )
        for done in settlement.applied:
            alone = Settlement(settlement.lease, applied=[done])
            now = self._clock.now()
            try:
                await self._writer.write(
                    partial(settle, settlement=alone, now=now, budget=self.budget)
                )
            except StoreRejected as refused:
                guilty.failed.append(
                    Failure(job=done.job, started_at=now, took_ms=0, error=str(refused))
                )
            except StoreError:
                guilty.applied.append(done)
        return guilty

    async def _work_on(self, claimed: _Claimed) -> Settlement:
        settlement = Settlement(claimed.lease)
        found = {event.id: event for event in claimed.events}
        for count, job in enumerate(claimed.jobs, 1):
            self._work_out(job, found[job.event_id], settlement)
            if count % 20 == 0:
                await self._clock.sleep(0)  # senders' requests are read in between
        return settlement

    def _work_out(self, job: Job, event: StoredEvent, settlement: Settlement) -> None:
        source = self._sources.get(event.source)
        if source is None:
            settlement.held.append(job)
            self._missing.add(event.source)
            return
        started_at, started = self._clock.now(), self._clock.monotonic()
        try:
            applied = apply(source, event)
            onward = self._onward(job, event, applied)
            settlement.applied.append(Done(job=job, applied=applied, onward=onward))
        except (
            Exception
        ) as error:  # a mistake of ours in a provider: this event waits, the others go on
            log.exception("apply failed event=%d source=%s", event.id, event.source)
            took_ms = round((self._clock.monotonic() - started) * 1000)
            failure = Failure(
                job=job, started_at=started_at, took_ms=took_ms, error=type(error).__name__
            )
            settlement.failed.append(failure)

    def _onward(self, job: Job, event: StoredEvent, applied: Applied) -> tuple[Onward, ...]:
        if not (self.routes and job.hands_on):
            return ()
        return ways(self.routes, event.source, applied, again=job.replay > 0)
