"""One seed, one run: lives follow one another until all is calm, then the promises are checked."""

import logging
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from hookbox.errors import StoreError
from tests.sim import promises, world
from tests.sim.life import Life
from tests.sim.timeline import Broken, Crash, VirtualLoop
from tests.sim.torment import late_finishers, torment, unfinished
from tests.sim.world import World

LIVES_MAX = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What came of a seed. `broken`: the promise that was not kept; empty when all were."""

    seed: int
    broken: str
    seen: Counter[str]
    story: list[str]


def run(seed: int, *, hasty: bool = False) -> Run:
    """Simulate one seed."""
    random.seed(seed)  # what the flows draw themselves: jitter
    its_world = world.made(seed, hasty=hasty)
    try:
        with _quiet_logs():
            _live(its_world)
        promises.check(its_world)
        broken = ""
    except Broken as breach:
        broken = str(breach)
    its_world.seen["effects"] += len(its_world.effects)
    its_world.seen += its_world.disk.seen
    return Run(seed=seed, broken=broken, seen=its_world.seen, story=its_world.story())


def _live(its_world: World) -> None:
    for _ in range(LIVES_MAX):
        loop = VirtualLoop(its_world.clock)
        try:
            why = loop.live(live(its_world))
        except Crash:
            why = "crash"
            its_world.note("the process dies")
            its_world.seen["lives ended by a crash"] += 1
            its_world.disk.crash()
        if loop.surprises:
            raise Broken(loop.surprises[0])
        its_world.seen["lives"] += 1
        if why == "quiet":
            return
        its_world.clock.advance(its_world.down_s if why == "asked to" else 1.0)
    raise Broken("it never comes to rest")


async def live(its_world: World) -> str:
    """A life that ends in peace: why it did."""
    life, left = Life(its_world), unfinished(its_world)
    try:
        await life.start()
    except StoreError as error:
        its_world.note(f"cannot start: {type(error).__name__} {error}")
        await life.writer.stop()
        return "no start"
    late_finishers(life, left)
    life.beside(torment(life))
    why = await life.ending
    its_world.note(f"stops: {why}")
    await life.stop()
    return why


@contextmanager
def _quiet_logs() -> Iterator[None]:
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)
