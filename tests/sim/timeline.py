"""Virtual time: an event loop that never waits, and the clock that it moves.

Whenever nothing is ready, time jumps to the next thing that is due. So a run of hours takes
milliseconds, and the same seed always runs the same way.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any

START_AT = 1_700_000_000_000
ROUNDS_MAX = 400_000  # of the loop in one life: thousands are usual


class Crash(KeyboardInterrupt):
    """The process dies here. The one kind of error that no flow and no event loop catches."""


class Broken(KeyboardInterrupt):
    """A promise is broken. No flow catches this either, so the run ends where it happened."""


class VirtualClock:
    """Wall time that can be set, over monotonic time that only goes on."""

    def __init__(self) -> None:
        self._monotonic_s = 0.0
        self._wall_at_start = START_AT

    def now(self) -> int:
        return self._wall_at_start + round(self._monotonic_s * 1000)

    def monotonic(self) -> float:
        return self._monotonic_s

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def step(self, seconds: float) -> None:
        """Set the wall clock forward or back."""
        self._wall_at_start += round(seconds * 1000)

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._monotonic_s += seconds


class VirtualLoop(asyncio.BaseEventLoop):
    """Runs one life of the process. It is dropped, not closed, when that ends: a process that dies
    cleans nothing up.
    """

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__()
        self._clock = clock
        self._selector = self  # where the base class waits for whatever comes from outside
        self._rounds = 0
        self._tasks: list[asyncio.Task[Any]] = []
        self.surprises: list[str] = []
        self.set_exception_handler(self._surprised)

    def live(self, life: Coroutine[Any, Any, str]) -> str:
        """Run it to its end, or to a crash."""
        task = self.create_task(life)
        task.add_done_callback(lambda _: self.stop())
        try:
            self.run_forever()
            return task.result()
        finally:
            for each in self._tasks:
                each.get_coro().close()  # without a word: nobody is there any more

    def create_task(self, *args: Any, **kwargs: Any) -> asyncio.Task[Any]:
        task = super().create_task(*args, **kwargs)
        self._tasks.append(task)
        return task

    def time(self) -> float:
        return self._clock.monotonic()

    def select(self, timeout: float | None) -> list[object]:
        """Nothing comes from outside, so there is no need to wait for it."""
        self._rounds += 1
        if timeout is None:
            raise Broken("everybody waits for ever")
        if self._rounds > ROUNDS_MAX:
            raise Broken("somebody goes round and round")
        if timeout > 0:
            self._clock.advance(timeout)
        return []

    def _process_events(self, events: object) -> None:
        """There are none."""

    def _write_to_self(self) -> None:
        """Nobody calls from another thread."""

    def _surprised(self, loop: object, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if self.is_running() and not isinstance(error, Crash | Broken):
            self.surprises.append(f"{context['message']}: {error!r}")

    def __del__(self, *_: object) -> None:
        """The base class would complain that it was not closed."""
