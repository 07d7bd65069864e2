"""The forward benchmark: how many parcels a second reach a fast local server?

    python -m tests.bench.forward                  about half a minute
    python -m tests.bench.forward --parcels 500    a look
    python -m tests.bench.forward --check          exit 1 when a floor is missed

The http destination brings signed parcels over 16 connections to a server on the other core, which
answers at once. A plain httpx client sends the same bodies unsigned in the same run. Prints a
Markdown table; the median of the rounds counts. On a machine with other work the processor time
says more than the rate.
"""

import argparse
import asyncio
import multiprocessing
import os
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from statistics import median

import httpx

from hookbox.destinations import DESTINATIONS
from hookbox.destinations.contract import Outfit
from hookbox.model import Parcel, Verdict
from hookbox.net import Way
from tests.bench.floors import Floor

CONNECTIONS = 16
ROUNDS = 3
FORWARD_MIN_PER_S = 1_500
OVER_HTTPX_MIN = 1.5

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
BODY = b'{"id": 1, "content": "' + b"x" * 800 + b'"}'  # as an event of most senders

Bring = Callable[[int], Awaitable[None]]


class Sink(asyncio.Protocol):
    """Answers each request when the last of it is there."""

    transport: asyncio.Transport
    left = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        self.left += data
        while (end := self.left.find(b"\r\n\r\n") + 4) > 3:
            length = int(self.left[:end].lower().partition(b"content-length:")[2].split()[0])
            if len(self.left) < end + length:
                return
            self.left = self.left[end + length :]
            self.transport.write(ANSWER)


def sink(told: Connection, core: int) -> None:
    """The server, in a program of its own."""
    os.sched_setaffinity(0, {core})

    async def serve() -> None:
        server = await asyncio.get_running_loop().create_server(Sink, "127.0.0.1", 0)
        told.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(serve())


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """Parcels a second, and the processor time that one took."""

    rate: float
    cost_us: float


async def timed(bring: Bring, parcels: int) -> Round:
    """One round, with as many under way as there are connections."""
    numbers = iter(range(1, parcels + 1))

    async def lane() -> None:
        for number in numbers:
            await bring(number)

    begun, used = time.perf_counter(), time.process_time()
    await asyncio.gather(*(lane() for _ in range(CONNECTIONS)))
    seconds, used = time.perf_counter() - begun, time.process_time() - used
    return Round(rate=parcels / seconds, cost_us=used / parcels * 1e6)


def parcel(number: int) -> Parcel:
    return Parcel(
        event_id=number,
        replay=0,
        attempt=1,
        sent_at=time.time_ns() // 1_000_000,
        source="shop",
        kind="delivered",
        recipient="ann@example.com",
        message_id="m-1",
        body=BODY,
    )


async def of_destination(url: str, parcels: int) -> Round:
    outfit = Outfit(name="app", options={"url": url}, keys=(os.urandom(32),), way=Way)
    destination = DESTINATIONS["http"].open(outfit)

    async def bring(number: int) -> None:
        attempt = await destination.deliver(parcel(number))
        assert attempt.verdict is Verdict.DONE, attempt

    try:
        return await timed(bring, parcels)
    finally:
        await destination.close()


async def of_httpx(url: str, parcels: int) -> Round:
    limits = httpx.Limits(max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS)
    async with httpx.AsyncClient(trust_env=False, limits=limits) as client:

        async def bring(number: int) -> None:
            headers = {"content-type": "application/json", "idempotency-key": str(number)}
            assert (await client.post(url, content=BODY, headers=headers)).status_code == 200

        return await timed(bring, parcels)


def measured(url: str, parcels: int) -> dict[str, list[Round]]:
    """Both in turn, so that neighbours disturb both."""
    contenders = {"hookbox, signed": of_destination, "httpx, plain": of_httpx}
    found: dict[str, list[Round]] = {name: [] for name in contenders}
    for _ in range(ROUNDS):
        for name, contender in contenders.items():
            found[name].append(asyncio.run(contender(url, parcels)))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parcels", type=int, default=4_000, help="in each round")
    parser.add_argument("--cores", default="0,1", help="ours, and the server's")
    parser.add_argument("--check", action="store_true", help="exit 1 when a floor is missed")
    options = parser.parse_args()
    ours, theirs = map(int, options.cores.split(","))
    heard, told = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=sink, args=(told, theirs))
    server.start()
    try:
        os.sched_setaffinity(0, {ours})
        found = measured(f"http://127.0.0.1:{heard.recv()}/in", options.parcels)
    finally:
        server.terminate()
        server.join()
    print("| who | parcels/s | µs of processor time each | rounds |\n| --- | --- | --- | --- |")
    for name, rounds in found.items():
        each = ", ".join(f"{one.rate:,.0f}" for one in rounds)
        print(f"| {name} | {rate(rounds):,.0f} | {cost_us(rounds):,.0f} | {each} |")
    return verdict(found) if options.check else 0


def rate(rounds: list[Round]) -> float:
    return median(one.rate for one in rounds)


def cost_us(rounds: list[Round]) -> float:
    return median(one.cost_us for one in rounds)


def verdict(found: dict[str, list[Round]]) -> int:
    mine, plain = found.values()
    floors = (
        Floor(name="parcels/s", measured=rate(mine), bound=FORWARD_MIN_PER_S, least=True),
        Floor(
            name="processor time, plain httpx to ours",
            measured=cost_us(plain) / cost_us(mine),
            bound=OVER_HTTPX_MIN,
            least=True,
        ),
    )
    missed = [floor for floor in floors if not floor.met]
    for floor in missed:
        print(f"missed: {floor.name}: {floor.measured:,.1f}, at least {floor.bound:,} are wanted")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
