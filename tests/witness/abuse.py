"""Senders that are slow, greedy or mad, and honest ones among them.

Loopback only; every attack is bounded in connections, bytes and time.
"""

import asyncio
import collections
import contextlib
import random
import socket
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import cast

from tests.witness.client import hook, signed_request

HEAD = b"POST /hooks/std HTTP/1.1\r\nHost: 127.0.0.1\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"

# How an attack begins, and what it goes on with.
SLOW_HEAD = (HEAD, b"X-A: b\r\n")
SLOW_BODY = (HEAD + b"Content-Length: 100000\r\n\r\n", b"x")
HOARD = (HEAD + b"Content-Length: 1000000\r\n\r\n" + b"x" * 990_000, b"x")
GREEDY = {
    "body of a said length": (HEAD + b"Content-Length: 300000000\r\n\r\n", b"x" * 65_536),
    "body in chunks": (CHUNKED, b"10000\r\n" + b"x" * 65_536 + b"\r\n"),
    "one field": (HEAD + b"X-A: ", b"x" * 65_536),
    "many fields": (HEAD, b"X-A: b\r\n" * 8_192),
    "target": (b"POST /", b"x" * 65_536),
    "chunk extension": (CHUNKED + b"1;a=", b"x" * 65_536),
    "trailers": (CHUNKED + b"0\r\n", b"X-A: b\r\n" * 8_192),
}

_CONNECTS_AT_ONCE = 100
_PROBES_A_SECOND = 10
_PROBE_PATIENCE_S = 5.0
_PUSHED_MAX = 16 * 1024 * 1024

Attack = Callable[[], Coroutine[None, None, object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """What an honest sender with a connection of its own was told; status 0 is no answer."""

    status: int
    took_s: float


class _Attacker(asyncio.Protocol):
    """One connection that sends what it is told to, until somebody ends it."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport
        self.heard = b""
        self.writable = asyncio.Event()
        self.writable.set()
        self.ended = asyncio.Event()  # the door has closed its side, or both
        self.lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self.heard += data

    def pause_writing(self) -> None:
        self.writable.clear()

    def resume_writing(self) -> None:
        self.writable.set()

    def eof_received(self) -> None:
        self.ended.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True
        self.ended.set()
        self.writable.set()

    def hang_up(self) -> None:
        if not self.lost:
            self.transport.abort()


async def _attacker(port: int) -> _Attacker | None:
    loop = asyncio.get_running_loop()
    try:
        _, attacker = await loop.create_connection(_Attacker, "127.0.0.1", port)
    except OSError:
        return None
    return attacker


async def slow(port: int, start: bytes, more: bytes, *, connections: int, seconds: float) -> None:
    """So many connections at a time, each of which sends a little every second."""
    until = time.monotonic() + seconds
    attackers: list[_Attacker] = []
    for _ in range(0, connections, _CONNECTS_AT_ONCE):
        made = await asyncio.gather(*(_attacker(port) for _ in range(_CONNECTS_AT_ONCE)))
        fresh = [attacker for attacker in made if attacker is not None]
        for attacker in fresh:
            attacker.transport.write(start)
        attackers += fresh
    while time.monotonic() < until:
        for attacker in attackers:
            if not attacker.ended.is_set():
                attacker.transport.write(more)
        await asyncio.sleep(1)
    for attacker in attackers:
        attacker.hang_up()


async def greedy(port: int, start: bytes, more: bytes) -> int:
    """Push as much as is taken; how many bytes went before the answer or the end."""
    attacker = await _attacker(port)
    assert attacker is not None, "no connection for a single attacker"
    # Else the kernel takes megabytes that the receiver never asked for.
    own = attacker.transport.get_extra_info("socket")
    own.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65_536)
    attacker.transport.write(start)
    pushed = 0
    while not attacker.heard and not attacker.ended.is_set() and pushed < _PUSHED_MAX:
        attacker.transport.write(more)
        pushed += len(more)
        await attacker.writable.wait()
        await asyncio.sleep(0)
    attacker.hang_up()
    return pushed


async def probes(port: int, attack: Attack) -> list[Probe]:
    """Ten honest senders a second while the attack lasts."""
    attacking = asyncio.create_task(attack())
    asked: list[asyncio.Task[Probe]] = []
    while not attacking.done():
        asked.append(asyncio.create_task(_probe(port, f"honest-{len(asked)}")))
        await asyncio.wait({attacking}, timeout=1 / _PROBES_A_SECOND)
    await attacking
    return list(await asyncio.gather(*asked))


async def _probe(port: int, name: str) -> Probe:
    started = time.monotonic()
    status = 0
    with contextlib.suppress(OSError, asyncio.IncompleteReadError, TimeoutError):
        async with asyncio.timeout(_PROBE_PATIENCE_S):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                writer.write(signed_request(hook(f"{name}-{started}")))
                status = int((await reader.readuntil(b"\r\n")).split()[1])
            finally:
                writer.transport.abort()
    return Probe(status=status, took_s=time.monotonic() - started)


async def garbage(port: int, count: int, seed: int) -> collections.Counter[str]:
    """Requests broken in six ways, fifty at a time; what each was told."""
    generator = random.Random(seed)
    told = collections.Counter[str]()

    async def some(numbers: range) -> None:
        for number in numbers:
            told[await _told(port, _broken(generator, f"garbage-{seed}-{number}"))] += 1

    await asyncio.gather(*(some(range(start, count, 50)) for start in range(50)))
    return told


def _broken(generator: random.Random, name: str) -> bytes:
    sound = signed_request(hook(name))
    place = generator.randrange(len(sound))
    match generator.randrange(6):
        case 0:
            return generator.randbytes(generator.randrange(1, 2_000))
        case 1:
            changed = bytearray(sound)
            for _ in range(generator.randrange(1, 8)):
                changed[generator.randrange(len(changed))] = generator.randrange(256)
            return bytes(changed)
        case 2:
            return sound[:place]
        case 3:
            return sound[:place] + generator.randbytes(generator.randrange(1, 50)) + sound[place:]
        case 4:
            return sound * generator.randrange(2, 5)
        case _:
            ends = (b"\n", b"\r", b"\r\n\r\n", b"\0\r\n")
            return sound.replace(b"\r\n", generator.choice(ends), generator.randrange(1, 4))


async def _told(port: int, sent: bytes) -> str:
    """The status, or how the connection ended without one."""
    try:
        async with asyncio.timeout(_PROBE_PATIENCE_S):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                writer.write(sent)
                writer.write_eof()
                line = await reader.readline()
            finally:
                writer.transport.abort()
    except TimeoutError:
        return "nothing"
    except OSError as error:
        return type(error).__name__
    return line[9:12].decode("latin-1") if line.startswith(b"HTTP/1.1 ") else "closed"
