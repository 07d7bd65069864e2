"""HTTP servers that do as they are told, on loopback: no framework, so that they can misbehave."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

HOST = "127.0.0.1"


@dataclass
class Seen:
    """What a server was asked, and where it listens."""

    port: int = 0
    heads: list[bytes] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)

    @property
    def where(self) -> tuple[str, int]:
        return HOST, self.port


# The head of a request to what is written back; a coroutine may write and wait as it likes.
Respond = Callable[[bytes, asyncio.StreamWriter], Awaitable[None]]


def answering(status: str, body: bytes = b"", *headers: str) -> Respond:
    """A server that says the same to everybody."""

    async def respond(head: bytes, writer: asyncio.StreamWriter) -> None:
        lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
        writer.write("\r\n".join(lines).encode() + body)

    return respond


@asynccontextmanager
async def http_server(respond: Respond, tls: ssl.SSLContext | None = None) -> AsyncIterator[Seen]:
    """One request for each connection, then it is closed."""
    seen = Seen()
    running: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if tls is not None:
                await writer.start_tls(tls)
            head = await reader.readuntil(b"\r\n\r\n")
            length = _length(head)
            seen.heads.append(head)
            seen.bodies.append(await reader.readexactly(length) if length else b"")
            await respond(head, writer)
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await writer.wait_closed()
            writer.transport.abort()  # when there is something left that nobody reads

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(serve(reader, writer))
        running.add(task)
        task.add_done_callback(running.discard)

    listening = await asyncio.start_server(accept, HOST, 0)
    seen.port = listening.sockets[0].getsockname()[1]
    try:
        yield seen
    finally:
        await _turns()  # whoever has just connected is accepted: a closed server would forget them
        listening.close()
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await listening.wait_closed()
        await _turns()  # whoever was cut off gets closed


async def _turns() -> None:
    """The event loop does what it has put off."""
    for _ in range(5):
        await asyncio.sleep(0)


def _length(head: bytes) -> int:
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line.partition(b":")[2])
    return 0
