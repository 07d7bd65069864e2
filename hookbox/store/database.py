"""The database of a state directory, for whoever looks at it or changes it from outside the server.

Exactly one process writes: the lock is held for the life of the server, or for the moment of a
command that writes while the server is stopped. Nothing here repairs a file: what is not a sound
hookbox database is refused and left alone.
"""

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from hookbox.errors import StoreError
from hookbox.store import schema
from hookbox.store.connections import (
    PRAGMAS,
    WRITER_PRAGMAS,
    Transaction,
    connect,
    in_transaction,
    named,
)
from hookbox.store.lock import Lock

T = TypeVar("T")

FILE_NAME = "hookbox.db"


@contextlib.contextmanager
def exclusive(state: Path) -> Iterator[Callable[[Callable[[Transaction], T]], T]]:
    """For a command that writes while the server is stopped: hold the lock and run transactions.

    Raises StoreBusy while a server runs; such a command asks the server instead.
    """
    lock = Lock(state)
    lock.acquire()
    path = state / FILE_NAME
    try:
        schema.prepare(path)
        connection = connect(path)
        connection.row_factory = sqlite3.Row
        connection.executescript(WRITER_PRAGMAS)
        try:
            with named(path):
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
    with named(path):
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None
        )
        connection.row_factory = sqlite3.Row
        connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
        try:
            connection.executescript(PRAGMAS + "PRAGMA query_only = ON;")
            schema.check_identity(connection, path)
            yield connection
        finally:
            connection.close()
