"""A lane of the outbox: the jobs of one target, each tried until it is done or given up.

Lanes know nothing of each other, so a slow target holds up nobody else. What finished is recorded
in the transaction that claims what comes next. While the store cannot record, nothing new is
claimed: the other way round would repeat effects that nobody remembers.
"""

import asyncio
import contextlib
import logging
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial

from hookbox.clock import Clock
from hookbox.errors import StoreError, StoreRejected
from hookbox.model import StoredEvent
from hookbox.rules import backoff
from hookbox.store import events, jobs
from hookbox.store.connections import Transaction
from hookbox.store.jobs import Job, Lease
from hookbox.store.writer import Writer

log = logging.getLogger("hookbox.lane")

LOOK_AGAIN_S = 60.0  # when nobody woke it: a missed wake-up costs a minute
PAUSE_AFTER_TROUBLE_S = 1.0
RETRY_AFTER_MAX_S = 86_400.0  # what a target may ask for


class Verdict(Enum):
    """What one attempt says about its job."""

    DONE = auto()
    LATER = auto()
    NEVER = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """How one attempt went. `outcome` is a word for people; `excerpt` is cut to 200 characters."""

    verdict: Verdict
    outcome: str
    status: int | None = None
    excerpt: str = ""
    retry_after_s: float | None = None


# One try at one event's job. Whatever it raises counts as "later".
Try = Callable[[StoredEvent, Job], Awaitable[Attempt]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Finished:
    job: Job
    lease: Lease
    attempt: Attempt
    started_at: int
    took_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """What a lane is: its target, how one try is made, when to try again, how many at once."""

    target: str
    attempt: Try
    schedule_s: Sequence[float]
    concurrency: int = 1


class LaneRunner:
    """Runs one lane until stopped."""

    def __init__(self, lane: Lane, writer: Writer, clock: Clock, instance: int) -> None:
        self._lane, self._writer, self._clock, self._instance = lane, writer, clock, instance
        self._token = 0
        self._wake = asyncio.Event()
        self._stopping = False
        self._running: set[asyncio.Task[None]] = set()
        self._finished: list[_Finished] = []

    def wake(self) -> None:
        """There may be something to do."""
        self._wake.set()

    def stop(self) -> None:
        """Claim nothing more; end when what is under way has been recorded."""
        self._stopping = True
        self._wake.set()

    async def run(self) -> None:
        """Claim, try, record, until stopped."""
        while True:
            self._wake.clear()
            try:
                due = await self._turn()
            except StoreRejected as error:
                await self._record_each(error)
                continue
            except StoreError as error:
                log.warning("lane waits target=%s error=%s", self._lane.target, error)
                if self._stopping and not self._running:
                    return
                await self._pause(PAUSE_AFTER_TROUBLE_S)
                continue
            if self._stopping and not self._running and not self._finished:
                return
            await self._pause(self._until(due))

    async def abandon(self) -> None:
        """Cut off what is under way; the next start takes it back."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()

    def _until(self, due: int | None) -> float:
        if due is None or len(self._running) >= self._lane.concurrency:
            return LOOK_AGAIN_S
        return min(LOOK_AGAIN_S, max(0.01, (due - self._clock.now()) / 1000))

    async def _turn(self) -> int | None:
        """Record what finished and claim what there is room for; when the next is due."""
        finished = list(self._finished)
        room = 0 if self._stopping else self._lane.concurrency - len(self._running)
        if not finished and room <= 0:
            return None
        self._token += 1
        lease = Lease(instance=self._instance, token=self._token)
        now = self._clock.now()
        horizon = now + round(max(*self._lane.schedule_s, RETRY_AFTER_MAX_S) * 1100)

        def work(transaction: Transaction) -> tuple[list[Job], list[StoredEvent], int | None]:
            for each in finished:
                self._record(transaction, each, now)
            if room <= 0:
                return [], [], None
            found = jobs.claim(
                transaction, self._lane.target, lease, now=now, horizon=horizon, limit=room
            )
            read = events.by_id(transaction, [job.event_id for job in found]) if found else []
            return found, read, jobs.next_due(transaction, self._lane.target)

        claimed, read, due = await self._writer.write(work)
        del self._finished[: len(finished)]
        by_id = {event.id: event for event in read}
        for job in claimed:
            self._start(by_id[job.event_id], job, lease)
        return due

    async def _record_each(self, error: StoreRejected) -> None:
        """One result cannot be recorded as it is: that job is given up, the others are not."""
        log.error("results refused target=%s error=%s", self._lane.target, error)
        finished, self._finished = self._finished, []
        for each in finished:
            now = self._clock.now()
            try:
                await self._writer.write(partial(self._record, done=each, now=now))
            except StoreRejected:
                outcome = "result refused by the store"
                give_up = partial(jobs.exhaust, job_id=each.job.id, outcome=outcome, now=now)
                await self._writer.write(give_up)
            except StoreError:
                self._finished.append(each)
        if not finished:  # nothing of ours was refused, so trying again at once would not help
            await self._pause(PAUSE_AFTER_TROUBLE_S)

    def _start(self, event: StoredEvent, job: Job, lease: Lease) -> None:
        task = asyncio.create_task(self._try(event, job, lease), name=self._lane.target)
        self._running.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        self._wake.set()

    async def _try(self, event: StoredEvent, job: Job, lease: Lease) -> None:
        started_at, started = self._clock.now(), self._clock.monotonic()
        try:
            attempt = await self._lane.attempt(event, job)
        except Exception as error:
            log.exception("attempt failed target=%s event=%d", self._lane.target, event.id)
            attempt = Attempt(verdict=Verdict.LATER, outcome=type(error).__name__)
        took_ms = round((self._clock.monotonic() - started) * 1000)
        self._finished.append(
            _Finished(job=job, lease=lease, attempt=attempt, started_at=started_at, took_ms=took_ms)
        )

    def _record(self, transaction: Transaction, done: _Finished, now: int) -> None:
        job, attempt = done.job, done.attempt
        if job.id not in jobs.owned(transaction, [job.id], done.lease):
            return  # taken back meanwhile: a late finisher changes nothing
        jobs.record_attempt(
            transaction,
            job,
            started_at=done.started_at,
            took_ms=done.took_ms,
            outcome=attempt.outcome,
            status=attempt.status,
            excerpt=attempt.excerpt,
        )
        if attempt.verdict is Verdict.DONE:
            jobs.complete(transaction, [job.id], done.lease, outcome=attempt.outcome, now=now)
        elif attempt.verdict is Verdict.NEVER or job.attempts >= len(self._lane.schedule_s):
            log.warning("given up target=%s event=%d", self._lane.target, job.event_id)
            jobs.exhaust(transaction, job.id, outcome=attempt.outcome, now=now)
        else:
            run_at = now + round(self._wait_s(job, attempt) * 1000)
            jobs.put_off(transaction, job.id, run_at=run_at, outcome=attempt.outcome)

    def _wait_s(self, job: Job, attempt: Attempt) -> float:
        jitter = random.random()  # noqa: S311  (spreads load, protects nothing)
        wait_s = backoff.delay_s(self._lane.schedule_s, job.attempts, jitter)
        if attempt.retry_after_s is not None:
            wait_s = max(wait_s, min(attempt.retry_after_s, RETRY_AFTER_MAX_S))
        return wait_s
