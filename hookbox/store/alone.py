"""Alone: the server's place, taken by a command for as long as its work lasts."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from hookbox.clock import Clock
from hookbox.store import database, schema
from hookbox.store.lock import Lock
from hookbox.store.state import prepare_state
from hookbox.store.writer import Writer


@asynccontextmanager
async def writer_alone(state: Path, clock: Clock) -> AsyncIterator[Writer]:
    """A writer of one's own; the lock is held, so there is still exactly one process that writes.

    Raises StoreBusy while a server runs.
    """
    prepare_state(state)
    lock = Lock(state)
    lock.acquire()
    try:
        path = state / database.FILE_NAME
        schema.prepare(path)
        writer = Writer(path, clock)
        await writer.start()
        try:
            yield writer
        finally:
            await writer.stop()
    finally:
        lock.release()
