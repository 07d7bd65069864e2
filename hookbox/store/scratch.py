"""A fresh ledger beside the live one, in which everything is worked out anew.

It has the live schema but none of its promises: it is thrown away when something goes wrong, and
afterwards in any case.
"""

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from hookbox.errors import OperatorError
from hookbox.store import connections, schema
from hookbox.store.connections import Transaction

# Rows stand for events and decisions whose deliveries and sources are in the live database alone.
PRAGMAS = """
PRAGMA journal_mode = MEMORY;
PRAGMA synchronous = OFF;
PRAGMA foreign_keys = OFF;
PRAGMA temp_store = MEMORY;
"""
DIFFERENCES = """
CREATE TABLE difference (
  what TEXT NOT NULL,
  key TEXT NOT NULL,
  before TEXT,
  PRIMARY KEY (what, key)
) STRICT, WITHOUT ROWID;
"""
PREFIX, SUFFIX = "rebuild-", ".db"


def named(state: Path, name: str) -> Path:
    """The scratch ledger of that name in a state directory. Raises OperatorError for a name that
    leads elsewhere.
    """
    if "/" in name or not (name.startswith(PREFIX) and name.endswith(SUFFIX)):
        raise OperatorError(f"{name!r} is no scratch ledger; nothing was changed")
    return state / name


@contextlib.contextmanager
def fresh(state: Path) -> Iterator[tuple[str, Transaction]]:
    """An empty ledger and its name. It is gone at the end, and with it what killed processes left
    behind.
    """
    for left in state.glob(f"{PREFIX}*{SUFFIX}"):
        if not _alive(left):
            left.unlink()
    path = state / f"{PREFIX}{os.getpid()}{SUFFIX}"
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    try:
        connected = contextlib.closing(sqlite3.connect(path, isolation_level=None))
        with connections.named(path), connected as made:
            made.row_factory = sqlite3.Row
            made.executescript(PRAGMAS)
            for _, sql in schema.migrations():
                made.executescript(f"BEGIN; {sql} COMMIT;")
            made.executescript(DIFFERENCES)
            yield path.name, made
    finally:
        path.unlink()


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Transaction]:
    """Another process's scratch ledger, to look at. Raises OperatorError when it is gone."""
    if not path.exists():
        raise OperatorError(f"{path} is gone; nothing was changed")
    uri = f"{path.absolute().as_uri()}?mode=ro"
    connected = contextlib.closing(sqlite3.connect(uri, uri=True))
    with connections.named(path), connected as connection:
        connection.row_factory = sqlite3.Row
        yield connection


def _alive(path: Path) -> bool:
    """Whether the process that made it still runs."""
    number = path.name.removeprefix(PREFIX).removesuffix(SUFFIX)
    if not number.isdigit():
        return True
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True
