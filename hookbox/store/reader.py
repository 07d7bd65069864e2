"""A read connection that stays open, for questions that are asked all the time.

Every question is one short read of its own: a read left open would keep the writer from folding the
WAL into the database.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from hookbox.errors import StoreError
from hookbox.store.connections import Transaction, named
from hookbox.store.threads import ThreadConnection, open_reader

T = TypeVar("T")


class Reader:
    """Reads on a thread of its own, from `start` to `stop`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: ThreadConnection | None = None

    async def start(self) -> None:
        """Raises StoreError."""
        self._connection = await open_reader(self._path)

    async def stop(self) -> None:
        if self._connection is not None:
            await self._connection.close()
            self._connection = None

    async def read(self, work: Callable[[Transaction], T]) -> T:
        """What `work` finds. Raises StoreError."""
        if self._connection is None:
            raise StoreError("the box is not running")
        with named(self._path):
            return await self._connection.run(work)
