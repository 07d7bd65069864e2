"""Pollers: one for each polled source, each asking when it is time.

Soon after a start, every quarter of an hour with jitter (or as the source says), on SIGUSR1, when a
person asks, and when a webhook comes in for a source that its cursor drives. Trouble that may pass
is waited out, and a pause that the sender asks for is kept; trouble that takes a person stops that
source alone.
"""

import asyncio
import logging
import random
from collections.abc import Callable
from functools import partial

from hookbox.clock import Clock
from hookbox.errors import OperatorError
from hookbox.flows.fetch import Fetcher
from hookbox.flows.in_order import InOrder
from hookbox.flows.poll import BEGINNING, Rounds
from hookbox.flows.polling import End, Polling, Round, sequence
from hookbox.flows.sources import Source, Sources
from hookbox.net import Net
from hookbox.rules import backoff
from hookbox.store import gaps
from hookbox.store.writer import Writer

log = logging.getLogger("hookbox.poll")

TRY_AGAIN_AFTER_S = (15.0, 60.0, 300.0, 900.0)
# After a start senders try again what they could not deliver, and a person may be at it: whoever
# asks first has the first round.
START_AFTER_S = 5.0
GATHER_S = 0.2  # webhooks come in bursts: one round for all of them
CURSOR_MAX = 1_000


class _Poller:
    """The rounds of one source, one at a time."""

    def __init__(self, name: str, sources: Sources, rounds: Rounds, clock: Clock) -> None:
        self.name = name
        self._sources, self._rounds, self._clock = sources, rounds, clock
        self._turn = asyncio.Lock()
        # None: not until somebody asks.
        self._due: float | None = clock.monotonic() + START_AFTER_S
        # Before that, webhooks wake nobody.
        self._nudged_from: float | None = clock.monotonic()
        self._failures = 0
        self._woken = False
        self._stirred = asyncio.Event()

    def wake(self) -> None:
        """It is time, whatever happened before."""
        self._woken = True
        self._stirred.set()

    def nudge(self) -> None:
        """There is something to be had; but a sender that wants a pause gets it."""
        if self._nudged_from is not None and self._clock.monotonic() >= self._nudged_from:
            self.wake()

    async def run(self) -> None:
        """For ever. Whatever goes wrong in a round, the next one comes."""
        while True:
            await self._until_due()
            try:
                await self.round()
            except Exception:
                log.exception("poll failed source=%s", self.name)
                self._due = self._clock.monotonic() + TRY_AGAIN_AFTER_S[-1]

    async def round(self, begin: str | None = None) -> Round | None:
        """One round; None where the source is not polled any more."""
        async with self._turn:
            source = self._sources.get(self.name)
            if source is None or source.polling is None:
                return None
            self._woken = False  # whoever wakes it from now on may know of something newer
            done = await self._rounds.go(source, begin)
            self._settle(source.polling, done)
            return done

    def _settle(self, polling: Polling, done: Round) -> None:
        """When the next round is due."""
        good = done.end in (End.CAUGHT_UP, End.MORE)
        self._failures = 0 if good else self._failures + 1
        now = self._clock.monotonic()
        pause_s = _pause_s(polling, done, self._failures)
        self._due = None if pause_s is None else now + pause_s
        self._nudged_from = now if good else self._due
        self._stirred.set()

    async def _until_due(self) -> None:
        while not self._woken:
            self._stirred.clear()
            left_s = None if self._due is None else self._due - self._clock.monotonic()
            if left_s is not None and left_s <= 0:
                return
            await self._stir(left_s)
        await self._clock.sleep(GATHER_S)

    async def _stir(self, at_most_s: float | None) -> None:
        """Until somebody stirs it, at most so long."""
        waits: list[asyncio.Task[object]] = [asyncio.create_task(self._stirred.wait())]
        if at_most_s is not None:
            waits.append(asyncio.create_task(self._clock.sleep(at_most_s)))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()


def _pause_s(polling: Polling, done: Round, failures: int) -> float | None:
    """How long until the next round; None until somebody asks."""
    jitter = random.random()  # noqa: S311  (spreads load, protects nothing)
    if done.end is End.STOPPED:
        return None
    if done.end is End.MORE:  # at once, unless it may be that the same events come for ever
        return 0.0 if done.new else TRY_AGAIN_AFTER_S[0]
    if done.end in (End.CAUGHT_UP, End.STUCK):
        return polling.every_s * (1 + 0.1 * jitter)
    wait_s = backoff.delay_s(TRY_AGAIN_AFTER_S, failures - 1, jitter)
    return max(wait_s, done.retry_after_s or 0.0)


class Pollers:
    """All of them. `adopt` follows a change of sources, `stop` ends them. `stored` is called after
    each commit that brought something new.
    """

    def __init__(
        self,
        writer: Writer,
        net: Net,
        sources: Sources,
        clock: Clock,
        stored: Callable[[], None],
    ) -> None:
        self._writer, self._sources, self._clock = writer, sources, clock
        self.in_order = InOrder(writer, clock, self.nudge, stored)
        fetcher = Fetcher(net, Net(loopback=True))
        self._rounds = Rounds(writer, fetcher, self.in_order, clock, stored)
        self._pollers: dict[str, _Poller] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def adopt(self) -> None:
        """Poll the sources that are to be polled now, each of them soon, and no others. Raises
        StoreError.
        """
        await self.in_order.let_go(self._sources.all())
        wanted = {source.name for source in self._sources.all() if source.polling is not None}
        for name in self._tasks.keys() - wanted:
            self._tasks.pop(name).cancel()
            del self._pollers[name]
        for name in wanted:
            if name in self._tasks:
                self._pollers[name].wake()
            else:
                running = self._poller(name).run()
                self._tasks[name] = asyncio.create_task(running, name=f"poll {name}")

    async def stop(self) -> None:
        """Cut off what is under way; what was not stored is asked for again."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        self._tasks.clear()

    def wake_all(self) -> None:
        """Poll everything now."""
        for poller in self._pollers.values():
            poller.wake()

    def nudge(self, name: str) -> None:
        """A webhook says that there is something to be had."""
        if name in self._pollers:
            self._pollers[name].nudge()

    async def ask(self, name: str, begin: str | None = None) -> Round:
        """One round of this source, now. Raises OperatorError."""
        source = self._polled(name)
        _check_begin(source, begin)
        done = await self._poller(name).round(begin)
        if done is None:
            raise not_polled(name)
        return done

    async def close_gaps(self, name: str) -> int:
        """A person has looked at the sender: no gap of this source is open any more; how many
        were. Raises OperatorError.
        """
        source, now = self._polled(name), self._clock.now()
        return await self._writer.write(partial(gaps.close_all, source_id=source.id, now=now))

    def _polled(self, name: str) -> Source:
        source = self._sources.get(name)
        if source is None or source.polling is None:
            raise not_polled(name)
        return source

    def _poller(self, name: str) -> _Poller:
        if name not in self._pollers:
            self._pollers[name] = _Poller(name, self._sources, self._rounds, self._clock)
        return self._pollers[name]


def not_polled(name: str) -> OperatorError:
    return OperatorError(
        f"source {name} is not polled by the running server, which has not read its `poll` table, "
        "or could not use it; have it read (systemctl reload hookbox, or SIGHUP), and see its log"
    )


def _check_begin(source: Source, begin: str | None) -> None:
    """Raises OperatorError for a cursor that this feed cannot have."""
    assert source.polling is not None, "polled"
    if begin is None or begin == BEGINNING:
        return
    if source.polling.feed.sequential and sequence(begin) is None:
        raise OperatorError(f"{begin!r} is no cursor of this sender, which are whole numbers")
    if not begin.isprintable() or not 0 < len(begin) <= CURSOR_MAX:
        raise OperatorError(f"{begin!r} is no cursor")
