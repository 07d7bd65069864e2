"""One life of the process: it starts, works, is tormented, and ends one way or another.

It starts and stops the flows as the runtime does; what the runtime has besides (doors, secrets, the
lock) is not needed here.
"""

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from functools import partial
from pathlib import Path

from hookbox.clock import Clock
from hookbox.errors import HookboxError
from hookbox.flows import settlement
from hookbox.flows.forward import lane
from hookbox.flows.outbox import Outbox
from hookbox.flows.sources import Source, Sources
from hookbox.flows.work import Worker
from hookbox.model import Via
from hookbox.providers import PROVIDERS
from hookbox.providers.contract import Trust
from hookbox.rules.suppression import Budget
from hookbox.store import forwarding, jobs, sources
from hookbox.store.connections import Transaction
from hookbox.store.proposals import DeliveryRow, Proposal
from hookbox.store.writer import Writer
from tests.sim import targets
from tests.sim.disk import DiskChannel
from tests.sim.plan import SOURCES, Post
from tests.sim.world import World

SETTLE_S = 3.0  # what a stop grants, as in the runtime
SEND_AGAIN_S = 7.0


class Life:
    """The flows of one process, and those outside who wait for its answers."""

    def __init__(self, world: World) -> None:
        self.world, self.clock = world, world.clock
        self.writer = Writer(Path(), self.clock, DiskChannel(world.disk, self.clock))
        self.sources = Sources()
        self.instance = 0
        self.edition = 0
        self.outbox: Outbox
        self.worker: Worker
        self.ending: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._working: asyncio.Task[None]
        self._outside: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Raises StoreError."""
        await self.writer.start()
        self.instance, taken = await self.writer.write(
            partial(settlement.succeed, now=self.clock.now())
        )
        self.world.note(f"starts as instance {self.instance}, {taken} jobs taken back")
        self.outbox = Outbox(self.writer, self.clock, self.instance)
        self.worker = Worker(
            self.writer, self.sources, self.clock, self.instance, Budget(), self.outbox.wake
        )
        await self.adopt()
        self._working = asyncio.create_task(self.worker.run(), name="worker")
        self._watch_over(self._working)
        for post in self.world.plan.posts:
            if post.number in self.world.posts_due:
                self.beside(self._send(post))

    async def adopt(self) -> None:
        """Take the configuration of this moment live."""
        world, now = self.world, self.clock.now()
        here = [name for name in world.plan.destinations if name not in world.destinations_away]
        providers = {name: "standardwebhooks" for name in SOURCES if name not in world.sources_away}
        wanted = [forwarding.target_of(name) for name in here]

        def work(transaction: Transaction) -> dict[str, int]:
            jobs.release(transaction, jobs.APPLY, providers, now)
            return sources.remember(transaction, providers)

        ids = await self.writer.write(work)
        self.sources.replace({name: self._source(name, ids[name]) for name in providers})
        self.edition += 1
        outlets = [targets.outlet(world, name, self.edition) for name in here]
        self.worker.routes = [outlet.route for outlet in outlets]
        for task in self.outbox.adopt([lane(outlet, self.clock) for outlet in outlets]):
            self._watch_over(task)
        # Only now can nothing more be queued for a destination that is gone.
        await self.writer.write(partial(forwarding.adopt, targets=wanted))
        self.outbox.wake()
        self.worker.wake()

    def _source(self, name: str, source_id: int) -> Source:
        provider = replace(PROVIDERS["standardwebhooks"], normalize=self.world.read)
        return Source(
            name=name, id=source_id, provider=provider, trust=Trust(keys=()), body_max=1 << 20
        )

    def beside(self, task: Coroutine[None, None, None]) -> None:
        """Something outside the process that has to do with it as long as it lives."""
        self._outside.append(asyncio.create_task(task))

    def _watch_over(self, task: asyncio.Task[None]) -> None:
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self.world.breach(f"{task.get_name()} ended by itself: {error!r}")

    async def stop(self) -> None:
        """As the runtime stops: settle, record what is under way, close."""
        for task in self._outside:
            if task is not asyncio.current_task():
                task.cancel()
        self.worker.stop()
        await asyncio.gather(
            asyncio.wait({self._working}, timeout=SETTLE_S), self.outbox.stop(SETTLE_S)
        )
        self._working.cancel()
        await asyncio.gather(self._working, *self._outside, return_exceptions=True)
        await self.writer.stop()

    async def _send(self, post: Post) -> None:
        """A sender: it comes back until it is told that its delivery is stored."""
        world = self.world
        while True:
            await self.clock.sleep(world.posts_due[post.number] - self.clock.monotonic())
            try:
                admission = await self.writer.admit(_proposals(post, self.clock, self._id(post)))
            except HookboxError as error:
                world.note(f"post {post.number} is sent away: {type(error).__name__}")
                world.posts_due[post.number] = self.clock.monotonic() + SEND_AGAIN_S
                continue
            keys = " ".join(fact.key for fact in post.facts)
            world.note(f"post {post.number} is acknowledged: {keys}, {admission.new} new")
            world.acknowledged.append(post.number)
            del world.posts_due[post.number]
            world.moment("answer")
            self.worker.wake()
            return

    def _id(self, post: Post) -> int:
        """The lasting id of a post's source; both were there at the first start."""
        return SOURCES.index(post.source) + 1


def _proposals(post: Post, clock: Clock, source_id: int) -> list[Proposal]:
    events, body = [], b""
    for fact in post.facts:
        events.append(fact.split(len(body)))
        body += fact.content + b"\n"
    row = DeliveryRow(
        source_id=source_id,
        received_at=clock.now(),
        signed_at=None,
        via=Via.WEBHOOK,
        verified_by="current",
        remote="192.0.2.1",
        headers="{}",
        body=body,
    )
    if post.apart:
        return [Proposal(delivery=row, events=(event,)) for event in events]
    return [Proposal(delivery=row, events=tuple(events))]
