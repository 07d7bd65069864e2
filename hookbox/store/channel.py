"""The writer's connection over its whole life: opened, tended, opened anew when the disk failed.

Owns nothing of what is written. Used by the writer's owner task alone.
"""

import asyncio
import contextlib
import itertools
import logging
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from hookbox.clock import Clock
from hookbox.errors import StoreDamaged, StoreError
from hookbox.store import wal
from hookbox.store.admissions import Ids
from hookbox.store.checkpoints import Checkpoints
from hookbox.store.connections import is_broken_disk, translated
from hookbox.store.threads import WriterConnection, open_writer

log = logging.getLogger("hookbox.store")
T = TypeVar("T")

GIVE_UP_EVERY_S = 0.25
REOPEN_PAUSES_S = (0.1, 1.0, 5.0, 30.0)  # after a broken disk; the last one repeats


class Channel:
    """One connection after another to the same file."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path, self._clock = path, clock
        self._connection: WriterConnection | None = None
        self._checkpoints = Checkpoints(clock)
        self.ids = Ids()  # the next free ids, for whoever admits
        self.trouble: StoreError | None = None  # why nothing can be stored at the moment

    async def open(self) -> None:
        """Raises StoreError."""
        self._connection = await open_writer(self._path)

    async def close(self) -> None:
        """Fold the WAL into the database if that can be, and close."""
        if self._connection is None:
            return
        with contextlib.suppress(
            sqlite3.Error, ValueError, StoreError
        ):  # ValueError: closed already
            if self.trouble is not None:
                await asyncio.to_thread(wal.settle, self._path)
            await self._checkpoints.truncate(self._connection)
        with contextlib.suppress(sqlite3.Error, ValueError):
            await self._connection.close()
        self._connection = None

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` on the connection's thread."""
        return await self._open_one.run(work)

    def note(self, rows: int, body_bytes: int) -> None:
        """A commit wrote about this much."""
        self._checkpoints.note(rows, body_bytes)

    async def when_busy(self) -> float | None:
        """The housekeeping that cannot wait, after each commit."""
        return await self._checkpoints.when_busy(self._open_one)

    def emptied(self, connection: sqlite3.Connection) -> bool:
        """Fold the WAL and empty it; False when a reader is in the way. On its own thread."""
        return self._checkpoints.emptied(connection)

    async def when_idle(self) -> float | None:
        """The housekeeping that can; the seconds until more of it is due."""
        return await self._checkpoints.when_idle(self._open_one)

    async def recover(
        self,
        error: sqlite3.Error,
        fail_all: Callable[[StoreError], None],
        give_up: Callable[[], bool],
    ) -> None:
        """What an error means for the commits to come.

        After a broken disk nothing that the old connection believed is believed any more: it is
        closed, a new one opened, and the WAL written again and folded into the database before
        anybody is told "stored" again, since frames whose sync failed may not be on the disk.
        """
        cause = translated(error)
        if isinstance(cause, StoreDamaged):
            self.trouble = cause
            fail_all(cause)
        elif is_broken_disk(error):
            self.trouble = cause
            for attempt in itertools.count(1):
                fail_all(cause)
                await self._pause(REOPEN_PAUSES_S[min(attempt, len(REOPEN_PAUSES_S)) - 1], give_up)
                if await self._opened_anew(attempt):
                    self.trouble = None
                    return
                if give_up():
                    return

    async def _pause(self, seconds: float, give_up: Callable[[], bool]) -> None:
        """Wait, but not for a box that is stopping."""
        until = self._clock.monotonic() + seconds
        while self._clock.monotonic() < until and not give_up():
            await self._clock.sleep(min(seconds, GIVE_UP_EVERY_S))

    async def _opened_anew(self, attempt: int) -> bool:
        try:
            # Before the close, which folds when it is the last one, and after it, since its own
            # sync may have failed.
            await asyncio.to_thread(wal.settle, self._path)
            with contextlib.suppress(sqlite3.Error, ValueError):
                await self._open_one.close()
            await asyncio.to_thread(wal.settle, self._path)
            await self.open()
            folded = await self._checkpoints.fold(self._open_one)
        except (sqlite3.Error, StoreError) as error:
            log.error("reopening failed attempt=%d error=%s", attempt, error)
            return False
        if folded:
            log.warning("database reopened attempts=%d", attempt)
        else:
            log.error("reopened, but a reader keeps the WAL from being folded attempt=%d", attempt)
        return folded

    @property
    def _open_one(self) -> WriterConnection:
        assert self._connection is not None, "the channel is open from start to stop"
        return self._connection
