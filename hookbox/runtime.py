"""Runtime: the one place that makes the services, and knows in which order they start and stop.

Start: lock, schema, writer, jobs of dead processes taken back, sources, worker; the doors open
after that. Stop: the doors close first, then the worker settles, the counts are written, the writer
folds the WAL and closes, and the lock goes last.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any

from hookbox import assembly
from hookbox.clock import Clock
from hookbox.errors import OperatorError
from hookbox.flows import confirm, settlement
from hookbox.flows.certificates import Certificates
from hookbox.flows.decisions import Decisions
from hookbox.flows.erase import Erasures
from hookbox.flows.lane import Lane
from hookbox.flows.outbox import Outbox
from hookbox.flows.probe import Probes
from hookbox.flows.receive import Receiver
from hookbox.flows.release import release
from hookbox.flows.retain import Retention
from hookbox.flows.simulate import Simulations
from hookbox.flows.sources import Source, Sources
from hookbox.flows.standstill import Standstill
from hookbox.flows.tally import Tally
from hookbox.flows.work import Worker
from hookbox.model import Kind, Slot
from hookbox.net import Net
from hookbox.providers.contract import Provider, Signed
from hookbox.settings import Settings
from hookbox.store import bearer, database, schema, secrets, sources
from hookbox.store.connections import Transaction
from hookbox.store.lock import Lock
from hookbox.store.reader import Reader
from hookbox.store.secrets import Seal
from hookbox.store.writer import Writer

log = logging.getLogger("hookbox.runtime")

SETTLE_S = 3.0  # with the doors' grace before it, a stop stays under 10 s


class Runtime:
    """Everything that runs behind the doors. Made by `start`, ended by `stop`."""

    def __init__(self, settings: Settings, clock: Clock, load: Callable[[], Settings]) -> None:
        self.settings, self.clock, self._load = settings, clock, load
        self.sources = Sources()
        self.lock = Lock(settings.state)
        self.writer = Writer(settings.state / database.FILE_NAME, clock)
        self.reader = Reader(settings.state / database.FILE_NAME)
        self.tally = Tally(self.writer, clock)
        self.simulations = Simulations(clock)
        self.net = Net()
        self.certificates = Certificates(self.net, clock)
        self.probes = Probes(self.writer, clock)
        self.receiver: Receiver
        self.worker: Worker
        self.decisions: Decisions
        self.standstill: Standstill
        self.retention: Retention
        self.erasures: Erasures
        self.seal: Seal
        self.token: str  # what callers of the private port show
        self._tasks: list[asyncio.Task[None]] = []
        self._working: asyncio.Task[None] | None = None
        self.outbox: Outbox
        self._warned: set[str] = set()
        self.ready = False
        self.broken = asyncio.Event()  # something that must run ended: stop and start anew
        self.public_at = ""  # where the public door listens, as settings write it
        # One change of sources at a time: two that interleave would undo half of each other.
        self._changing = asyncio.Lock()

    async def start(self) -> None:
        """Raises ConfigError, StoreError or OperatorError, with nothing left running or held."""
        os.umask(0o077)  # SQLite's files, the key, the socket: nobody else's business
        database.prepare_state(self.settings.state)
        self.lock.acquire()
        try:
            await self._open()
        except BaseException:
            await self.stop()
            raise
        self.ready = True

    async def _open(self) -> None:
        schema.prepare(self.settings.state / database.FILE_NAME)
        self.seal = secrets.load_seal(self.settings.state)
        self.token = bearer.ensured(self.settings.state)
        await self.writer.start()
        await self.reader.start()
        instance = await self.writer.write(sources.next_instance)
        taken = await self.writer.write(
            partial(settlement.take_back, instance=instance, now=self.clock.now())
        )
        if taken:
            log.warning("jobs of a process that died are available again jobs=%d", taken)
        budget = assembly.budget(self.settings)
        self.outbox = Outbox(self.writer, self.clock, instance)
        self.worker = Worker(
            self.writer, self.sources, self.clock, instance, budget, self.outbox.wake
        )
        self.receiver = Receiver(
            self.writer, self.tally, self.certificates, self.probes, self.clock, self._wake
        )
        path, turning = self.settings.state / database.FILE_NAME, self.worker.turning
        self.erasures = Erasures(self.writer, path, self.seal, self.clock, turning)
        await self.erasures.start()
        self.decisions = Decisions(self.writer, self.clock, self._wake_all, self.erasures)
        self.standstill = Standstill(self.writer, self.worker.turning, self.settings.state)
        self.retention = Retention(self.writer, self.clock, turning)
        await self._adopt(self.settings)
        await self.probes.resume()
        self._working = asyncio.create_task(self.worker.run(), name="worker")
        self._tasks.append(asyncio.create_task(self.tally.run(), name="tally"))
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

    async def _adopt(self, settings: Settings) -> None:
        """Make `settings` the ones in force, or raise and change nothing."""
        now = self.clock.now()

        def work(transaction: Transaction) -> dict[str, Source]:
            names = assembly.providers_of(settings)
            ids = assembly.remember(transaction, names, now)
            sealed = assembly.open_secrets(transaction, self.seal, names)
            return assembly.live_sources(settings, ids, sealed)

        self.sources.replace(await self.writer.write(work))
        self.settings = settings
        self.worker.budget = assembly.budget(settings)
        self.retention.ages = assembly.ages(settings)
        for task in self.outbox.adopt(self._lanes()):
            task.add_done_callback(self._lane_ended)
        self.worker.wake()
        warnings = assembly.warnings(settings, self.sources.all())
        for warning in warnings - self._warned:
            log.warning("%s", warning)
        self._warned = warnings

    def _lanes(self) -> list[Lane[Any]]:
        """Every lane that the configuration asks for."""
        return [confirm.lane(self.net)]

    async def _sealed(self, names: Mapping[str, str]) -> assembly.Sealed:
        return await self.writer.write(partial(assembly.open_secrets, seal=self.seal, names=names))

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
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._working is not None:
            self.standstill.end()
            await self._settle()
            await self.tally.flush()
        await self.certificates.stop()
        await self.reader.stop()
        await self.writer.stop()

    async def _settle(self) -> None:
        """Let what is under way be recorded; what takes too long is taken back at next start."""
        assert self._working is not None, "begun"
        self.worker.stop()
        await asyncio.gather(
            asyncio.wait({self._working}, timeout=SETTLE_S), self.outbox.stop(SETTLE_S)
        )
        self._working.cancel()
        await asyncio.gather(self._working, return_exceptions=True)

    # --- what the private door can ask for

    async def change_secrets(self, change: Callable[[Transaction], None]) -> None:
        """Change the sealed store and use the outcome at once; refused as a whole when it leaves a
        source unusable.
        """

        def work(transaction: Transaction) -> dict[str, Source]:
            change(transaction)
            names = assembly.providers_of(self.settings)
            ids = {source.name: source.id for source in self.sources.all()}
            sealed = assembly.open_secrets(transaction, self.seal, names)
            return assembly.live_sources(self.settings, ids, sealed)

        async with self._changing:
            await self.tally.flush()  # what was counted so far belongs to the secrets as they were
            self.sources.replace(await self.writer.write(work))

    async def set_secret(self, source: str, text: str, *, rotate: bool) -> None:
        """Set the current secret of a source; with `rotate` the old one stays valid as the previous
        one.
        """
        if self.sources.get(source) is None:
            raise OperatorError(f"no source is called {source!r}; see: hookbox source list")
        sealed, now = self.seal.close(text), self.clock.now()
        if rotate:
            await self.change_secrets(
                lambda t: secrets.rotate(t, assembly.owner(source), sealed, now)
            )
        else:
            await self.change_secrets(
                lambda t: secrets.put(t, assembly.owner(source), Slot.CURRENT, sealed, now)
            )

    def renew_token(self) -> None:
        """From now on the private port asks for another token."""
        self.token = bearer.renew(self.settings.state)

    async def drop_secret(self, source: str, slot: Slot) -> None:
        """Forget one slot of a source."""
        await self.change_secrets(lambda t: secrets.drop(t, assembly.owner(source), slot))

    async def simulate(self, name: str, kind: Kind, to: str) -> Signed:
        """A correctly signed request of this source, for whoever asked to send. Raises
        OperatorError.
        """
        source = self.sources.get(name)
        if source is None:
            raise OperatorError(f"no source is called {name!r}; see: hookbox source list")
        chosen = next(each for each in self.settings.sources if each.name == name)
        sealed = await self._sealed({name: ""})
        text = assembly.secret_text(chosen, sealed.get(name, {}))
        return self.simulations.make(source, kind, to, text)

    async def probe(self, name: str, failures: int) -> None:
        """Begin to probe a source; with 0 failures, end it. Raises OperatorError."""
        source = self.sources.get(name)
        if source is None:
            raise OperatorError(f"no source is called {name!r}; see: hookbox source list")
        await (self.probes.start(source, failures) if failures else self.probes.stop(source))

    async def accept_quarantined(self, entry_id: int, *, unread: bool) -> str:
        """Let a quarantined thing through; what became of it, for a person."""

        def provider_of(name: str) -> Provider | None:
            source = self.sources.get(name)
            return None if source is None else source.provider

        now = self.clock.now()
        told = await self.writer.write(
            lambda t: release(t, entry_id, provider_of, now, unread=unread)
        )
        self.worker.wake()
        return told
