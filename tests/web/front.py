"""A door with a small app behind it, and a sender that writes whatever bytes a test wants."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from hookbox.web.connections import Limits
from hookbox.web.serving import Door
from hookbox.web.sockets import bind

HONEST = b"POST /hooks/a HTTP/1.1\r\nHost: hooks.example\r\nContent-Length: 2\r\n\r\nok"

# Short farewells, and deadlines that are kept to a hundredth of a second.
QUICK = {"drain_s": 0.05, "linger_s": 0.5, "beat_s": 0.01}

# No test waits this long unless something is broken.
PATIENCE_S = 10.0


@dataclass(slots=True)
class Request:
    """What the app was given."""

    scope: dict[str, Any]
    body: bytearray = field(default_factory=bytearray)
    hung_up: bool = False

    @property
    def path(self) -> str:
        return self.scope["path"]

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        return self.scope["headers"]


class App:
    """Reads the whole body and answers 200, except where a path asks for something else.

    `/early`: answers before it reads. `/late`: reads once `go` is set. `/wait`: answers then.
    """

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.taken = asyncio.Event()  # a whole request is there
        self.ended = asyncio.Event()
        self.go = asyncio.Event()

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        request = Request(scope=scope)
        self.requests.append(request)
        try:
            if request.path == "/late":
                await self.go.wait()
            if request.path != "/early" and not await self._read(request, receive):
                return
            self.taken.set()
            if request.path == "/wait":
                await self.go.wait()
            await self._answer(send)
        finally:
            self.ended.set()

    async def _read(self, request: Request, receive: Any) -> bool:
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                request.hung_up = True
                return False
            request.body += message["body"]
            more = message["more_body"]
        return True

    async def _answer(self, send: Any) -> None:
        headers = [(b"content-length", b"2")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"ok"})


@dataclass(slots=True)
class Answer:
    """One answer, and whether the connection was closed behind it."""

    status: int
    headers: dict[bytes, bytes]
    body: bytes


class Sender:
    """One connection to the door."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def send(self, *pieces: bytes) -> None:
        """Write the pieces one after the other, so that the door reads each for itself."""
        for piece in pieces:
            self.writer.write(piece)
            await self.writer.drain()
            await asyncio.sleep(0)

    async def answer(self) -> Answer:
        """The next answer, whole."""
        async with asyncio.timeout(PATIENCE_S):
            head = await self.reader.readuntil(b"\r\n\r\n")
            line, *lines = head.strip().split(b"\r\n")
            pairs = (line.partition(b": ") for line in lines)
            headers = {name.lower(): value for name, _, value in pairs}
            body = await self.reader.readexactly(int(headers.get(b"content-length", b"0")))
        return Answer(status=int(line.split()[1]), headers=headers, body=body)

    async def rest(self) -> bytes:
        """Everything until the door closes, or cuts the connection off."""
        received = bytearray()
        async with asyncio.timeout(PATIENCE_S):
            with contextlib.suppress(ConnectionResetError):
                while piece := await self.reader.read(65_536):
                    received += piece
        return bytes(received)

    def hang_up(self) -> None:
        self.writer.transport.abort()


class Front:
    """The door of one test: its app, its registry, and as many senders as wanted."""

    def __init__(self, door: Door, app: App, address: tuple[str, int]) -> None:
        self.door, self.app, self.address = door, app, address
        self.registry = door.registry
        self._senders: list[Sender] = []

    async def connect(self, *pieces: bytes) -> Sender:
        """A new connection that has sent these bytes."""
        sender = Sender(*await asyncio.open_connection(*self.address))
        self._senders.append(sender)
        await sender.send(*pieces)
        return sender

    async def ask(self, *pieces: bytes) -> bytes:
        """All that a sender of these bytes hears until the connection is closed."""
        sender = await self.connect()
        heard = asyncio.create_task(sender.rest())
        for piece in pieces:
            if not heard.done():
                await sender.send(piece)
        return await heard

    async def emptied(self) -> None:
        """Wait until no connection is left."""
        async with asyncio.timeout(PATIENCE_S):
            while len(self.registry):  # noqa: ASYNC110  # the registry tells nobody
                await asyncio.sleep(0.005)

    async def beats(self, count: int) -> None:
        """Let as many beats pass."""
        until = self.registry.beat + count
        async with asyncio.timeout(PATIENCE_S):
            while self.registry.beat < until:  # noqa: ASYNC110  # the registry tells nobody
                await asyncio.sleep(0.005)

    async def closing(self) -> None:
        """Wait until the door has begun to close."""
        async with asyncio.timeout(PATIENCE_S):
            while not self.registry.draining:  # noqa: ASYNC110  # the registry tells nobody
                await asyncio.sleep(0)

    async def close(self) -> None:
        self.app.go.set()
        for sender in self._senders:
            sender.hang_up()
        await self.door.stop(grace_s=1)


@contextlib.asynccontextmanager
async def front(app: App | None = None, **limits: Any) -> AsyncIterator[Front]:
    """A door with these limits instead of the usual ones, and short farewells."""
    listening = bind("127.0.0.1:0")
    app = app or App()
    door = Door(app, [listening], Limits(**{**QUICK, **limits}))
    address = listening.getsockname()
    await door.start()
    opened = Front(door, app, address)
    try:
        yield opened
    finally:
        await opened.close()


def statuses(heard: bytes) -> list[int]:
    """The status of every answer in a row of answers."""
    return [int(part[:3]) for part in heard.split(b"HTTP/1.1 ")[1:]]


def head(*fields: bytes, line: bytes = b"POST /hooks/a HTTP/1.1") -> bytes:
    """A head with a Host and these fields."""
    return b"\r\n".join([line, b"Host: hooks.example", *fields, b"", b""])
