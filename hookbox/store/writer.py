"""The writer: one connection, one owner task; everything that changes the database goes through it.

Batching is natural: whatever arrived while the last COMMIT was syncing rides the next one, and the
batch is taken after BEGIN, as late as possible. A caller only waits for a future, so a caller that
goes away changes nothing, and is only told "stored" after COMMIT returned. The writer alone
checkpoints.
"""

import asyncio
import contextlib
import logging
import sqlite3
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

from hookbox.clock import Clock
from hookbox.errors import HookboxError, Overloaded, StoreError, StoreRejected
from hookbox.model import Admission
from hookbox.store import admissions
from hookbox.store.admissions import Ids
from hookbox.store.channel import Channel
from hookbox.store.connections import Transaction, in_transaction, translated
from hookbox.store.proposals import Proposal
from hookbox.store.waiting import Entry, WaitingRoom, Work

log = logging.getLogger("hookbox.store")
T = TypeVar("T")

DEADLINE_S = 4.0  # the strictest senders wait for five
UNSTORABLE = "unstorable"


@dataclass(slots=True)
class _Batch:
    """What one transaction took; filled on the connection's thread, read by the owner after it."""

    taken: list[Entry] = field(default_factory=list)
    admitted: list[Admission] = field(default_factory=list)


class Writer:
    """Owns the writing connection from `start` to `stop`."""

    def __init__(self, path: Path, clock: Clock, channel: Channel | None = None) -> None:
        self._clock = clock
        self._room = WaitingRoom(clock)
        self._works: deque[Work] = deque()
        self._wanted = asyncio.Event()
        self._stopping = False
        self._owner: asyncio.Task[None] | None = None
        self._channel = channel or Channel(path, clock)
        self._failing: StoreError | None = None

    async def start(self) -> None:
        """Open the connection and begin to own it. Raises StoreError."""
        await self._channel.open()
        self._owner = asyncio.create_task(self._own(), name="writer")

    async def stop(self) -> None:
        """Commit what waits, fold the WAL into the database, close."""
        self._stopping = True
        self._wanted.set()
        if self._owner is not None:
            await self._owner
        await self._channel.close()

    @property
    def owner(self) -> asyncio.Task[None]:
        """The task that owns the connection, from `start` to `stop`."""
        assert self._owner is not None, "started"
        return self._owner

    @property
    def failing(self) -> StoreError | None:
        """Why the last deliveries were not stored; None since one was."""
        return self._failing

    @property
    def trouble(self) -> StoreError | None:
        """Why nothing can be stored at the moment; None when all is well."""
        return self._channel.trouble

    @property
    def ids(self) -> Ids:
        """The next free ids, for a transaction that admits besides what else it writes."""
        return self._channel.ids

    async def admit(
        self, proposals: Sequence[Proposal], deadline_s: float = DEADLINE_S
    ) -> Admission:
        """Store one delivery, given in chunks; what became of all of them, after the last COMMIT.

        Raises Overloaded at once when too much waits, and after the deadline when it is not known
        to be stored by then; StoreError when the database cannot take it.
        """
        if self.trouble is not None:
            raise self.trouble
        if self._stopping:
            raise Overloaded("the box is stopping")
        self._room.check()
        entries = [self._room.enter(proposal, deadline_s) for proposal in proposals]
        self._wanted.set()
        if len(entries) == 1:
            return await entries[0].answer
        try:
            return Admission.of([await entry.answer for entry in entries])
        finally:
            for entry in entries:  # who went away, or whose first chunk failed, waits for none
                entry.answer.cancel()

    async def write(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` in a transaction of its own; its result after COMMIT. Raises StoreError."""
        return await self._ask(partial(in_transaction, work=work))

    async def fold(self) -> bool:
        """Fold the WAL and empty it; False when a reader is in the way. Raises StoreError."""
        return await self._ask(self._channel.emptied)

    async def _ask(self, work: Callable[[sqlite3.Connection], T]) -> T:
        if self.trouble is not None:
            raise self.trouble
        if self._owner is None or self._owner.done():
            raise StoreError("the box is not running")
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._works.append(Work(work, answer))
        self._wanted.set()
        return await answer

    def wrote(self, rows: int) -> None:
        """A transaction changed so many rows, which is far more than most do."""
        self._channel.note(rows, 0)

    @property
    def quiet_for_s(self) -> float:
        """How long nobody has brought or awaited a delivery."""
        return self._room.quiet_for_s

    async def quiet(self, at_most_s: float) -> None:
        """Wait for a moment without deliveries, at most so long: senders go before the worker."""
        await self._room.quiet(at_most_s, lambda: self._stopping)

    # --- the owner task

    async def _own(self) -> None:
        try:
            await self._own_until_stopped()
        finally:
            self._fail_all(StoreError("the writer has ended"))  # nobody waits for what never comes

    async def _own_until_stopped(self) -> None:
        while True:
            if self._room:
                await self._commit_waiting()
            if self._works:
                await self._commit_work(self._works.popleft())
            if self._room or self._works:
                continue
            if self._stopping:
                return
            await self._rest()

    async def _rest(self) -> None:
        """Nothing waits: do the housekeeping that is due, then sleep until somebody comes."""
        self._wanted.clear()
        pause_s = await self._tend(self._channel.when_idle)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause_s):
                await self._wanted.wait()

    async def _commit_waiting(self) -> None:
        batch = _Batch()
        try:
            await self._channel.run(lambda connection: self._run_batch(connection, batch))
        except sqlite3.Error as error:
            await self._batch_failed(batch, error)
        except Exception as error:  # noqa: BLE001  (an unbindable value: one is guilty, not all)
            await self._store_alone(batch.taken, error)
        else:
            self._failing = None
            for entry, admission in zip(batch.taken, batch.admitted, strict=True):
                entry.resolve(admission)
            self._channel.note(len(batch.taken), sum(entry.bytes for entry in batch.taken))
        self._room.settled()
        await self._tend(self._channel.when_busy)
        if len(batch.taken) > 1:
            await self._let_answers_leave()

    async def _let_answers_leave(self) -> None:
        """Whoever was just answered asks again at once. Without these turns of the loop they would
        all miss the next batch, and two half-full batches would take turns for ever.
        """
        await self._clock.sleep(0)
        await self._clock.sleep(0)

    def _run_batch(self, connection: sqlite3.Connection, batch: _Batch) -> None:
        """On the connection's thread."""

        def work(transaction: Transaction) -> list[Admission]:
            batch.taken = self._room.take()
            proposals = [entry.proposal for entry in batch.taken]
            return admissions.admit(transaction, proposals, self._channel.ids, self._clock.now())

        try:
            batch.admitted = in_transaction(connection, work)
        except sqlite3.Error:
            if not batch.taken:  # BEGIN itself failed: whoever waits now is whom it failed for
                batch.taken = self._room.take()
            raise

    async def _batch_failed(self, batch: _Batch, error: sqlite3.Error) -> None:
        known = translated(error)
        if isinstance(known, StoreRejected):
            await self._store_alone(batch.taken, error)
            return
        self._failing = known
        log.error("commit failed deliveries=%d error=%s", len(batch.taken), known)
        for entry in batch.taken:
            entry.fail(known)
        await self._after(error)

    async def _store_alone(self, taken: Sequence[Entry], error: Exception) -> None:
        """One of them cannot be stored: a transaction for each, so that only that one pays."""
        log.error("batch not stored, trying each alone deliveries=%d error=%r", len(taken), error)
        for entry in taken:
            try:
                entry.resolve(await self._admit_alone(entry.proposal))
                self._failing = None
                self._channel.note(1, entry.bytes)
            except sqlite3.Error as alone:
                entry.fail(translated(alone))
                await self._after(alone)
            except Exception as alone:  # noqa: BLE001  (the caller is told, whatever it was)
                entry.fail(StoreRejected(f"a delivery cannot be stored: {alone!r}"))

    async def _admit_alone(self, proposal: Proposal) -> Admission:
        """Store it as it is; if that cannot be, each of its pieces; if not even that, its bytes go
        to quarantine: never lost.
        """
        try:
            return await self._channel.run(self._admitting(proposal))
        except Exception as error:
            if isinstance(error, sqlite3.Error) and not isinstance(
                translated(error), StoreRejected
            ):
                raise  # the disk's fault, or a lock's: the sender comes back
            log.error("delivery unstorable pieces=%d error=%r", proposal.rows, error)
        if proposal.rows > 1:
            return Admission.of([await self._admit_alone(piece) for piece in proposal.pieces()])
        return await self._channel.run(self._admitting(proposal.as_rotten(UNSTORABLE)))

    def _admitting(self, proposal: Proposal) -> Callable[[sqlite3.Connection], Admission]:
        def work(transaction: Transaction) -> Admission:
            now = self._clock.now()
            return admissions.admit(transaction, [proposal], self._channel.ids, now)[0]

        return lambda connection: in_transaction(connection, work)

    async def _commit_work(self, work: Work) -> None:
        if work.answer.cancelled():
            return
        try:
            result = await self._channel.run(work.run)
        except sqlite3.Error as error:
            work.fail(translated(error))
            await self._after(error)
        except HookboxError as error:
            work.fail(error)
        except Exception as error:  # noqa: BLE001  (a value that SQLite cannot bind, say)
            work.fail(StoreRejected(f"the work on the database failed: {error!r}"))
        else:
            work.resolve(result)
            self._channel.note(1, 0)
        await self._tend(self._channel.when_busy)

    async def _after(self, error: sqlite3.Error) -> None:
        """Nobody can be stored until the disk is well again."""
        await self._channel.recover(error, self._fail_all, lambda: self._stopping)

    async def _tend(self, due: Callable[[], Awaitable[float | None]]) -> float | None:
        """Checkpoint when it is time; a failure of it must not wait for the next commit to tell."""
        try:
            return await due()
        except sqlite3.Error as error:
            log.error("checkpoint failed error=%s", translated(error))
            await self._after(error)
            return 1.0

    def _fail_all(self, cause: StoreError) -> None:
        self._room.fail_all(cause)
        while self._works:
            self._works.popleft().fail(cause)
