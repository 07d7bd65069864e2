"""For each type of destination: a target that takes, one that hangs, and one that is not there."""

import asyncio
import contextlib
import json
import os
import select
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hookbox.destinations import DESTINATIONS
from hookbox.destinations.contract import Destination, Outfit
from hookbox.net import Way
from tests.servers import HOST, answering, http_server

KEY = b"0123456789abcdef0123456789abcdef"
TIMEOUT_S = 0.5
DIES_WITHIN_S = 5.0


def opened(type_name: str, *, keys: tuple[bytes, ...] = (KEY,), **options: Any) -> Destination:
    """A live destination of that type."""
    outfit = Outfit(name="app", options=options, keys=keys, way=Way)
    return DESTINATIONS[type_name].open(outfit)


@dataclass(kw_only=True)
class Rig:
    """A destination and what its target saw. `begun` returns once an attempt is under way; `left`
    is what is still there of one that ended.
    """

    destination: Destination
    bodies: Callable[[], list[bytes]] = list
    keys: Callable[[], list[str]] = list
    begun: Callable[[], Any] = lambda: asyncio.sleep(0)
    left: Callable[[], list[str]] = list


Rigged = Callable[[Path], AbstractAsyncContextManager[Rig]]


@asynccontextmanager
async def http_taking(_: Path) -> AsyncIterator[Rig]:
    async with http_server(answering("200 OK")) as seen:
        found = opened("http", url=f"http://{HOST}:{seen.port}/in")
        yield Rig(
            destination=found,
            bodies=lambda: seen.bodies,
            keys=lambda: [header(head, "idempotency-key") for head in seen.heads],
        )
        await found.close()


def header(head: bytes, name: str) -> str:
    """One header of a request's head."""
    lines = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:] if line)
    return {key.lower(): value for key, value in lines.items()}[name]


@asynccontextmanager
async def http_hanging(_: Path) -> AsyncIterator[Rig]:
    begun, gone = asyncio.Event(), asyncio.Event()

    async def respond(head: bytes, writer: asyncio.StreamWriter) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            gone.set()

    async with http_server(respond) as seen:
        found = opened("http", url=f"http://{HOST}:{seen.port}/in", timeout=TIMEOUT_S)
        yield Rig(destination=found, begun=begun.wait)
        await found.close()


@asynccontextmanager
async def http_missing(_: Path) -> AsyncIterator[Rig]:
    with socket.socket() as unused:
        unused.bind((HOST, 0))
        found = opened("http", url=f"http://{HOST}:{unused.getsockname()[1]}/in")
        yield Rig(destination=found)
        await found.close()


TAKE = 'printf "%s\\n" "$HOOKBOX_IDEMPOTENCY_KEY" >>keys; cat >>bodies; echo >>bodies'


def script(folder: Path, text: str) -> tuple[str, ...]:
    """A command that runs a shell script in a folder."""
    return ("sh", "-c", f'cd "$0" || exit; {text}', str(folder))


def lines(file: Path) -> list[bytes]:
    return file.read_bytes().splitlines() if file.exists() else []


@asynccontextmanager
async def exec_taking(folder: Path) -> AsyncIterator[Rig]:
    found = opened("exec", command=script(folder, TAKE))
    yield Rig(
        destination=found,
        bodies=lambda: lines(folder / "bodies"),
        keys=lambda: [line.decode() for line in lines(folder / "keys")],
    )
    await found.close()


@asynccontextmanager
async def exec_hanging(folder: Path) -> AsyncIterator[Rig]:
    """It also starts a program that hangs and does not mind being asked to end."""
    begun = folder / "begun"
    os.mkfifo(begun)
    text = "(trap '' TERM; echo $$ >pids; echo >begun; sleep 600) & echo $$ >pid; wait"
    found = opened("exec", command=script(folder, text), timeout=TIMEOUT_S)

    def left() -> list[str]:
        return [pid for name in ("pid", "pids") if (pid := one_line(folder / name)) and runs(pid)]

    yield Rig(destination=found, begun=lambda: asyncio.to_thread(begun.read_text), left=left)
    await found.close()


def one_line(file: Path) -> str:
    return file.read_text().strip() if file.exists() else ""


def runs(pid: str) -> bool:
    """Whether a program is still there, though it is given the time that dying takes."""
    try:
        watched = os.pidfd_open(int(pid))
    except ProcessLookupError:
        return False
    try:
        ended, _, _ = select.select([watched], [], [], DIES_WITHIN_S)
        return not ended
    finally:
        os.close(watched)


@asynccontextmanager
async def exec_missing(folder: Path) -> AsyncIterator[Rig]:
    yield Rig(destination=opened("exec", command=(str(folder / "nowhere"),)))


@asynccontextmanager
async def jsonl_taking(folder: Path) -> AsyncIterator[Rig]:
    path = folder / "out.jsonl"
    found = opened("jsonl", path=path)

    def key(line: bytes) -> str:
        told = json.loads(line)
        return f"{told['id']}:r{told['replay']}" if told["replay"] else str(told["id"])

    yield Rig(
        destination=found,
        bodies=lambda: lines(path),
        keys=lambda: [key(line) for line in lines(path)],
    )
    await found.close()


@contextlib.contextmanager
def no_thread_free() -> Iterator[None]:
    """The loop's only thread waits for something else, as for a disk that hangs."""
    free, pool = threading.Event(), ThreadPoolExecutor(1)
    asyncio.get_running_loop().set_default_executor(pool)
    pool.submit(free.wait)
    try:
        yield
    finally:
        free.set()


@asynccontextmanager
async def jsonl_hanging(folder: Path) -> AsyncIterator[Rig]:
    with no_thread_free():
        found = opened("jsonl", path=folder / "out.jsonl", timeout=TIMEOUT_S)
        yield Rig(destination=found)
    await found.close()


@asynccontextmanager
async def jsonl_missing(folder: Path) -> AsyncIterator[Rig]:
    found = opened("jsonl", path=folder / "nowhere" / "out.jsonl")
    yield Rig(destination=found)
    await found.close()


TAKING: dict[str, Rigged] = {"http": http_taking, "exec": exec_taking, "jsonl": jsonl_taking}
HANGING: dict[str, Rigged] = {"http": http_hanging, "exec": exec_hanging, "jsonl": jsonl_hanging}
MISSING: dict[str, Rigged] = {"http": http_missing, "exec": exec_missing, "jsonl": jsonl_missing}
