"""Callers that wait for what has not happened yet: how many may, and only while they listen."""

import asyncio
import contextlib
from collections.abc import Coroutine, Iterator
from typing import Any, TypeVar

from litestar.exceptions import ServiceUnavailableException
from litestar.types import Receive

T = TypeVar("T")

RETRY_AFTER_S = 5


class Places:
    """For so many callers at once; whoever finds none is told to come back."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._taken = 0

    @contextlib.contextmanager
    def taken(self) -> Iterator[None]:
        """Raises ServiceUnavailableException."""
        if self._taken >= self._most:
            raise ServiceUnavailableException(
                f"{self._most} callers wait for events already, and that is as many as may",
                headers={"Retry-After": str(RETRY_AFTER_S)},
            )
        self._taken += 1
        try:
            yield
        finally:
            self._taken -= 1


async def while_there(receive: Receive, work: Coroutine[Any, Any, T]) -> T | None:
    """What `work` comes to; None when the caller hung up before, and then it is cut short."""
    working, leaving = asyncio.create_task(work), asyncio.create_task(_hang_up(receive))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        for task in (working, leaving):
            task.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)


async def _hang_up(receive: Receive) -> None:
    """Ends when the caller does."""
    while (await receive())["type"] != "http.disconnect":
        pass
