"""A signal that many may wait for, and nobody misses."""

import asyncio


class Signal:
    """Whoever waits takes `next()` first, then looks at what the signal is about, and then waits:
    what happens after the look rings what was taken.
    """

    def __init__(self) -> None:
        self._next = asyncio.Event()

    def next(self) -> asyncio.Event:
        """Set at the next ring."""
        return self._next

    def ring(self) -> None:
        """Wake everybody who waits now."""
        rung, self._next = self._next, asyncio.Event()
        rung.set()
