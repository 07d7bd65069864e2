"""Standstill: nothing is applied while a rebuild makes its last comparison.

What arrives is still stored and acknowledged. A standstill ends by itself: a command that dies, or
takes too long, holds nothing up for good.
"""

import asyncio
import contextlib
from functools import partial
from pathlib import Path

from hookbox.errors import OperatorError
from hookbox.store import order, scratch, swap
from hookbox.store.decisions import Word
from hookbox.store.writer import Writer

LASTS_S = 20.0  # catching up with some hundred events and comparing them takes about a second


class Standstill:
    """At most one at a time. `turning` is what the worker holds while it applies."""

    def __init__(self, writer: Writer, turning: asyncio.Lock, state: Path) -> None:
        self._writer, self._turning, self._state = writer, turning, state
        self._over = asyncio.Event()
        self._standing: asyncio.Task[None] | None = None

    async def begin(self) -> int:
        """Stand still from now on; the place in the order that was reached.

        Raises OperatorError while another one lasts.
        """
        if self._stands:
            raise OperatorError("another rebuild is being finished; try again in a minute")
        self._over = asyncio.Event()
        reached = asyncio.Event()
        self._standing = asyncio.create_task(self._stand(reached, self._over), name="standstill")
        await reached.wait()
        return await self._writer.write(order.last_place)

    async def swap(self, scratch_name: str, position: int, word: Word) -> int:
        """Take over what was noted in a scratch ledger of this state directory, and go on; how
        many rows that were. Raises OperatorError, with nothing changed.
        """
        try:
            if not self._stands:
                raise OperatorError("the rebuild took too long, so nothing was changed")
            path = scratch.named(self._state, scratch_name)
            work = partial(swap.swap, path=path, position=position, word=word)
            return await self._writer.write(work)
        finally:
            self.end()

    def end(self) -> None:
        """Go on."""
        self._over.set()

    @property
    def _stands(self) -> bool:
        return self._standing is not None and not self._standing.done()

    async def _stand(self, reached: asyncio.Event, over: asyncio.Event) -> None:
        async with self._turning:
            reached.set()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LASTS_S):
                    await over.wait()
