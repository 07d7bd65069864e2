"""The outbox: the lanes that are running, one for each target, changed while they run."""

import asyncio
import contextlib
import itertools
from collections.abc import Collection, Iterable
from functools import partial
from typing import Any

from hookbox.clock import Clock
from hookbox.errors import StoreError
from hookbox.flows.lane import Lane, LaneRunner
from hookbox.store import forwarding
from hookbox.store.writer import Writer

RECORD_WITHIN_S = 1.0  # what was cut short at a stop


class Outbox:
    """Runs lanes until `stop`. Lanes know nothing of each other."""

    def __init__(self, writer: Writer, clock: Clock, instance: int) -> None:
        self._writer, self._clock, self._instance = writer, clock, instance
        self._tokens = itertools.count(1)
        self._stopping = False
        self._lanes: dict[str, LaneRunner[Any]] = {}
        self._tasks: dict[asyncio.Task[None], LaneRunner[Any]] = {}  # of lanes that end, too

    def adopt(self, lanes: Iterable[Lane[Any]]) -> list[asyncio.Task[None]]:
        """Make these the lanes that run; the tasks that began.

        A lane that is another now, or gone, ends when what is under way in it is recorded; the new
        one need not wait for that, since jobs are claimed.
        """
        wanted = {lane.target: lane for lane in lanes}
        for target, runner in list(self._lanes.items()):
            if target not in wanted or wanted[target].fingerprint != runner.lane.fingerprint:
                self._lanes.pop(target).stop()
        return [self._begin(lane) for target, lane in wanted.items() if target not in self._lanes]

    def _begin(self, lane: Lane[Any]) -> asyncio.Task[None]:
        runner = LaneRunner(lane, self._writer, self._clock, self._instance, self._tokens)
        task = asyncio.create_task(self._run(runner), name=lane.target)
        self._lanes[lane.target], self._tasks[task] = runner, runner
        task.add_done_callback(self._tasks.pop)
        return task

    async def _run(self, runner: LaneRunner[Any]) -> None:
        try:
            await runner.run()
            if not self._stopping and runner.lane.target not in self._lanes:
                await self._hold_rest(runner.lane.target)
        finally:
            await runner.lane.close()

    async def _hold_rest(self, target: str) -> None:
        """What a lane that is gone put off at last would look as if it were due.

        It may have come back meanwhile, its jobs released before this holds them: then they are
        released again. Where it is paused, its new lane holds them anew.
        """
        hold = partial(forwarding.hold, target=target, outcome=forwarding.UNCONFIGURED, limit=-1)
        release = partial(forwarding.release, target=target, limit=-1)
        with contextlib.suppress(StoreError):  # then the next start sees to it
            await self._writer.write(hold)
            if target in self._lanes:
                await self._writer.write(release)
                self.wake({target})

    def wake(self, targets: Collection[str] | None = None) -> None:
        """There may be something to do in these lanes, or in any."""
        for target, runner in self._lanes.items():
            if targets is None or target in targets:
                runner.wake()

    def recall(self, target: str) -> None:
        """A person has paused this lane: what was claimed and not begun goes back at once."""
        if target in self._lanes:
            self._lanes[target].recall()

    async def stop(self, grace_s: float) -> None:
        """Let what is under way be recorded; what takes longer is cut short and tried again at the
        next start.
        """
        self._stopping = True
        tasks = dict(self._tasks)
        for runner in tasks.values():
            runner.stop()
        late = await _wait(tasks, grace_s)
        for task in late:
            tasks[task].abandon()
        for task in await _wait(late, RECORD_WITHIN_S):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _wait(
    tasks: Collection[asyncio.Task[None]], timeout_s: float
) -> Collection[asyncio.Task[None]]:
    """Those that have not ended by then."""
    return (await asyncio.wait(tasks, timeout=timeout_s))[1] if tasks else ()
