"""A lane of the outbox: the jobs of one target, each tried until it is done or given up.

Lanes know nothing of each other, so a slow target holds up nobody else. What finished is recorded
in the transaction that claims what comes next. While the store cannot record, nothing new is
claimed: the other way round would repeat effects that nobody remembers.
"""

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Generic, TypeVar

from hookbox.clock import Clock
from hookbox.errors import StoreError, StoreRejected
from hookbox.flows.attempts import Finished, record
from hookbox.model import Attempt, Verdict
from hookbox.rules.breaker import WELL, Breaker, after_failure
from hookbox.rules.retry_after import RETRY_AFTER_MAX_S
from hookbox.store import claims, forwarding, jobs, lanes
from hookbox.store.connections import Transaction
from hookbox.store.jobs import Job, Lease
from hookbox.store.writer import Writer

log = logging.getLogger("hookbox.lane")
T = TypeVar("T")

LOOK_AGAIN_S = 60.0  # when nobody woke it: a missed wake-up costs a minute
PAUSE_AFTER_TROUBLE_S = 1.0
# Claimed ahead of those under way, so that no place stands empty while a commit is made.
AHEAD = 2
INTERRUPTED = "interrupted by a stop"


async def _nothing() -> None:
    """Most lanes hold nothing that must be closed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane(Generic[T]):
    """What a lane is: its target, what its jobs are about, how one try is made, when to try again,
    how many at once, and after how many failures in a row the target is left alone (0: never).

    `read` finds what the jobs' events are about, by event id. Whatever `attempt` raises counts as
    "later". `close` is called when nothing is tried any more. `fingerprint` tells a changed lane
    from the one before.
    """

    target: str
    read: Callable[[Transaction, Sequence[int]], Mapping[int, T]]
    attempt: Callable[[T, Job], Awaitable[Attempt]]
    schedule_s: Sequence[float]
    concurrency: int = 1
    failures_max: int = 0
    fingerprint: str = ""
    close: Callable[[], Awaitable[None]] = _nothing

    @property
    def horizon_s(self) -> float:
        """No honest wait is longer, jitter included."""
        return max(*self.schedule_s, RETRY_AFTER_MAX_S) * 1.1


@dataclass(frozen=True, slots=True)
class _Ready(Generic[T]):
    """A claimed job that waits for its place."""

    job: Job
    lease: Lease
    subject: T


@dataclass(frozen=True, slots=True, kw_only=True)
class _Claimed(Generic[T]):
    ready: Sequence[_Ready[T]] = ()
    next_due: int | None = None
    probe: bool = False  # claimed to see whether a broken target is well again


class LaneRunner(Generic[T]):
    """Runs one lane until stopped."""

    def __init__(
        self, lane: Lane[T], writer: Writer, clock: Clock, instance: int, tokens: Iterator[int]
    ) -> None:
        self.lane = lane
        self._writer, self._clock, self._instance = writer, clock, instance
        self._tokens = tokens  # shared with whoever else runs, or ran, a lane of this target
        self._wake = asyncio.Event()
        self._stopping = False
        self._ready: deque[_Ready[T]] = deque()
        self._returned: list[_Ready[T]] = []  # claimed, and not begun any more
        self._running: set[asyncio.Task[None]] = set()
        self._finished: list[Finished] = []
        self._breaker: Breaker = WELL
        self._noted: Breaker = WELL
        self._last_failure: str | None = None

    def wake(self) -> None:
        """There may be something to do."""
        self._wake.set()

    def stop(self) -> None:
        """Claim nothing more; end when what is under way has been recorded."""
        self._stopping = True
        self._wake.set()

    def recall(self) -> None:
        """Begin nothing that was claimed before now: whether it may is asked again."""
        self._returned.extend(self._ready)
        self._ready.clear()
        self._wake.set()

    def abandon(self) -> None:
        """Cut short what is under way; it is tried again at the next start."""
        for task in self._running:
            task.cancel()

    async def run(self) -> None:
        """Claim, try, record, until stopped."""
        while True:
            self._wake.clear()
            try:
                claimed = await self._turn()
            except StoreRejected as error:
                await self._record_each(error)
                continue
            except StoreError as error:
                log.warning("lane waits target=%s error=%s", self.lane.target, error)
                await self._pause(PAUSE_AFTER_TROUBLE_S)
                continue
            self._ready.extend(claimed.ready)
            self._begin(probe=claimed.probe)
            if self._stopping and not self._owing:
                return
            await self._pause(self._until(claimed.next_due))

    @property
    def _owing(self) -> bool:
        """Something is under way, or the store does not know yet what became of it."""
        return bool(self._running or self._finished or self._ready or self._returned)

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()

    def _until(self, due: int | None) -> float:
        """How long nothing will happen by itself."""
        probe_at, wait_s = self._breaker.probe_at, LOOK_AGAIN_S
        if self._room() > 0:
            if due is not None:
                wait_s = (due - self._clock.now()) / 1000
        elif probe_at is not None and not self._running:
            wait_s = probe_at - self._clock.monotonic()
        return min(LOOK_AGAIN_S, max(0.01, wait_s))

    def _room(self) -> int:
        """How many jobs may be claimed right now."""
        under_way = len(self._running) + len(self._ready)
        probe_at = self._breaker.probe_at
        if self._stopping:
            return 0
        if probe_at is not None:
            return 1 if under_way == 0 and self._clock.monotonic() >= probe_at else 0
        return self.lane.concurrency * AHEAD - under_way

    # --- one transaction: record what finished, claim what there is room for

    async def _turn(self) -> _Claimed[T]:
        finished, room = list(self._finished), self._room()
        if self._ready and (self._stopping or self._breaker.broken):
            self.recall()
        returned = list(self._returned)
        if not finished and not returned and room <= 0:
            return _Claimed()
        lease = Lease(instance=self._instance, token=next(self._tokens))
        lane, now, noted = self.lane, self._clock.now(), self._breaker

        def work(transaction: Transaction) -> _Claimed[T]:
            for each in finished:
                record(transaction, each, lane.schedule_s, now)
            for ready in returned:
                jobs.give_back(transaction, [ready.job.id], ready.lease)
            if noted.probe_at != self._noted.probe_at:
                self._note(transaction, noted, now)
            return _claim(transaction, lane, lease, now, room) if room > 0 else _Claimed()

        claimed = await self._writer.write(work)
        self._noted = noted
        del self._finished[: len(finished)], self._returned[: len(returned)]
        return replace(claimed, probe=noted.broken)

    def _note(self, transaction: Transaction, breaker: Breaker, now: int) -> None:
        broken = breaker.probe_at is not None
        wait_s = (breaker.probe_at or 0.0) - self._clock.monotonic()
        lanes.note(
            transaction,
            self.lane.target,
            failures=breaker.failures,
            broken_at=now if broken else None,
            probe_at=now + round(max(0.0, wait_s) * 1000) if broken else None,
            last_failure=self._last_failure,
        )

    async def _record_each(self, error: StoreRejected) -> None:
        """One result cannot be recorded as it is: that job is given up, the others are not."""
        log.error("results refused target=%s error=%s", self.lane.target, error)
        finished, self._finished = self._finished, []
        for each in finished:
            now = self._clock.now()
            try:
                await self._writer.write(
                    partial(record, done=each, schedule_s=self.lane.schedule_s, now=now)
                )
            except StoreRejected:
                outcome = "result refused by the store"
                give_up = partial(jobs.exhaust, job_id=each.job.id, outcome=outcome, now=now)
                await self._writer.write(give_up)
            except StoreError:
                self._finished.append(each)
        if not finished:  # nothing of ours was refused, so trying again at once would not help
            await self._pause(PAUSE_AFTER_TROUBLE_S)

    # --- attempts

    def _begin(self, *, probe: bool = False) -> None:
        """Fill the places. When the target broke while jobs were claimed, they are given back."""
        if self._stopping or (self._breaker.broken and not probe):
            return
        while self._ready and len(self._running) < self.lane.concurrency:
            task = asyncio.create_task(self._try(self._ready.popleft()), name=self.lane.target)
            self._running.add(task)
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        self._begin()
        self._wake.set()

    async def _try(self, ready: _Ready[T]) -> None:
        started_at, started = self._clock.now(), self._clock.monotonic()
        try:
            attempt = await self.lane.attempt(ready.subject, ready.job)
        except asyncio.CancelledError:
            attempt = Attempt(
                verdict=Verdict.LATER, outcome=INTERRUPTED, blames_target=False, spared=True
            )
        except Exception as error:
            log.exception("attempt failed target=%s job=%d", self.lane.target, ready.job.id)
            attempt = Attempt(verdict=Verdict.LATER, outcome=type(error).__name__)
        took_ms = round((self._clock.monotonic() - started) * 1000)
        self._judge(attempt)
        self._finished.append(
            Finished(
                job=ready.job,
                lease=ready.lease,
                attempt=attempt,
                started_at=started_at,
                took_ms=took_ms,
            )
        )

    def _judge(self, attempt: Attempt) -> None:
        """What the attempt says about the target."""
        if attempt.verdict is Verdict.DONE:
            if self._breaker.broken:
                log.warning("target is well again target=%s", self.lane.target)
            self._breaker = WELL
        elif self.lane.failures_max and attempt.blames_target:
            before = self._breaker
            self._last_failure = attempt.outcome
            now = self._clock.monotonic()
            self._breaker = after_failure(before, self.lane.failures_max, now)
            if self._breaker.broken and not before.broken:
                log.error(
                    "target is left alone target=%s failures=%d last=%s",
                    self.lane.target,
                    self._breaker.failures,
                    attempt.outcome,
                )


def _claim(
    transaction: Transaction, lane: Lane[T], lease: Lease, now: int, room: int
) -> _Claimed[T]:
    if lanes.is_paused(transaction, lane.target):
        forwarding.hold(transaction, lane.target, forwarding.PAUSED)
        return _Claimed()
    horizon = now + round(lane.horizon_s * 1000)
    found = claims.claim(transaction, lane.target, lease, now=now, horizon=horizon, limit=room)
    subjects = lane.read(transaction, [job.event_id for job in found]) if found else {}
    return _Claimed(
        ready=[_Ready(job, lease, subjects[job.event_id]) for job in found],
        next_due=jobs.next_due(transaction, lane.target),
    )
