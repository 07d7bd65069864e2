"""A box for one test, what it has received, and the commands typed at it."""

import asyncio
import base64
import hmac
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from hookbox.cli import root
from hookbox.clock import SystemClock
from hookbox.flows.receive import Outcome
from hookbox.model import Delivery
from hookbox.runtime import Runtime
from hookbox.settings import Settings, load
from tests.witness.client import SECRET_BYTES

CONFIG = """\
[source.std]
provider = "standardwebhooks"
secret = "env:STD_SECRET"

[source.sealed]
provider = "standardwebhooks"
"""


def no_serving(_: Settings, __: Callable[[], Settings]) -> int:
    """What `serve` calls when a test does not care."""
    return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Shell:
    """Types commands at one box."""

    config: Path
    state: Path
    serve: Callable[[Settings, Callable[[], Settings]], int] = field(default=no_serving)

    def __call__(self, *words: str, typed: str | bytes | None = None) -> Result:
        files = ("--config", str(self.config), "--state", str(self.state))
        return CliRunner().invoke(root, [*files, *words], input=typed, obj=self.serve)

    def lines(self, *words: str) -> list[dict[str, Any]]:
        """What a reading command prints with --json."""
        result = self(*words, "--json")
        assert result.exit_code == 0, result.output
        return [json.loads(line) for line in result.stdout.splitlines()]

    def receive(self, *deliveries: Delivery) -> list[Outcome]:
        """Have the box run, receive these, work on them, and stop."""
        return asyncio.run(self._receive(deliveries))

    async def _receive(self, deliveries: tuple[Delivery, ...]) -> list[Outcome]:
        runtime = Runtime(
            load(self.config, self.state), SystemClock(), lambda: load(self.config, self.state)
        )
        await runtime.start()
        outcomes = []
        try:
            for delivery in deliveries:
                source = runtime.sources.get(delivery.source)
                assert source is not None
                outcomes.append((await runtime.receiver.receive(source, delivery)).outcome)
            while await runtime.writer.write(lambda t: t.execute(PENDING).fetchone()[0]):
                pass
        finally:
            await runtime.stop()
        return outcomes


PENDING = "SELECT count(*) FROM event WHERE state = 'pending'"


def delivery(
    key: str,
    kind: str = "email.delivered",
    *,
    to: str = "ann@example.com",
    body: bytes | None = None,
    source: str = "std",
    ago_s: float = 0,
    skew_s: int = 0,
    signed: bytes = SECRET_BYTES,
) -> Delivery:
    """A delivery by Standard Webhooks. `skew_s`: how far behind us its sender's clock is."""
    received_at = SystemClock().now() - round(ago_s * 1000)
    facts = {"type": kind, "data": {"email": to, "message_id": f"m-{key}"}}
    content = json.dumps(facts).encode() if body is None else body
    stamp = str(SystemClock().now() // 1000 - skew_s).encode()
    mac = hmac.digest(signed, b"%b.%b.%b" % (key.encode(), stamp, content), "sha256")
    return Delivery(
        source=source,
        headers=(
            (b"webhook-id", key.encode()),
            (b"webhook-timestamp", stamp),
            (b"webhook-signature", b"v1," + base64.b64encode(mac)),
        ),
        body=content,
        received_at=received_at,
        remote="192.0.2.7",
    )
