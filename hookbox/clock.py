"""The only place that asks what time it is, and the only one that waits.

Everything else is given `now`, or a `Clock`, so that a test can move time by hand.
"""

import time
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import asyncio


class Clock(Protocol):
    """Wall time for what is stored and shown; monotonic time for deadlines inside this process."""

    def now(self) -> int:
        """Milliseconds since 1970, UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds from an unknown start; never steps back."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


class SystemClock:
    """The machine's own clock."""

    def now(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        import asyncio  # 24 ms that no command which only looks should pay for

        await asyncio.sleep(seconds)


class ManualClock:
    """A clock that stands still until it is moved: for tests, and for looking at another moment."""

    def __init__(self, now: int = 1_700_000_000_000) -> None:
        self._now = now
        self._monotonic = 0.0
        self._sleepers: list[tuple[float, asyncio.Event]] = []

    def now(self) -> int:
        return self._now

    def monotonic(self) -> float:
        return self._monotonic

    def step(self, seconds: float) -> None:
        """Set the wall clock forward or back, as NTP does: monotonic time and sleepers do not
        notice.
        """
        self._now += round(seconds * 1000)

    def advance(self, seconds: float) -> None:
        """Let time pass: both clocks move, and whoever slept long enough wakes."""
        self._now += round(seconds * 1000)
        self._monotonic += seconds
        due = [sleeper for sleeper in self._sleepers if sleeper[0] <= self._monotonic]
        self._sleepers = [sleeper for sleeper in self._sleepers if sleeper[0] > self._monotonic]
        for _, event in due:
            event.set()

    async def sleep(self, seconds: float) -> None:
        import asyncio

        if seconds <= 0:
            await asyncio.sleep(0)
            return
        event = asyncio.Event()
        self._sleepers.append((self._monotonic + seconds, event))
        await event.wait()
