"""The outbox: the lanes that are running, one for each target, changed while they run."""

import asyncio
import logging
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from hookbox.clock import Clock
from hookbox.flows.lane import Lane, LaneRunner
from hookbox.store.writer import Writer

log = logging.getLogger("hookbox.outbox")

INTERRUPTED_WITHIN_S = 1.0  # for recording what was cut short


class Outbox:
    """Runs lanes from `begin` to `stop`. Lanes know nothing of each other."""

    def __init__(self, writer: Writer, clock: Clock, instance: int) -> None:
        self._writer, self._clock, self._instance = writer, clock, instance
        self._runners: dict[str, LaneRunner[Any]] = {}
        self._running: dict[str, asyncio.Task[None]] = {}
        self._ending: set[asyncio.Task[None]] = set()

    def adopt(self, lanes: Iterable[Lane[Any]]) -> Iterator[asyncio.Task[None]]:
        """Make these the lanes that run: new ones begin, changed ones go on as they are now, and
        those that are gone end when what is under way is recorded. Yields the tasks that began.
        """
        wanted = {lane.target: lane for lane in lanes}
        for target in self._runners.keys() - wanted.keys():
            self._end(target)
        for target, lane in wanted.items():
            if target in self._runners:
                self._runners[target].lane = lane
                self._runners[target].wake()
            else:
                yield self._begin(lane)

    def _begin(self, lane: Lane[Any]) -> asyncio.Task[None]:
        runner = LaneRunner(lane, self._writer, self._clock, self._instance)
        task = asyncio.create_task(runner.run(), name=lane.target)
        self._runners[lane.target], self._running[lane.target] = runner, task
        return task

    def _end(self, target: str) -> None:
        self._runners.pop(target).stop()
        task = self._running.pop(target)
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    def wake(self, targets: Collection[str] | None = None) -> None:
        """There may be something to do in these lanes, or in any."""
        for target, runner in self._runners.items():
            if targets is None or target in targets:
                runner.wake()

    async def stop(self, grace_s: float) -> None:
        """Let what is under way be recorded; what takes longer is cut short and tried again later."""
        for runner in self._runners.values():
            runner.stop()
        tasks = {*self._running.values(), *self._ending}
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=grace_s)
        if late:
            for runner in self._runners.values():
                runner.abandon()
            _, late = await asyncio.wait(late, timeout=INTERRUPTED_WITHIN_S)
        for task in late:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
