"""Connections to the database, and the settings that the promises rest on."""

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from types import NoneType
from typing import TypeVar

from hookbox.errors import StoreBusy, StoreDamaged, StoreError, StoreFull, StoreRejected

Transaction = sqlite3.Connection
Row = sqlite3.Row
T = TypeVar("T")

# Within every sender's patience (3 s and more), with room for the commit itself.
BUSY_TIMEOUT_MS = 1_500
JOURNAL_SIZE_LIMIT_BYTES = 4 * 1024 * 1024

# What every connection is told. `secure_delete` because builds differ and purged mail must be gone
# from the file; `mmap_size` 0 so that a read error is an error and not a SIGBUS.
PRAGMAS = f"""
PRAGMA busy_timeout = {BUSY_TIMEOUT_MS};
PRAGMA foreign_keys = ON;
PRAGMA trusted_schema = OFF;
PRAGMA cell_size_check = ON;
PRAGMA mmap_size = 0;
PRAGMA temp_store = MEMORY;
PRAGMA secure_delete = ON;
"""
WRITER_PRAGMAS = f"""
PRAGMA synchronous = FULL;
PRAGMA fullfsync = ON;
PRAGMA wal_autocheckpoint = 0;
PRAGMA journal_size_limit = {JOURNAL_SIZE_LIMIT_BYTES};
"""
REJECTIONS = (
    sqlite3.SQLITE_CONSTRAINT,
    sqlite3.SQLITE_MISMATCH,
    sqlite3.SQLITE_TOOBIG,
    sqlite3.SQLITE_RANGE,
)

# sqlite3 asks for an adapter of every value that is not exactly an int, float, str or bytearray,
# and for want of one makes an error and drops it: a tenth of the time of storing a row.
sqlite3.register_adapter(bytes, bytes)
sqlite3.register_adapter(bool, int)
sqlite3.register_adapter(NoneType, lambda _: None)


def translated(error: sqlite3.Error) -> StoreError:
    """The store's word for what SQLite reported."""
    code = getattr(error, "sqlite_errorcode", None) or 0
    name = getattr(error, "sqlite_errorname", None) or type(error).__name__
    text = f"{name}: {error}"
    primary = code & 0xFF
    if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreBusy(f"another program holds the database's write lock ({text})")
    if primary == sqlite3.SQLITE_FULL:
        return StoreFull(f"the disk that holds the database is full ({text}); free some space")
    if primary in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return StoreDamaged(
            f"the database is damaged ({text}); keep the files and restore a backup"
        )
    if primary in REJECTIONS:
        return StoreRejected(f"the database does not take this row ({text})")
    return StoreError(f"the database failed ({text})")


def is_broken_disk(error: sqlite3.Error) -> bool:
    """An error after which nothing that this connection believes about the disk can be trusted."""
    return (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF == sqlite3.SQLITE_IOERR


@contextlib.contextmanager
def named(path: Path) -> Iterator[None]:
    """Errors of SQLite as errors of the store, with the file's name and the way out."""
    try:
        yield
    except sqlite3.Error as error:
        known = translated(error)
        if isinstance(known, StoreDamaged):
            raise StoreDamaged(
                f"{path} is not a sound hookbox database ({error}); nothing was changed. "
                "Keep the file, then put a backup in its place with: hookbox restore FILE"
            ) from error
        raise type(known)(f"{path}: {known}") from error


def connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.executescript(PRAGMAS)
    return connection


def in_transaction(connection: sqlite3.Connection, work: Callable[[Transaction], T]) -> T:
    """Run `work` inside BEGIN IMMEDIATE … COMMIT. Any error leaves nothing behind.

    A full disk ends a transaction by itself, so ROLLBACK is only for one that is still there.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        result = work(connection)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return result
