"""Flows over a real store: one source whose provider the test can change."""

import hashlib
import hmac
import json
from base64 import b64encode
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from hookbox.clock import ManualClock
from hookbox.flows.certificates import Certificates
from hookbox.flows.probe import Probes
from hookbox.flows.receive import Receiver
from hookbox.flows.sources import Source, Sources
from hookbox.flows.tally import Tally
from hookbox.flows.work import Worker
from hookbox.model import Delivery, Slot
from hookbox.net import Net
from hookbox.providers import PROVIDERS
from hookbox.providers.contract import Key, Trust
from hookbox.rules.suppression import Budget
from hookbox.store import database, schema, sources
from hookbox.store.writer import Writer
from tests.flows.polled import PolledBox, polled_box
from tests.upstream import upstream

SECRET = b"0123456789abcdef0123456789abcdef"
PREVIOUS = b"fedcba9876543210fedcba9876543210"


@dataclass
class Box:
    """The flows of a box without its doors."""

    path: Path
    clock: ManualClock
    writer: Writer
    tally: Tally
    sources: Sources
    receiver: Receiver
    probes: Probes
    instance: int
    woken: list[None] = field(default_factory=list)

    @property
    def source(self) -> Source:
        found = self.sources.get("std")
        assert found is not None
        return found

    def change(self, **provider: object) -> None:
        """Let the source's provider do or declare something else."""
        changed = replace(self.source.provider, **provider)  # type: ignore[arg-type]
        self.sources.replace({"std": replace(self.source, provider=changed)})

    def worker(self) -> Worker:
        return Worker(self.writer, self.sources, self.clock, self.instance, Budget())

    def delivery(
        self, key: str, body: bytes | dict[str, object], *, secret: bytes = SECRET, skew_s: int = 0
    ) -> Delivery:
        """A delivery as a Standard Webhooks sender signs it."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        stamp = str(self.clock.now() // 1000 - skew_s).encode()
        signed = hmac.digest(secret, b".".join((key.encode(), stamp, content)), hashlib.sha256)
        return Delivery(
            source="std",
            headers=(
                (b"webhook-id", key.encode()),
                (b"webhook-timestamp", stamp),
                (b"webhook-signature", b"v1," + b64encode(signed)),
            ),
            body=content,
            received_at=self.clock.now(),
            remote="192.0.2.7",
        )

    def rows(self, sql: str) -> list[tuple[object, ...]]:
        with database.reading(self.path.parent) as connection:
            return [tuple(row) for row in connection.execute(sql)]


@pytest.fixture
async def box(tmp_path: Path) -> AsyncIterator[Box]:
    path = tmp_path / database.FILE_NAME
    schema.prepare(path)
    clock = ManualClock()
    writer = Writer(path, clock)
    await writer.start()
    ids = await writer.write(lambda t: sources.remember(t, {"std": "standardwebhooks"}))
    instance = await writer.write(sources.next_instance)
    keys = (
        Key(slot=Slot.CURRENT, material=SECRET),
        Key(slot=Slot.PREVIOUS, material=PREVIOUS),
    )
    source = Source(
        name="std",
        id=ids["std"],
        provider=PROVIDERS["standardwebhooks"],
        trust=Trust(keys=keys, tolerance_s=300),
        body_max=1 << 20,
    )
    live = Sources()
    live.replace({"std": source})
    tally = Tally(writer, clock)
    woken: list[None] = []
    certificates = Certificates(Net(), clock)
    probes = Probes(writer, clock)
    receiver = Receiver(writer, tally, certificates, probes, clock, lambda _: woken.append(None))
    yield Box(path, clock, writer, tally, live, receiver, probes, instance, woken)
    await writer.stop()


@pytest.fixture
async def polled(tmp_path: Path) -> AsyncIterator[PolledBox]:
    """A box that polls, and the list that it polls."""
    async with upstream() as listed, polled_box(tmp_path, listed) as made:
        yield made
