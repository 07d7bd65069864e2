"""Connections that live on a thread of their own, so that an event loop need not wait for them.

Apart from the plain ones because aiosqlite brings asyncio with it, which no command that only looks
should have to load.
"""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import aiosqlite

from hookbox.errors import StoreError
from hookbox.store.connections import PRAGMAS, WRITER_PRAGMAS, named

T = TypeVar("T")

SYNCHRONOUS_FULL = 2


class ThreadConnection(aiosqlite.Connection):
    """aiosqlite's connection, with one more verb: a whole transaction as one call on its thread.

    A statement per await would cost a thread hop each and could be cancelled half-way, leaving
    BEGIN open for whoever comes next. One call cannot: the caller may go, the transaction ends by
    itself.
    """

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` on the connection's thread, where it may begin and commit."""
        result: T = await self._execute(work, self._conn)  # type: ignore[no-untyped-call]  # aiosqlite's own is untyped
        return result


class WriterConnection(ThreadConnection):
    """The one connection that writes and checkpoints."""


async def open_reader(path: Path) -> ThreadConnection:
    """A connection that can only look. Raises StoreError."""

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None
        )
        connection.row_factory = sqlite3.Row
        return connection

    reader = ThreadConnection(connect, iter_chunk_size=64)
    with named(path):
        await reader
        try:
            await reader.run(
                lambda connection: connection.executescript(PRAGMAS + "PRAGMA query_only = ON;")
            )
        except BaseException:
            await reader.close()  # its thread would keep the process from ending
            raise
    return reader


async def open_writer(path: Path) -> WriterConnection:
    """Raises StoreError when the settings that the promises rest on are not in force."""

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(path, isolation_level=None, cached_statements=256)
        connection.row_factory = sqlite3.Row
        return connection

    def settle(connection: sqlite3.Connection) -> None:
        connection.executescript(PRAGMAS + WRITER_PRAGMAS)
        (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
        (synchronous,) = connection.execute("PRAGMA synchronous").fetchone()
        if mode != "wal" or synchronous != SYNCHRONOUS_FULL:
            raise StoreError(
                f"{path}: journal_mode is {mode} and synchronous is {synchronous}, "
                f"need wal and {SYNCHRONOUS_FULL}: "
                "an acknowledged event would not survive a power cut here"
            )

    writer = WriterConnection(connect, iter_chunk_size=64)
    with named(path):
        await writer
        try:
            await writer.run(settle)
        except BaseException:
            await writer.close()  # its thread would keep the process from ending
            raise
    return writer
