"""The disk: what is committed stays, what is not is gone when the process dies.

It is one SQLite connection in memory, with the product's own schema and settings, that outlives
the processes. It fails, or lets them die, where a commit begins or ends.
"""

import sqlite3
from collections import Counter
from collections.abc import Callable
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from hookbox.store import admissions, connections, schema
from hookbox.store.channel import Channel
from tests.sim.timeline import Broken, Crash, VirtualClock

T = TypeVar("T")

TABLES = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
COMMIT_S = 0.002
COMMITS_MAX, SPAN_S = 400, 10.0  # a busy run makes half as many in so long a time

# What a commit may end with instead, as SQLite reports it.
TROUBLES = {
    "full": (sqlite3.SQLITE_FULL, "SQLITE_FULL", "database or disk is full"),
    "broken": (sqlite3.SQLITE_IOERR, "SQLITE_IOERR_FSYNC", "disk I/O error"),
    "locked": (sqlite3.SQLITE_BUSY, "SQLITE_BUSY", "database is locked"),
}


class _Connection(sqlite3.Connection):
    """Tells its disk where transactions begin and end."""

    disk: "Disk"

    def execute(self, sql: str, *values: object) -> sqlite3.Cursor:
        if sql == "COMMIT":
            done = super().execute("COMMIT" if self.disk.commit() else "SELECT 1")
            self.disk.committed()
            return done
        if sql == "BEGIN IMMEDIATE" and not self.disk.begin():
            return super().execute("SELECT 1")
        return super().execute(sql, *values)  # type: ignore[arg-type]

    def executemany(self, sql: str, *values: object) -> sqlite3.Cursor:
        if sql is admissions.INSERT_EVENTS:
            self.disk.admitting = True
        return super().executemany(sql, *values)  # type: ignore[arg-type]


@cache
def _connection() -> _Connection:
    """One for all runs: emptying it is much quicker than to make another."""
    connection = sqlite3.connect(
        ":memory:", isolation_level=None, cached_statements=512, factory=_Connection
    )
    connection.row_factory = sqlite3.Row
    connection.executescript(connections.PRAGMAS)
    for _, sql in schema.migrations():
        connection.executescript(sql)
    return connection


@cache
def _tables() -> list[str]:
    """Every table, before those that it refers to, so that each can be emptied in turn. (Without
    foreign keys the order would not matter, but to switch them off makes SQLite compile every
    statement anew.)
    """
    connection = _connection()
    names = [row["name"] for row in connection.execute(TABLES)]
    refers = {
        name: {row["table"] for row in connection.execute(f"PRAGMA foreign_key_list({name})")}
        for name in names
    }
    return list(TopologicalSorter(refers).static_order())[::-1]


class _Spell(NamedTuple, Generic[T]):
    """Something that holds for a while."""

    what: T
    until: float


class Disk:
    """An empty database. `hasty`: what is admitted is told to be committed before it
    is."""

    def __init__(self, clock: VirtualClock, *, hasty: bool = False) -> None:
        self.connection = _connection()
        self.connection.disk = self
        self.hasty = hasty
        self._clock = clock
        self._trouble = _Spell("", 0.0)
        self._slowness = _Spell(0.0, 0.0)
        self.seen: Counter[str] = Counter()
        self._deadly: dict[str, int] = {}
        self.admitting = False  # the transaction at hand stores deliveries
        self._in_span: Counter[int] = Counter()
        self._empty()

    def _empty(self) -> None:
        if self.connection.in_transaction:
            self.connection.rollback()
        self.connection.execute("BEGIN")
        for table in _tables():
            self.connection.execute(f"DELETE FROM {table}")
        self.connection.commit()

    @property
    def trouble(self) -> str:
        """Why nothing can be committed at the moment."""
        return self._trouble.what if self._clock.monotonic() < self._trouble.until else ""

    @property
    def commit_s(self) -> float:
        """How long it takes at the moment until whoever waits for a commit is told."""
        slow = self._clock.monotonic() < self._slowness.until
        return self._slowness.what if slow else COMMIT_S

    def fail(self, trouble: str, until: float) -> None:
        """Every commit fails until then."""
        self._trouble = _Spell(trouble, until)

    def be_slow(self, commit_s: float, until: float) -> None:
        """Every commit takes so long until then."""
        self._slowness = _Spell(commit_s, until)

    def crash_at_commit(self, count: int, moment: str) -> None:
        """Let the process die `before` or `after` one of the next commits."""
        self._deadly[moment] = count

    def calm(self) -> None:
        """Nothing happens to it any more."""
        self._deadly.clear()
        self._trouble, self._slowness = _Spell("", 0.0), _Spell(0.0, 0.0)

    def crash(self) -> None:
        """The process is gone, and with it what was not committed."""
        self._deadly.clear()
        if self.connection.in_transaction:
            self.connection.rollback()

    # --- what the connection tells

    def begin(self) -> bool:
        """Whether the transaction begins; else it goes on with one that is open still."""
        if self.trouble == "locked":
            raise self._error()
        self.admitting = False
        return not self.connection.in_transaction

    def commit(self) -> bool:
        """Whether it is committed; else it only looks so."""
        self._die("before")
        if self.trouble:
            raise self._error()
        if self.hasty and self.admitting:
            return False
        self._count()
        return True

    def _count(self) -> None:
        """Who commits as often as this has nothing to commit."""
        self.seen["commits"] += 1
        span = int(self._clock.monotonic() / SPAN_S)
        self._in_span[span] += 1
        if self._in_span[span] > COMMITS_MAX:
            raise Broken(f"{COMMITS_MAX} commits within {SPAN_S:.0f} s")

    def committed(self) -> None:
        self._die("after")

    def close(self) -> None:
        """The process ends in peace."""
        if self.connection.in_transaction:
            sqlite3.Connection.commit(self.connection)

    def _die(self, moment: str) -> None:
        left = self._deadly.get(moment)
        if left is None:
            return
        self._deadly[moment] = left - 1
        if left <= 1:
            del self._deadly[moment]
            self.seen[f"crashes {moment} a commit"] += 1
            raise Crash

    def _error(self) -> sqlite3.Error:
        code, name, text = TROUBLES[self.trouble]
        error = sqlite3.OperationalError(text)
        error.sqlite_errorcode, error.sqlite_errorname = code, name
        return error


class DiskChannel(Channel):
    """The writer's way to this disk. Its thread is the one that everything runs in."""

    def __init__(self, disk: Disk, clock: VirtualClock) -> None:
        super().__init__(Path(), clock)
        self._disk, self._its_clock = disk, clock

    async def open(self) -> None:
        """It is open as long as the process lives."""

    async def close(self) -> None:
        self._disk.close()

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        result = work(self._disk.connection)
        await self._its_clock.sleep(self._disk.commit_s)
        return result

    async def when_busy(self) -> float | None:
        """There is no WAL to be folded."""

    async def when_idle(self) -> float | None:
        """Nor now."""

    async def _opened_anew(self, attempt: int) -> bool:
        return not self._disk.trouble
