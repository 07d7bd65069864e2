"""Retain: once an hour, what was kept for long enough goes.

It gives way to senders: each step is a few milliseconds of the writer's time, taken when nobody
waits, and after it there is a pause ten times as long where somebody does. How far it came is
written down with each step, so that a stop or a kill costs nothing.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from hookbox.clock import Clock
from hookbox.errors import StoreError
from hookbox.store import retention
from hookbox.store.connections import Transaction
from hookbox.store.retention import Counts
from hookbox.store.sweeps import Horizons, Sweep, all_of_a_pass
from hookbox.store.writer import Writer

log = logging.getLogger("hookbox.retain")

FIRST_AFTER_S = 60.0  # what a start has to do comes first; a box that restarts often still forgets
SILENCE_MAX_MS = 7 * 86_400_000
EVERY_S = 3_600.0
# A step holds the writer for so long and one more look at the clock, and then for its commit.
STEP_S = 0.002
YIELD_SHARE = 10
YIELD_MAX_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ages:
    """How long content is kept, and how long events are known."""

    bodies_s: int
    keys_s: int

    def horizons(self, now: int, *, spare: bool = False) -> Horizons:
        """What is old enough now."""
        return Horizons(
            bodies=now - self.bodies_s * 1000, keys=now - self.keys_s * 1000, now=now, spare=spare
        )


@dataclass(slots=True)
class _Pass:
    """One pass under way: what is left of it, and what went so far."""

    left: list[Sweep]
    counts: Counts


class Retention:
    """Runs until cancelled. `turning`: whoever holds it keeps the ledger still. `trusted`: whether
    the time can be believed; while it cannot, nothing is too old.
    """

    ages: Ages

    def __init__(
        self,
        writer: Writer,
        clock: Clock,
        turning: asyncio.Lock,
        trusted: Callable[[], bool] = lambda: True,
    ) -> None:
        self._writer, self._clock, self._turning, self._trusted = writer, clock, turning, trusted
        self._resumed: _Pass | None = None  # of a command that comes back for the rest

    async def run(self) -> None:
        """A pass now and then. Trouble with the store is waited out."""
        await self._clock.sleep(FIRST_AFTER_S)
        while True:
            try:
                if self._trusted() and await self._heard_lately():
                    await self.purge()
            except StoreError as error:
                log.warning("retention waits error=%s", error)
            await self._clock.sleep(EVERY_S)

    async def _heard_lately(self) -> bool:
        """A clock that is far ahead makes everything old. When nobody has sent anything for a week,
        by that clock, nothing new needs the room either.
        """
        newest = await self._writer.write(retention.newest)
        return newest is not None and newest > self._clock.now() - SILENCE_MAX_MS

    async def purge(self) -> Counts:
        """One whole pass; what went."""
        going = self._begun(spare=True)
        while going.left:
            await self._step(going)
        if going.counts:
            await self._writer.quiet(YIELD_MAX_S)
            await self._writer.fold()  # what went is in the WAL's old frames until then
            told = " ".join(f"{kind}={count}" for kind, count in sorted(going.counts.items()))
            log.info("retention took %s", told)
        return going.counts

    async def purge_some(self, seconds: float) -> tuple[Counts, bool]:
        """For a command: go on with its pass for so long; what went, and whether that was all.

        No room is spared in the file, and at the end the WAL is emptied.
        """
        going = self._resumed or self._begun(spare=False)
        self._resumed = None
        until = self._clock.monotonic() + seconds
        while going.left and self._clock.monotonic() < until:
            await self._step(going)
        if going.left:
            self._resumed = _Pass(going.left, Counter())
        else:
            await self._writer.fold()
        return going.counts, not going.left

    def _begun(self, *, spare: bool) -> _Pass:
        horizons = self.ages.horizons(self._clock.now(), spare=spare)
        return _Pass(list(all_of_a_pass(horizons)), Counter())

    async def _step(self, going: _Pass) -> None:
        """One transaction. When it fails, nothing of it happened, and the pass is over."""
        counts: Counts = Counter()
        work = partial(_some, sweep=going.left[0], clock=self._clock, counts=counts)
        async with self._turning:
            began = self._clock.monotonic()
            ended = await self._writer.write(work)
            took_s = self._clock.monotonic() - began
        going.counts += counts
        self._writer.wrote(counts.total())
        if ended:
            del going.left[0]
        if counts or not ended:
            await self._writer.quiet(min(YIELD_MAX_S, took_s * YIELD_SHARE))


def _some(transaction: Transaction, sweep: Sweep, clock: Clock, counts: Counts) -> bool:
    until = clock.monotonic() + STEP_S
    return sweep.step(transaction, lambda: clock.monotonic() >= until, counts)
