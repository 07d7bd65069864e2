"""Copies of a database: made page by page from one snapshot, checked as a whole.

The pages come from one read transaction, so what is committed meanwhile is not in the copy and
changes nothing about it. Copying in steps without that transaction would let go of the WAL between
the steps, but SQLite begins anew whenever another process has written: under load it never ends.
(`VACUUM INTO` keeps its snapshot too, takes three times as long, and cannot be counted against it.)
"""

import contextlib
import shutil
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

from hookbox.errors import OperatorError, StoreDamaged, StoreError
from hookbox.store.connections import PRAGMAS, Transaction, translated

TABLES = """
SELECT name FROM sqlite_schema
WHERE type = 'table' AND name <> 'meta' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name
"""
SIZE = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"
STEP_PAGES = 1_024  # 4 MB: a person who presses Ctrl-C is heard after each
# What is left free besides. Below it the box takes nothing in when the database is on that disk.
RESERVE_BYTES = 64 * 1024 * 1024

WRITE_ERRORS = (
    sqlite3.SQLITE_IOERR_WRITE,
    sqlite3.SQLITE_IOERR_FSYNC,
    sqlite3.SQLITE_IOERR_TRUNCATE,
)

Counts = Mapping[str, int]


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Transaction]:
    """A look at a database that nobody else uses, with its WAL where it has one. Raises
    sqlite3.Error, as every look at it may.
    """
    # Without a WAL nothing may be made beside it: it may lie where nobody can write.
    alone = "" if path.with_name(f"{path.name}-wal").exists() else "&immutable=1"
    uri = f"{path.absolute().as_uri()}?mode=ro{alone}"
    with closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as connection:
        connection.row_factory = sqlite3.Row
        connection.executescript(PRAGMAS + "PRAGMA query_only = ON;")
        yield connection


@contextlib.contextmanager
def snapshot(connection: Transaction) -> Iterator[None]:
    """From the first look on, everything is seen as it was then."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")


def counts(connection: Transaction) -> Counts:
    """How many rows each table has, but for the one of counters."""
    names = [row["name"] for row in connection.execute(TABLES)]
    return {
        name: connection.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for name in names
    }


def check_room(connection: Transaction, folder: Path, times: int = 1) -> None:
    """Raises OperatorError where a copy (`times` over) would fill the disk."""
    (size,) = connection.execute(SIZE).fetchone()
    needed, free = size * times + RESERVE_BYTES, shutil.disk_usage(folder).free
    if free < needed:
        raise OperatorError(
            f"{folder} has {free // 2**20} MB free, and {needed // 2**20} MB are needed; nothing "
            "was written. Free some, or choose another place"
        )


def copy(source: Transaction, into: Path) -> None:
    """Every page of what `source` sees into an empty file, which is then one file without a WAL.

    Nothing is synced: whoever publishes the draft does that once.
    """
    with (
        written(into),
        closing(sqlite3.connect(into, isolation_level=None)) as made,
    ):
        made.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;")
        source.backup(made, pages=STEP_PAGES)
        made.execute("PRAGMA journal_mode = DELETE").fetchone()


@contextlib.contextmanager
def written(into: Path) -> Iterator[None]:
    """Errors of the disk that is written to are told from those of the database."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", None) or 0
        if code & 0xFF != sqlite3.SQLITE_FULL and code not in WRITE_ERRORS:
            raise
        why = "is full" if code & 0xFF == sqlite3.SQLITE_FULL else f"cannot be written ({error})"
        raise OperatorError(
            f"{into.parent} {why}; what was written there is removed again. Free some space, or "
            "choose another place"
        ) from error


def check(path: Path, wanted: Counts) -> None:
    """Open a copy as a stranger would. Raises StoreDamaged when it is not sound, StoreError when
    it holds less or more than it should.

    `integrity_check` and not the quicker one: that does not look at whether the indexes fit their
    tables, and one of them decides what is new.
    """
    try:
        with opened(path) as connection:
            (told,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
            found = counts(connection) if told == "ok" else {}
    except sqlite3.Error as error:
        raise translated(error) from error
    if told != "ok":
        raise StoreDamaged(told)
    if found != wanted:
        tables = sorted({*found, *wanted})
        differing = ", ".join(name for name in tables if found.get(name) != wanted.get(name))
        raise StoreError(f"the copy at {path} holds other rows than what was copied ({differing})")
