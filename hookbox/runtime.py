"""Runtime: the one place that makes the services, and knows in which order they start and stop.

Start: lock, schema, writer, jobs of dead processes taken back, sources, worker; the doors open
after that. Stop: the doors close first, then the worker settles, the counts are written, the writer
folds the WAL and closes, and the lock goes last.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Collection
from functools import partial
from typing import Any

from hookbox import assembly, onward
from hookbox.clock import Clock
from hookbox.errors import StoreBusy
from hookbox.flows import confirm, forward, settlement
from hookbox.flows.certificates import Certificates
from hookbox.flows.decisions import Decisions
from hookbox.flows.erase import Erasures
from hookbox.flows.feed import Feed
from hookbox.flows.forward import Outlet
from hookbox.flows.heartbeat import Heartbeat
from hookbox.flows.lane import Lane
from hookbox.flows.outbox import Outbox
from hookbox.flows.pollers import Pollers
from hookbox.flows.probe import Probes
from hookbox.flows.receive import Receiver
from hookbox.flows.retain import Retention
from hookbox.flows.simulate import Simulations
from hookbox.flows.sources import Source, Sources
from hookbox.flows.standstill import Standstill
from hookbox.flows.tally import Tally
from hookbox.flows.work import Worker
from hookbox.net import Net
from hookbox.settings import Settings
from hookbox.store import bearer, database, forwarding, schema, secrets
from hookbox.store.connections import Transaction
from hookbox.store.lock import Lock
from hookbox.store.reader import Reader
from hookbox.store.secrets import Seal
from hookbox.store.state import prepare_state
from hookbox.store.writer import Writer

log = logging.getLogger("hookbox.runtime")

LOCK_WAIT_S = 1.0
LOCK_LOOK_S = 0.05
SETTLE_S = 3.0  # with the doors' grace around it, a stop stays under 10 s


class Runtime:
    """Everything that runs behind the doors. Made by `start`, ended by `stop`."""

    def __init__(self, settings: Settings, clock: Clock, load: Callable[[], Settings]) -> None:
        self.settings, self.clock, self._load = settings, clock, load
        self.sources = Sources()
        self.lock = Lock(settings.state)
        self.writer = Writer(settings.state / database.FILE_NAME, clock)
        self.reader = Reader(settings.state / database.FILE_NAME)
        self.feed = Feed(Reader(settings.state / database.FILE_NAME))
        self.tally = Tally(self.writer, clock)
        self.heartbeat = Heartbeat(self.writer, clock)
        self.simulations = Simulations(clock)
        self.net = Net()
        self.certificates = Certificates(self.net, clock)
        self.probes = Probes(self.writer, clock)
        stored = partial(self._wake, ())
        self.pollers = Pollers(self.writer, self.net, self.sources, clock, stored)
        self.receiver: Receiver
        self.outbox: Outbox
        self.worker: Worker
        self.decisions: Decisions
        self.standstill: Standstill
        self.retention: Retention
        self.erasures: Erasures
        self.seal: Seal
        self.token: str  # what callers of the private port show
        self._tasks: list[asyncio.Task[None]] = []
        self._working: asyncio.Task[None] | None = None
        self._settled = False
        self._outlets: dict[str, Outlet] = {}
        self._warned: set[str] = set()
        self.ready = False
        self.broken = asyncio.Event()  # something that must run ended: stop and start anew
        self.public_at = ""  # where the public door listens, as settings write it
        # One change of sources at a time: two that interleave would undo half of each other.
        self._changing = asyncio.Lock()

    async def start(self) -> None:
        """Raises ConfigError, StoreError or OperatorError, with nothing left running or held."""
        os.umask(0o077)  # SQLite's files, the key, the socket: nobody else's business
        prepare_state(self.settings.state)
        await self._take_lock()
        try:
            await self._open()
        except BaseException:
            await self.stop()
            raise
        self.ready = True

    async def _take_lock(self) -> None:
        """A command may hold it for a moment. Raises StoreBusy when somebody has it for longer."""
        waited_s = 0.0
        while True:
            try:
                return self.lock.acquire()
            except StoreBusy:
                if waited_s >= LOCK_WAIT_S:
                    raise
            await self.clock.sleep(LOCK_LOOK_S)
            waited_s += LOCK_LOOK_S

    async def _open(self) -> None:
        schema.prepare(self.settings.state / database.FILE_NAME)
        self.seal = secrets.load_seal(self.settings.state)
        self.token = bearer.ensured(self.settings.state)
        await self.writer.start()
        await self.reader.start()
        await self.feed.start()
        instance, taken = await self.writer.write(partial(settlement.succeed, now=self.clock.now()))
        if taken:
            log.warning("jobs of a process that died are available again jobs=%d", taken)
        budget = assembly.budget(self.settings)
        self.outbox = Outbox(self.writer, self.clock, instance)
        self.worker = Worker(
            self.writer, self.sources, self.clock, instance, budget, self.outbox.wake
        )
        self.worker.applied = self.feed.applied
        self.receiver = Receiver(
            self.writer,
            self.tally,
            self.certificates,
            self.probes,
            self.clock,
            self._wake,
            self.pollers.in_order,
        )
        path, turning = self.settings.state / database.FILE_NAME, self.worker.turning
        self.erasures = Erasures(self.writer, path, self.seal, self.clock, turning)
        await self.erasures.start()
        self.decisions = Decisions(
            self.writer, self.clock, self._wake_all, self.outbox.recall, self.erasures
        )
        self.standstill = Standstill(self.writer, self.worker.turning, self.settings.state)
        self.retention = Retention(self.writer, self.clock, turning)
        await self.heartbeat.start()
        await self._adopt(self.settings)
        await self.probes.resume()
        self._working = asyncio.create_task(self.worker.run(), name="worker")
        self._tasks.append(asyncio.create_task(self.tally.run(), name="tally"))
        self._tasks.append(asyncio.create_task(self.heartbeat.run(), name="heartbeat"))
        self._tasks.append(asyncio.create_task(self.retention.run(), name="retention"))
        for task in (self._working, *self._tasks, self.writer.owner):
            task.add_done_callback(self._ended)

    def _lane_ended(self, task: asyncio.Task[None]) -> None:
        """A lane ends when it is no longer configured; by itself only with an error."""
        if not task.cancelled() and task.exception() is not None:
            self._ended(task)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Everything that runs runs until `stop`. If one does not, the box must not look well."""
        if not self.ready or task.cancelled():
            return
        self.ready = False
        log.critical("%s ended by itself, stopping", task.get_name(), exc_info=task.exception())
        self.broken.set()

    def _wake(self, targets: Collection[str]) -> None:
        """Something new was stored, with jobs for these lanes besides."""
        self.worker.wake()
        if targets:
            self.outbox.wake(targets)

    def _wake_all(self) -> None:
        self.worker.wake()
        self.outbox.wake()

    async def _adopt(
        self, settings: Settings, change: Callable[[Transaction], None] | None = None
    ) -> None:
        """Make `settings` the ones in force, or raise ConfigError and change nothing. `change`:
        what of the sealed store is changed at the same time.
        """
        now = self.clock.now()

        def work(transaction: Transaction) -> tuple[dict[str, Source], dict[str, Outlet]]:
            if change is not None:
                change(transaction)
            names = assembly.providers_of(settings)
            ids = assembly.remember(transaction, names, now)
            sealed = assembly.open_secrets(transaction, self.seal, names)
            sources = assembly.live_sources(settings, ids, sealed)
            onward.ensure_secrets(transaction, self.seal, settings, now)
            keys = onward.open_secrets(transaction, self.seal, settings)
            outlets = onward.outlets(settings, keys, self._outlets)
            return sources, outlets

        sources, self._outlets = await self.writer.write(work)
        self.sources.replace(sources)
        self.settings = settings
        self.worker.budget = assembly.budget(settings)
        self.worker.routes = [outlet.route for outlet in self._outlets.values()]
        self.retention.ages = assembly.ages(settings)
        for task in self.outbox.adopt(self._lanes()):
            task.add_done_callback(self._lane_ended)
        # Only now does nobody queue anything for a destination that is gone.
        targets = [forwarding.target_of(name) for name in self._outlets]
        await self.writer.write(partial(forwarding.adopt, targets=targets))
        self._wake_all()
        await self.pollers.adopt()
        warnings = assembly.warnings(settings, self.sources.all())
        for warning in warnings - self._warned:
            log.warning("%s", warning)
        self._warned = warnings

    def _lanes(self) -> list[Lane[Any]]:
        """Every lane that the configuration asks for."""
        outlets = self._outlets.values()
        return [confirm.lane(self.net), *(forward.lane(each, self.clock) for each in outlets)]

    async def adopt(self, change: Callable[[Transaction], None]) -> None:
        """Change the sealed store and use the outcome at once; refused as a whole when it leaves a
        source or a destination unusable.
        """
        async with self._changing:
            await self.tally.flush()  # what was counted so far belongs to the secrets as they were
            await self._adopt(self.settings, change)

    async def reload(self) -> None:
        """Read the configuration again and take it live between two requests.

        Raises ConfigError; then the old one goes on unchanged.
        """
        settings = self._load()
        fixed = (("server.listen", "server"), ("local.listen", "local"))
        for name, table in fixed:
            if getattr(settings, table).listen != getattr(self.settings, table).listen:
                log.warning("setting takes effect at the next start setting=%s", name)
        async with self._changing:
            await self._adopt(settings)
        log.info("configuration reloaded sources=%d", len(settings.sources))

    async def stop(self) -> None:
        """Lose nothing that was acknowledged; the doors are closed by now."""
        self.ready = False
        try:
            await self._stop()
        finally:
            self.lock.release()

    async def _stop(self) -> None:
        await self.pollers.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.settle()
        if self._working is not None:
            await self.tally.flush()
            await self.heartbeat.stop()
        await self.certificates.stop()
        await self.feed.stop()
        await self.reader.stop()
        await self.writer.stop()

    async def settle(self) -> None:
        """Let what is under way be recorded, and begin nothing more; what takes too long is taken
        back at the next start.
        """
        self.ready = False
        if self._working is None or self._settled:
            return
        self._settled = True
        self.standstill.end()
        self.worker.stop()
        await asyncio.gather(
            asyncio.wait({self._working}, timeout=SETTLE_S), self.outbox.stop(SETTLE_S)
        )
        self._working.cancel()
        await asyncio.gather(self._working, return_exceptions=True)
