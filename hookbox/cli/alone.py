"""The server's place, taken for a longer piece of work while no server runs."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from hookbox.cli.box import Box
from hookbox.store.alone import writer_alone
from hookbox.store.writer import Writer

T = TypeVar("T")


def alone(box: Box, work: Callable[[Writer], Awaitable[T]]) -> T:
    """What `work` comes to, with a writer of its own. Raises StoreBusy while a server runs."""

    async def run() -> T:
        async with writer_alone(box.state, box.clock) as writer:
            return await work(writer)

    return asyncio.run(run())
