"""The writer: one connection, one owner task, and everything that changes the database passes through it.

Batching is natural: whatever arrived while the last COMMIT was syncing rides the next one, and the batch is taken after
BEGIN, as late as possible. A caller only waits for a future, so a caller that goes away changes nothing; a caller is only
told "stored" after COMMIT returned. The writer alone checkpoints.
"""

import asyncio
import contextlib
import logging
import sqlite3
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from hookbox.clock import Clock
from hookbox.errors import (
    HookboxError,
    Overloaded,
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreRejected,
)
from hookbox.model import Admission, Rotten
from hookbox.store import admissions
from hookbox.store.admissions import Ids, Proposal
from hookbox.store.checkpoints import Checkpoints
from hookbox.store.database import (
    Transaction,
    WriterConnection,
    in_transaction,
    is_broken_disk,
    open_writer,
    translated,
)

log = logging.getLogger("hookbox.store")
T = TypeVar("T")

BATCH_ROWS_MAX = 256  # about 5 ms of inserting on a small machine, so that nobody waits long behind a batch
WAITING_MAX = 1_024  # the public door holds at most 400 connections; the rest is chunks of large deliveries
WAITING_BYTES_MAX = 32 * 1024 * 1024  # bodies held in memory while they wait
WAITING_AGE_MAX_S = 2.0  # a disk that stalls longer than this makes newcomers wait past their sender's patience
QUIET_S = 0.005  # senders that wait for one answer before the next request pause for less than this
REOPEN_PAUSES_S = (0.1, 1.0, 5.0, 30.0)  # after a broken disk; the last one repeats
UNSTORABLE = "unstorable"


@dataclass(slots=True, eq=False)
class _Waiting:
    """One proposal and the caller who waits for it."""

    proposal: Proposal
    answer: asyncio.Future[Admission]
    since: float
    bytes: int


@dataclass(slots=True)
class _Batch:
    """What one transaction took; filled on the connection's thread, read by the owner task afterwards."""

    taken: list[_Waiting] = field(default_factory=list)
    admitted: list[Admission] = field(default_factory=list)


@dataclass(slots=True)
class _Work:
    run: Callable[[Transaction], Any]
    answer: asyncio.Future[Any]


class Writer:
    """Owns the writing connection from `start` to `stop`."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path, self._clock = path, clock
        self._waiting: deque[_Waiting] = deque()
        self._works: deque[_Work] = deque()
        self._waiting_bytes = 0
        self._in_flight_since: float | None = None
        self._wanted = asyncio.Event()
        self._last_delivery = float("-inf")
        self._stopping = False
        self._trouble: StoreError | None = None
        self._owner: asyncio.Task[None] | None = None
        self._connection: WriterConnection | None = None
        self._checkpoints = Checkpoints(clock)
        self._ids = Ids()
        self.commits = 0

    async def start(self) -> None:
        """Open the connection and begin to own it. Raises StoreError."""
        self._connection = await open_writer(self._path)
        self._ids = await self._connection.run(Ids.read)
        self._owner = asyncio.create_task(self._own(), name="writer")

    async def stop(self) -> None:
        """Commit what waits, fold the WAL into the database, close."""
        self._stopping = True
        self._wanted.set()
        if self._owner is not None:
            await self._owner
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                await self._checkpoints.truncate(self._connection)
            await self._connection.close()
            self._connection = None

    async def admit(self, proposals: Sequence[Proposal]) -> Admission:
        """Store one delivery, given in chunks; the sum of what became of them, after the last COMMIT.

        Raises Overloaded at once when too much waits, StoreError when the database cannot take it now.
        """
        self._check_room()
        entries = [self._enqueue(proposal) for proposal in proposals]
        self._wanted.set()
        try:
            return _sum([await entry.answer for entry in entries])
        finally:
            for entry in entries:  # a caller that went away, or whose first chunk failed, waits for none of them
                entry.answer.cancel()

    async def write(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` in a transaction of its own and return its result after COMMIT. Raises StoreError."""
        if self._trouble is not None:
            raise self._trouble
        if self._stopping:
            raise StoreError("the box is stopping")
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._works.append(_Work(work, answer))
        self._wanted.set()
        return await answer

    async def quiet(self, at_most_s: float) -> None:
        """Wait for a moment without deliveries, at most so long: background work gives way to senders."""
        until = self._clock.monotonic() + at_most_s
        while not self._stopping and self._clock.monotonic() < until:
            since_s = self._clock.monotonic() - self._last_delivery
            if not self._waiting and since_s >= QUIET_S:
                return
            await self._clock.sleep(QUIET_S)

    @property
    def trouble(self) -> StoreError | None:
        """Why nothing can be stored at the moment; None when all is well."""
        return self._trouble

    # --- the callers' side

    def _check_room(self) -> None:
        if self._trouble is not None:
            raise self._trouble
        if self._stopping:
            raise Overloaded("the box is stopping")
        oldest = self._in_flight_since
        if oldest is None and self._waiting:
            oldest = self._waiting[0].since
        too_old = oldest is not None and self._clock.monotonic() - oldest > WAITING_AGE_MAX_S
        if too_old or len(self._waiting) >= WAITING_MAX or self._waiting_bytes >= WAITING_BYTES_MAX:
            raise Overloaded(f"{len(self._waiting)} deliveries wait to be stored")

    def _enqueue(self, proposal: Proposal) -> _Waiting:
        size = len(proposal.delivery.body)
        answer: asyncio.Future[Admission] = asyncio.get_running_loop().create_future()
        answer.add_done_callback(_retrieve)
        self._last_delivery = self._clock.monotonic()
        entry = _Waiting(proposal, answer, self._last_delivery, size)
        self._waiting_bytes += size
        self._waiting.append(entry)
        return entry

    # --- the owner's side

    async def _own(self) -> None:
        while True:
            if self._waiting:
                await self._commit_waiting()
            if self._works:
                await self._commit_work(self._works.popleft())
            if self._waiting or self._works:
                continue
            if self._stopping:
                return
            await self._rest()

    async def _rest(self) -> None:
        """Nothing waits: do the housekeeping that is due, then sleep until somebody comes."""
        self._wanted.clear()
        pause_s = await self._tend(self._checkpoints.when_idle)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause_s):
                await self._wanted.wait()

    async def _commit_waiting(self) -> None:
        assert self._connection is not None, "started"
        batch = _Batch()
        self._in_flight_since = self._waiting[0].since
        try:
            await self._connection.run(lambda connection: self._run_batch(connection, batch))
        except sqlite3.Error as error:
            await self._batch_failed(batch, error)
        except Exception as error:  # unbindable values and the like: one of them is guilty, the others are not
            await self._retry_alone(batch.taken, error)
        else:
            for entry, admission in zip(batch.taken, batch.admitted, strict=True):
                _resolve(entry, admission)
            self._checkpoints.note(len(batch.taken), sum(entry.bytes for entry in batch.taken))
        self._in_flight_since = None
        self.commits += 1
        await self._tend(self._checkpoints.when_busy)
        if len(batch.taken) > 1:
            await self._let_answers_leave()

    async def _let_answers_leave(self) -> None:
        """Callers just answered send their next request at once; without this turn of the loop they would miss the next
        batch and two half-full batches would take turns for ever."""
        await self._clock.sleep(0)
        await self._clock.sleep(0)

    def _run_batch(self, connection: sqlite3.Connection, batch: _Batch) -> None:
        def work(transaction: Transaction) -> list[Admission]:
            self._take(batch)
            proposals = [entry.proposal for entry in batch.taken]
            return admissions.admit(transaction, proposals, self._ids, self._clock.now())

        try:
            batch.admitted = in_transaction(connection, work)
        except sqlite3.Error:
            if not batch.taken:  # BEGIN itself failed: whoever waits now is who it failed for
                self._take(batch)
            raise

    def _take(self, batch: _Batch) -> None:
        """Runs on the connection's thread, beside the callers: a deque is safe for that."""
        rows = 0
        while self._waiting and rows < BATCH_ROWS_MAX:
            entry = self._waiting.popleft()
            self._waiting_bytes -= entry.bytes
            if entry.answer.cancelled():
                continue
            batch.taken.append(entry)
            rows += max(1, entry.proposal.rows)

    async def _batch_failed(self, batch: _Batch, error: sqlite3.Error) -> None:
        known = translated(error)
        if isinstance(known, StoreBusy | StoreFull | StoreDamaged) or is_broken_disk(error):
            log.error("commit failed entries=%d error=%s", len(batch.taken), known)
            for entry in batch.taken:
                _fail(entry, known)
            if isinstance(known, StoreDamaged):
                self._trouble = known
            elif is_broken_disk(error):
                await self._reopen(known)
        else:
            await self._retry_alone(batch.taken, error)

    async def _retry_alone(self, taken: Sequence[_Waiting], error: Exception) -> None:
        """One of them cannot be stored; each gets a transaction of its own, so that only that one pays."""
        log.error("batch refused entries=%d error=%r", len(taken), error)
        for entry in taken:
            try:
                _resolve(entry, await self._admit_alone(entry.proposal))
            except sqlite3.Error as alone:
                _fail(entry, translated(alone))
            except Exception as alone:
                _fail(entry, StoreError(f"cannot be stored: {alone!r}"))

    async def _admit_alone(self, proposal: Proposal) -> Admission:
        """Store it as it is; if that cannot be, keep its bytes in quarantine: authentic is never lost."""

        def attempt(offered: Proposal) -> Callable[[sqlite3.Connection], Admission]:
            def work(transaction: Transaction) -> Admission:
                return admissions.admit(transaction, [offered], self._ids, self._clock.now())[0]

            return lambda connection: in_transaction(connection, work)

        assert self._connection is not None, "started"
        try:
            return await self._connection.run(attempt(proposal))
        except Exception as error:
            log.error("delivery unstorable error=%r", error)
            aside = Rotten(reason=UNSTORABLE, content=proposal.delivery.body)
            return await self._connection.run(attempt(Proposal(delivery=proposal.delivery, rotten=(aside,))))

    async def _commit_work(self, work: _Work) -> None:
        assert self._connection is not None, "started"
        if work.answer.cancelled():
            return
        try:
            result = await self._connection.run(lambda connection: in_transaction(connection, work.run))
        except sqlite3.Error as error:
            if not work.answer.done():
                work.answer.set_exception(translated(error))
            if is_broken_disk(error):
                await self._reopen(translated(error))
        except HookboxError as error:
            if not work.answer.done():
                work.answer.set_exception(error)
        except Exception as error:  # a value that SQLite cannot bind, say
            if not work.answer.done():
                work.answer.set_exception(StoreRejected(f"the work on the database failed: {error!r}"))
        else:
            if not work.answer.done():
                work.answer.set_result(result)
            self._checkpoints.note(1, 0)
        self.commits += 1
        await self._tend(self._checkpoints.when_busy)

    async def _tend(self, due: Callable[[WriterConnection], Any]) -> float | None:
        """Checkpoint when it is time; a failure is trouble for the next commit to report, not for this moment."""
        assert self._connection is not None, "started"
        try:
            pause_s: float | None = await due(self._connection)
        except sqlite3.Error as error:
            log.error("checkpoint failed error=%s", translated(error))
            if is_broken_disk(error):
                await self._reopen(translated(error))
            return 1.0
        return pause_s

    async def _reopen(self, cause: StoreError) -> None:
        """The disk said no. Believe nothing that the old connection believed: close it, open anew, and fold the WAL into
        the database before anybody is told "stored" again, since frames whose sync failed may not be on disk."""
        self._trouble = cause
        for attempt in range(1_000_000):
            with contextlib.suppress(sqlite3.Error):
                if self._connection is not None:
                    await self._connection.close()
            self._fail_waiting(cause)
            await self._clock.sleep(REOPEN_PAUSES_S[min(attempt, len(REOPEN_PAUSES_S) - 1)])
            try:
                self._connection = await open_writer(self._path)
                await self._checkpoints.truncate(self._connection)
                self._ids = await self._connection.run(Ids.read)
            except (sqlite3.Error, StoreError) as error:
                log.error("reopening failed attempt=%d error=%s", attempt + 1, error)
                if self._stopping:
                    return
                continue
            self._trouble = None
            log.warning("database reopened attempts=%d", attempt + 1)
            return

    def _fail_waiting(self, cause: StoreError) -> None:
        while self._waiting:
            entry = self._waiting.popleft()
            self._waiting_bytes -= entry.bytes
            _fail(entry, cause)
        while self._works:
            work = self._works.popleft()
            if not work.answer.done():
                work.answer.set_exception(cause)


def _sum(parts: Sequence[Admission]) -> Admission:
    return Admission(
        new=sum(part.new for part in parts),
        duplicate=sum(part.duplicate for part in parts),
        conflicting=sum(part.conflicting for part in parts),
        quarantined=sum(part.quarantined for part in parts),
    )


def _resolve(entry: _Waiting, admission: Admission) -> None:
    if not entry.answer.done():
        entry.answer.set_result(admission)


def _fail(entry: _Waiting, error: StoreError) -> None:
    if not entry.answer.done():
        entry.answer.set_exception(error)


def _retrieve(answer: asyncio.Future[Admission]) -> None:
    """A caller that gave up never asks; that is no reason for a warning about an exception nobody saw."""
    if not answer.cancelled():
        answer.exception()
