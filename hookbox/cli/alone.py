"""The server's place, taken for a longer piece of work while no server runs."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from hookbox.cli.box import Box
from hookbox.store import database, schema
from hookbox.store.lock import Lock
from hookbox.store.writer import Writer

T = TypeVar("T")


def alone(box: Box, work: Callable[[Writer], Awaitable[T]]) -> T:
    """What `work` comes to, with a writer of its own. Raises StoreBusy while a server runs."""
    database.prepare_state(box.state)
    lock = Lock(box.state)
    lock.acquire()
    try:
        path = box.state / database.FILE_NAME
        schema.prepare(path)
        return asyncio.run(_written(Writer(path, box.clock), work))
    finally:
        lock.release()


async def _written(writer: Writer, work: Callable[[Writer], Awaitable[T]]) -> T:
    await writer.start()
    try:
        return await work(writer)
    finally:
        await writer.stop()
