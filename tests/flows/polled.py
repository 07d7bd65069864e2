"""A box with one source of the email API for agents, polled from a list on a real server."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from hookbox.clock import ManualClock
from hookbox.flows.certificates import Certificates
from hookbox.flows.pollers import Pollers
from hookbox.flows.polling import Polling, Round
from hookbox.flows.probe import Probes
from hookbox.flows.receive import Receipt, Receiver
from hookbox.flows.sources import Source, Sources
from hookbox.flows.tally import Tally
from hookbox.flows.work import Worker
from hookbox.model import Delivery, Drive, Slot, Via
from hookbox.net import Net
from hookbox.providers import PROVIDERS
from hookbox.providers.contract import Key, Trust
from hookbox.rules.signatures import base64_mac
from hookbox.rules.suppression import Budget
from hookbox.store import database, schema, sources
from hookbox.store.writer import Writer
from tests.upstream import TOKEN, Event, Upstream, as_webhook

SECRET = b"0123456789abcdef0123456789abcdef"
NAME = "agent"


@dataclass
class PolledBox:
    """The flows of a box without its doors."""

    path: Path
    clock: ManualClock
    writer: Writer
    sources: Sources
    pollers: Pollers
    receiver: Receiver
    upstream: Upstream
    instance: int
    woken: list[None] = field(default_factory=list)

    @property
    def source(self) -> Source:
        found = self.sources.get(NAME)
        assert found is not None
        return found

    def change(self, **polling: object) -> None:
        """Poll in another way from now on."""
        assert self.source.polling is not None
        changed = replace(self.source.polling, **polling)  # type: ignore[arg-type]
        self.sources.replace({NAME: replace(self.source, polling=changed)})

    async def poll(self, begin: str | None = None) -> Round:
        return await self.pollers.ask(NAME, begin)

    async def receive(self, listed: Event, *, via: Via = Via.WEBHOOK) -> Receipt:
        """The webhook of an event of the list, signed."""
        content = json.dumps(as_webhook(listed)).encode()
        key, stamp = str(listed["id"]).encode(), str(self.clock.now() // 1000).encode()
        mac = base64_mac(SECRET, b"%b.%b.%b" % (key, stamp, content))
        headers = (
            (b"webhook-id", key),
            (b"webhook-timestamp", stamp),
            (b"webhook-signature", b"v1," + mac),
        )
        delivery = Delivery(
            source=NAME, headers=headers, body=content, received_at=self.clock.now(), via=via
        )
        return await self.receiver.receive(self.source, delivery)

    async def apply(self) -> None:
        """Apply all that is stored."""
        worker = Worker(self.writer, self.sources, self.clock, self.instance, Budget())
        running = asyncio.create_task(worker.run())
        await self.until(lambda: not self.rows("SELECT 1 FROM events WHERE state = 'pending'"))
        worker.stop()
        self.clock.advance(5)
        await asyncio.wait_for(running, 5)

    async def until(self, done: Callable[[], bool], *, advance_s: float = 0.5) -> None:
        """Let time pass in small steps until it is so; bounded."""
        for _ in range(1_000):
            if done():
                return
            self.clock.advance(advance_s)
            await asyncio.to_thread(lambda: None)  # lets the connection's thread have its turn
        assert done()

    def rows(self, sql: str) -> list[tuple[object, ...]]:
        with database.reading(self.path.parent) as connection:
            return [tuple(row) for row in connection.execute(sql)]

    def keys(self) -> list[object]:
        """The events, in the order in which they were admitted."""
        return [key for (key,) in self.rows("SELECT key FROM events ORDER BY id")]

    @property
    def cursor(self) -> object:
        found = self.rows("SELECT cursor FROM cursors")
        return found[0][0] if found else None

    def gaps(self, *, opened: bool = True) -> list[tuple[object, ...]]:
        where = "closed_at IS NULL" if opened else "closed_at IS NOT NULL"
        return self.rows(f"SELECT from_sequence, to_sequence, reason FROM gaps WHERE {where}")


@asynccontextmanager
async def polled_box(folder: Path, upstream: Upstream) -> AsyncIterator[PolledBox]:
    path = folder / database.FILE_NAME
    schema.prepare(path)
    clock = ManualClock()
    writer = Writer(path, clock)
    await writer.start()
    ids = await writer.write(lambda t: sources.remember(t, {NAME: "efa"}))
    instance = await writer.write(sources.next_instance)
    live, woken = Sources(), list[None]()
    live.replace({NAME: _source(ids[NAME], upstream.url)})
    pollers = Pollers(writer, Net(), live, clock, lambda: woken.append(None))
    receiver = Receiver(
        writer,
        Tally(writer, clock),
        Certificates(Net(), clock),
        Probes(writer, clock),
        clock,
        lambda _: woken.append(None),
        pollers.in_order,
    )
    yield PolledBox(path, clock, writer, live, pollers, receiver, upstream, instance, woken)
    await pollers.stop()
    await writer.stop()


def _source(source_id: int, url: str) -> Source:
    provider = PROVIDERS["efa"]
    assert provider.feed is not None
    return Source(
        name=NAME,
        id=source_id,
        provider=provider,
        trust=Trust(keys=(Key(slot=Slot.CURRENT, material=SECRET),), tolerance_s=300),
        body_max=1 << 20,
        polling=Polling(
            feed=provider.feed,
            url=url,
            token=TOKEN,
            every_s=900,
            drive=Drive.WEBHOOK,
            scoped=False,
            read_url=None,
            limit=100,
            loopback=True,
        ),
    )
