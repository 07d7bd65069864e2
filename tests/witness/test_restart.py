"""A restart refuses nobody, resets nobody and leaves nobody without an answer."""

import asyncio
import collections
import os
import signal
import sys
import time
from collections.abc import Callable, Coroutine
from pathlib import Path

import pytest

from tests.witness.client import drive, hook, hooks, signed_request
from tests.witness.server import MakeServer, Server

pytestmark = pytest.mark.witness

HERE = Path(__file__).parent
FRONT = (sys.executable, str(HERE / "front.py"))
HOLDER = (sys.executable, str(HERE / "handover.py"))

RESTARTS = 10
CONNECTIONS = 8
# The longest that a caller waits while receivers change: stop and start, on a busy machine.
PATIENCE_S = 30.0
BETWEEN_S = 0.3

Load = Callable[[int, asyncio.Event], Coroutine[None, None, collections.Counter[str]]]


async def restarts(server: Server, times: int) -> None:
    """Each as soon as the one before has answered somebody."""
    for number in range(1, times + 1):
        await asyncio.sleep(BETWEEN_S)
        os.kill(server.pid, signal.SIGUSR1)
        deadline = time.monotonic() + PATIENCE_S
        while server.log_text().count("restarted") < number or not await answers(server):
            assert time.monotonic() < deadline, server.log_text()[-2_000:]
            await asyncio.sleep(0.05)


async def answers(server: Server) -> bool:
    return await asyncio.to_thread(server.ready)


async def kept(port: int, done: asyncio.Event) -> collections.Counter[str]:
    """Callers that keep their connection for as long as they may."""

    def wanted() -> collections.abc.Iterator[object]:
        for each in hooks("kept"):
            if done.is_set():
                return
            yield each

    report = await drive(
        port, wanted(), connections=CONNECTIONS, reconnect=True, patience_s=PATIENCE_S
    )
    told = collections.Counter({str(status): count for status, count in report.statuses.items()})
    told["refused"] += report.refused
    told["unanswered"] += len(report.unanswered)
    return +told


async def fresh(port: int, done: asyncio.Event) -> collections.Counter[str]:
    """Callers that take a new connection for each request."""
    told = collections.Counter[str]()

    async def caller(number: int) -> None:
        count = 0
        while not done.is_set():
            count += 1
            told[await once(port, f"fresh-{number}-{count}")] += 1

    await asyncio.gather(*(caller(number) for number in range(CONNECTIONS)))
    return told


async def once(port: int, key: str) -> str:
    """The status of one request, or how it failed."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(signed_request(hook(key)))
            line = await reader.readline()
    except ConnectionRefusedError:
        return "refused"
    except (OSError, TimeoutError) as error:
        return f"unanswered: {type(error).__name__}"
    writer.transport.abort()
    return line[9:12].decode() if line else "unanswered"


async def restarted_under(load: Load, server: Server, times: int) -> collections.Counter[str]:
    """What the callers of this kind were told meanwhile."""
    done = asyncio.Event()
    loading = asyncio.create_task(load(server.port, done))
    await restarts(server, times)
    done.set()
    return await loading


@pytest.mark.parametrize("load", [kept, fresh])
async def test_restart_under_load_is_noticed_by_nobody(server: MakeServer, load: Load) -> None:
    front = server((*FRONT, "guarded"), prefix=HOLDER).start()
    told = await restarted_under(load, front, RESTARTS)
    assert set(told) == {"200"}, told
    assert told["200"] > RESTARTS * CONNECTIONS
    assert "Traceback" not in front.log_text()


async def test_stock_farewell_is_noticed(server: MakeServer) -> None:
    """The planted fault: uvicorn's own way of closing leaves callers without an answer."""
    front = server((*FRONT, "stock"), prefix=HOLDER).start()
    told = collections.Counter[str]()
    for _ in range(5):
        told += await restarted_under(fresh, front, RESTARTS)
        if set(told) != {"200"}:
            return
    raise AssertionError(f"nobody noticed: {told}")
