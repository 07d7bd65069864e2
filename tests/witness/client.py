"""A load client that knows exactly what was promised to it.

Keep-alive connections in a closed loop, one request in flight on each, all fed from one iterator
of hooks. The report tells the keys that were answered 2xx (only counted once the whole answer was
read) from those that were answered otherwise and those that never were. Standard library only, so
that it can drive any receiver.
"""

import asyncio
import base64
import collections
import hmac
import itertools
import json
import math
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, cast

SECRET_BYTES = b"a witness secret of thirty-two b"
SECRET = "whsec_" + base64.b64encode(SECRET_BYTES).decode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """One webhook to be sent: its id and its body. It is signed when it is sent."""

    key: str
    body: bytes
    source: str = "std"


def hook(key: str, *, bytes_min: int = 200, note: str = "", source: str = "std") -> Hook:
    """A delivered report whose body follows from its key, so that it can be sent again unchanged.

    Another `note` makes another body for the same key.
    """
    report = {"message_id": key, "email": f"{key}@example.com", "note": note, "filling": ""}
    facts = {"type": "email.delivered", "timestamp": "2025-06-01T12:00:00Z", "data": report}
    report["filling"] = "x" * (bytes_min - len(json.dumps(facts)))
    return Hook(key=key, body=json.dumps(facts).encode(), source=source)


def hooks(prefix: str, *, bytes_min: int = 200, source: str = "std") -> Iterator[Hook]:
    """Endlessly many hooks with keys `prefix-000000`, `prefix-000001`, and so on."""
    for number in itertools.count():
        yield hook(f"{prefix}-{number:06d}", bytes_min=bytes_min, source=source)


def signed_request(sent: Hook, *, at: int | None = None, secret: bytes = SECRET_BYTES) -> bytes:
    """The whole HTTP request, signed by Standard Webhooks v1."""
    stamp = str(int(time.time()) if at is None else at)
    signature = hmac.digest(secret, f"{sent.key}.{stamp}.".encode() + sent.body, "sha256")
    head = (
        f"POST /hooks/{sent.source} HTTP/1.1\r\n"
        "Host: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Webhook-Id: {sent.key}\r\nWebhook-Timestamp: {stamp}\r\n"
        f"Webhook-Signature: v1,{base64.b64encode(signature).decode()}\r\n"
        f"Content-Length: {len(sent.body)}\r\n\r\n"
    )
    return head.encode() + sent.body


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What one request was told. `word` is the `status` in the answer's JSON, if there is one."""

    key: str
    status: int
    word: str
    took_ms: float
    retry_after: str = ""

    @property
    def acknowledged(self) -> bool:
        return 200 <= self.status < 300


@dataclass(slots=True)
class Report:
    """Everything a drive saw."""

    answers: list[Answer] = field(default_factory=list)
    unanswered: list[str] = field(default_factory=list)
    refused: int = 0

    @property
    def acknowledged(self) -> set[str]:
        return {answer.key for answer in self.answers if answer.acknowledged}

    @property
    def statuses(self) -> collections.Counter[int]:
        return collections.Counter(answer.status for answer in self.answers)

    @property
    def words(self) -> collections.Counter[str]:
        return collections.Counter(answer.word for answer in self.answers)

    def took_ms(self, share: float) -> float:
        """The time within which this share of the answers came."""
        times = sorted(answer.took_ms for answer in self.answers)
        return times[min(len(times) - 1, int(len(times) * share))]


class _Connection(asyncio.Protocol):
    """One connection: sends, reads the whole answer, takes the next hook."""

    def __init__(self, waiting: Iterator[Hook], report: Report) -> None:
        self._waiting, self._report = waiting, report
        self._received = b""
        self._sent: Hook | None = None
        self._sent_at = 0.0
        self._transport: asyncio.Transport
        self.exhausted = False  # nothing is left to send
        self.broken = False  # it ended before its answer came
        self.ended = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._send_next()

    def _send_next(self) -> None:
        self._sent = next(self._waiting, None)
        if self._sent is None:
            self.exhausted = True
            self._transport.close()
            return
        self._sent_at = time.perf_counter()
        self._transport.write(signed_request(self._sent))

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, blank_line, body = self._received.partition(b"\r\n\r\n")
        if not blank_line:
            return
        status_line, *lines = head.decode("latin-1").split("\r\n")
        pairs = (line.partition(":") for line in lines)
        fields = {name.lower(): value.strip() for name, _, value in pairs}
        if len(body) < int(fields.get("content-length", "0")):
            return
        self._received = b""
        self._note(int(status_line.split(" ")[1]), fields, body)
        if fields.get("connection", "").lower() == "close":
            self._transport.close()
        else:
            self._send_next()

    def _note(self, status: int, fields: dict[str, str], body: bytes) -> None:
        assert self._sent is not None, "an answer nobody asked for"
        self._report.answers.append(
            Answer(
                key=self._sent.key,
                status=status,
                word=_word(body),
                took_ms=(time.perf_counter() - self._sent_at) * 1000,
                retry_after=fields.get("retry-after", ""),
            )
        )
        self._sent = None

    def connection_lost(self, exc: Exception | None) -> None:
        if self._sent is not None:
            self.broken = True
            self._report.unanswered.append(self._sent.key)
        self.ended.set_result(None)

    def give_up_after(self, patience_s: float) -> None:
        """Hang up on a server that does not answer."""
        if self._sent is not None and time.perf_counter() - self._sent_at > patience_s:
            self._transport.abort()


def _word(body: bytes) -> str:
    try:
        return str(json.loads(body)["status"])
    except (ValueError, KeyError, TypeError):
        return ""


class _Drive:
    """Some connections that share the hooks, the deadline and the report."""

    def __init__(
        self, port: int, wanted: Iterator[Hook], until: float, reconnect: bool, patience_s: float
    ) -> None:
        self._port, self._until = port, until
        self._reconnect, self._patience_s = reconnect, patience_s
        self._waiting = itertools.takewhile(lambda _: not self._over(), wanted)
        self._live = set[_Connection]()
        self.report = Report()

    def _over(self) -> bool:
        return time.perf_counter() > self._until

    async def run(self, connections: int) -> Report:
        watcher = asyncio.create_task(self._watch())
        try:
            await asyncio.gather(*(self._stay_connected() for _ in range(connections)))
        finally:
            watcher.cancel()
        return self.report

    async def _stay_connected(self) -> None:
        while not self._over():
            try:
                connection = await self._connect()
            except OSError:
                self.report.refused += 1
                if not self._reconnect:
                    return
                await asyncio.sleep(0.005)
                continue
            self._live.add(connection)
            await connection.ended
            self._live.discard(connection)
            if connection.exhausted or (connection.broken and not self._reconnect):
                return

    async def _connect(self) -> _Connection:
        _, connection = await asyncio.get_running_loop().create_connection(
            lambda: _Connection(self._waiting, self.report), "127.0.0.1", self._port
        )
        return connection

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(self._patience_s / 4)
            for connection in tuple(self._live):
                connection.give_up_after(self._patience_s)


async def drive(
    port: int,
    wanted: Iterable[Hook],
    *,
    connections: int = 16,
    seconds: float = math.inf,
    reconnect: bool = False,
    patience_s: float = 30,
) -> Report:
    """Send the hooks until there are no more, the time is up, or the server is gone.

    With `reconnect`, a server that is gone is tried again. What was in flight when a connection
    broke is in `unanswered`, and is not sent again.
    """
    until = time.perf_counter() + seconds
    return await _Drive(port, iter(wanted), until, reconnect, patience_s).run(connections)


def load(port: int, wanted: Iterable[Hook], **options: Any) -> Report:
    """`drive`, for a test that is not asynchronous itself."""
    return asyncio.run(drive(port, wanted, **options))
