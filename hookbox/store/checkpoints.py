"""When the WAL is folded into the database.

`wal_autocheckpoint` is off and only the writer calls this, so that no two connections ever
checkpoint (SQLite before 3.51.3 loses data in a race between two). PASSIVE in quiet moments keeps
commits quick; TRUNCATE waits for long idleness.
"""

import sqlite3

from hookbox.clock import Clock
from hookbox.store.connections import BUSY_TIMEOUT_MS
from hookbox.store.threads import WriterConnection

PAGE_BYTES = 4096
# A delivery, an event, a job and their indexes share pages inside a batch; measured 3 to 7.
PAGES_PER_ROW = 4
IDLE_PAGES = 1_000  # 4 MB: checkpoint when nothing waits
# 16 MB: checkpoint even under load, or the WAL would grow for as long as the load lasts.
FORCED_PAGES = 4_000
TRUNCATE_AFTER_IDLE_S = 30.0
TRUNCATE_BUSY_MS = 100  # a reader that stays must not hold up whoever comes in meanwhile


class Checkpoints:
    """Counts what was written since the last checkpoint. SQLite tells the exact number only by
    checkpointing, and asking the WAL's files from this process would drop SQLite's own locks on
    them, so it is an estimate.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._pages = 0
        self._written_at: float | None = None  # monotonic; None when the WAL is known to be empty

    def note(self, rows: int, body_bytes: int) -> None:
        """Remember that a commit wrote about this much."""
        self._pages += rows * PAGES_PER_ROW + body_bytes // PAGE_BYTES
        self._written_at = self._clock.monotonic()

    async def when_busy(self, connection: WriterConnection) -> float | None:
        """Called after each commit."""
        if self._pages >= FORCED_PAGES:
            await self._passive(connection)
        return None

    async def when_idle(self, connection: WriterConnection) -> float | None:
        """Called when nothing waits; the seconds after which to be called again, None when there is
        nothing to do.
        """
        if self._written_at is None:
            return None
        if self._pages >= IDLE_PAGES:
            await self._passive(connection)
        idle_s = self._clock.monotonic() - self._written_at
        if idle_s < TRUNCATE_AFTER_IDLE_S:
            return TRUNCATE_AFTER_IDLE_S - idle_s + 0.01
        return None if await self.truncate(connection) else TRUNCATE_AFTER_IDLE_S

    async def _passive(self, connection: WriterConnection) -> None:
        def checkpoint(raw: sqlite3.Connection) -> None:
            raw.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()

        await connection.run(checkpoint)
        self._pages = 0

    async def fold(self, connection: WriterConnection) -> bool:
        """Have every frame in the database and synced, whether or not a reader lets the WAL be
        emptied; False when a reader's old snapshot is in the way even of that.
        """
        if await self.truncate(connection):
            return True

        def checkpoint(raw: sqlite3.Connection) -> bool:
            (_, frames, folded) = raw.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            return bool(frames == folded)

        return await connection.run(checkpoint)

    async def truncate(self, connection: WriterConnection) -> bool:
        """Fold everything into the database, empty the WAL; False when a reader is in the way."""
        return await connection.run(self.emptied)

    def emptied(self, raw: sqlite3.Connection) -> bool:
        """The same, on the connection's thread."""
        raw.execute(f"PRAGMA busy_timeout = {TRUNCATE_BUSY_MS}")
        try:
            (busy, _, _) = raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        finally:
            raw.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
        if busy:
            return False
        self._pages = 0
        self._written_at = None
        return True
