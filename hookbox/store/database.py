"""The database file: opening, checking, migrating, and the settings that the promises rest on.

Exactly one process writes: `Lock` is held for the life of the server, or for the moment of a command that writes while
the server is stopped. Nothing here repairs a file: what is not a sound hookbox database is refused and left alone.
"""

import contextlib
import fcntl
import os
import sqlite3
from collections.abc import Callable, Iterator
from importlib import resources
from pathlib import Path
from typing import TypeVar

import aiosqlite

from hookbox.errors import StoreBusy, StoreDamaged, StoreError, StoreFull, StoreRejected

Transaction = sqlite3.Connection
Row = sqlite3.Row
T = TypeVar("T")

FILE_NAME = "hookbox.db"
APPLICATION_ID = 0x686B6278  # "hkbx": tells our file from another program's
BUSY_TIMEOUT_MS = 1_500  # within every sender's patience (3 s and more), with room for the commit itself
JOURNAL_SIZE_LIMIT_BYTES = 4 * 1024 * 1024
READ_LIMIT_S = 2.0

# What every connection is told. `secure_delete` because builds differ and purged mail must be gone from the file;
# `mmap_size` 0 so that a read error is an error and not a SIGBUS.
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
SYNCHRONOUS_FULL = 2
REJECTIONS = (
    sqlite3.SQLITE_CONSTRAINT,
    sqlite3.SQLITE_MISMATCH,
    sqlite3.SQLITE_TOOBIG,
    sqlite3.SQLITE_RANGE,
)


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
        return StoreDamaged(f"the database is damaged ({text}); keep the files and restore a backup")
    if primary in REJECTIONS:
        return StoreRejected(f"the database does not take this row ({text})")
    return StoreError(f"the database failed ({text})")


def is_broken_disk(error: sqlite3.Error) -> bool:
    """An error after which nothing that this connection believes about the disk can be trusted."""
    return (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF == sqlite3.SQLITE_IOERR


class Lock:
    """The claim to be the one process that writes, held by flock until `release` or the end of the process."""

    def __init__(self, state: Path) -> None:
        self._path = state / "hookbox.lock"
        self._fd: int | None = None

    def acquire(self) -> None:
        """Raises StoreBusy when another process has it."""
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            owner = os.pread(fd, 20, 0).decode("ascii", "replace").strip()
            os.close(fd)
            raise StoreBusy(
                f"{self._path.parent} is in use by another hookbox (process {owner or 'unknown'}); "
                "stop that one first, or give this one its own state directory with --state"
            ) from None
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
        self._fd = fd

    def release(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def is_locked(state: Path) -> bool:
    """Whether some process holds the state directory right now."""
    lock = Lock(state)
    try:
        lock.acquire()
    except StoreBusy:
        return True
    lock.release()
    return False


def migrations() -> list[tuple[int, str]]:
    """Every migration as (number, SQL), in order. Forward only: a released one never changes."""
    folder = resources.files("hookbox.store") / "migrations"
    files = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return [(int(name.split("_")[0]), (folder / name).read_text()) for name in files]


def prepare(path: Path) -> None:
    """Make the file ready for use: create it, or check it and bring its schema up to date.

    Raises StoreDamaged for a file that is not ours or not sound, StoreError for one made by a newer hookbox.
    """
    fresh = not path.exists()
    if fresh:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    connection = _connect(path)
    try:
        with _named(path):
            if fresh or path.stat().st_size == 0:
                connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # only takes in an empty file
            else:
                _check_identity(connection, path)
            _enter_wal(connection)
            _migrate(connection, path)
    finally:
        connection.close()


@contextlib.contextmanager
def _named(path: Path) -> Iterator[None]:
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


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.executescript(PRAGMAS)
    return connection


def _check_identity(connection: sqlite3.Connection, path: Path) -> None:
    (application_id,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if application_id != APPLICATION_ID and tables:
        raise StoreDamaged(
            f"{path} is the database of another program; nothing was changed. "
            "Give hookbox its own state directory with --state"
        )
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    newest = migrations()[-1][0]
    if version > newest:
        raise StoreError(
            f"{path} was made by a newer hookbox (schema {version}, this program knows {newest}); "
            "nothing was changed. Install that version again, or restore a backup made before the upgrade"
        )


def _enter_wal(connection: sqlite3.Connection) -> None:
    (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise StoreError(f"the file system of the state directory cannot hold a WAL database (mode {mode})")
    connection.executescript(WRITER_PRAGMAS)


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    """One transaction per migration, its number inside it, so that a kill leaves either all of it or nothing."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    for number, sql in migrations():
        if number <= version:
            continue
        stamp = f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {number};"
        try:
            connection.executescript(f"BEGIN EXCLUSIVE; {sql} {stamp} COMMIT;")
        except sqlite3.Error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


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


@contextlib.contextmanager
def exclusive(state: Path) -> Iterator[Callable[[Callable[[Transaction], T]], T]]:
    """For a command that writes while the server is stopped: hold the lock and run transactions.

    Raises StoreBusy while a server runs; such a command asks the server instead.
    """
    lock = Lock(state)
    lock.acquire()
    path = state / FILE_NAME
    try:
        prepare(path)
        connection = _connect(path)
        connection.row_factory = sqlite3.Row
        connection.executescript(WRITER_PRAGMAS)
        try:
            with _named(path):
                yield lambda work: in_transaction(connection, work)
        finally:
            connection.close()
    finally:
        lock.release()


@contextlib.contextmanager
def reading(state: Path) -> Iterator[Transaction]:
    """A read-only look at the database, with or without a server beside it."""
    path = state / FILE_NAME
    if not path.exists():
        raise StoreError(f"no database at {path} yet; start the box once with: hookbox serve")
    with _named(path):
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)
        connection.row_factory = sqlite3.Row
        connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
        try:
            connection.executescript(PRAGMAS + "PRAGMA query_only = ON;")
            _check_identity(connection, path)
            yield connection
        finally:
            connection.close()


class WriterConnection(aiosqlite.Connection):
    """aiosqlite's connection, with one more verb: a whole transaction as one call on its thread.

    A statement per await would cost a thread hop each and could be cancelled half-way, leaving BEGIN open for whoever
    comes next. One call cannot: the caller may go, the transaction ends by itself.
    """

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` on the connection's thread, where it may begin and commit."""
        result: T = await self._execute(work, self._conn)  # type: ignore[no-untyped-call]  # aiosqlite's own is untyped
        return result


async def open_writer(path: Path) -> WriterConnection:
    """The one connection that writes and checkpoints. Raises StoreError when its settings are not in force."""

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
                f"{path}: journal_mode is {mode} and synchronous is {synchronous}, need wal and {SYNCHRONOUS_FULL}: "
                "an acknowledged event would not survive a power cut here"
            )

    writer = WriterConnection(connect, iter_chunk_size=64)
    with _named(path):
        await writer
        try:
            await writer.run(settle)
        except BaseException:
            await writer.close()  # its thread would keep the process from ending
            raise
    return writer
