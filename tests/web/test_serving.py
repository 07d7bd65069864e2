"""A door opens and closes without anybody noticing but those who must."""

import asyncio
import signal
import socket
import struct
from pathlib import Path

import pytest

from hookbox.web.connections import Limits
from hookbox.web.serving import Door
from hookbox.web.sockets import BACKLOG, bind
from tests.web.front import HONEST, PATIENCE_S, QUICK, App, front, head

WAIT = head(b"Content-Length: 0", line=b"POST /wait HTTP/1.1")


async def test_signals_stay_with_whoever_had_them() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    async with front():
        assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


async def test_answers_tell_the_date_and_nothing_about_the_program() -> None:
    async with front() as door:
        answer = await (await door.connect(HONEST)).answer()
        assert set(answer.headers) == {b"date", b"content-length"}


async def test_forwarded_address_is_not_believed() -> None:
    """Whom to believe is for the app's own settings; the server itself believes nobody."""
    async with front() as door:
        fields = (
            b"X-Forwarded-For: 203.0.113.9",
            b"X-Forwarded-Proto: https",
            b"Content-Length: 0",
        )
        await (await door.connect(head(*fields))).answer()
        assert door.app.requests[0].scope["client"][0] == "127.0.0.1"
        assert door.app.requests[0].scope["scheme"] == "http"


async def test_door_that_closes_hears_out_whoever_is_connected() -> None:
    """New connections and kept ones get a moment to ask, and their answer says it is the last."""
    async with front(drain_s=PATIENCE_S) as door:
        fresh = await door.connect()
        kept = await door.connect(HONEST)
        assert b"connection" not in (await kept.answer()).headers
        begun = await door.connect(HONEST[:20])
        closing = asyncio.create_task(door.door.stop(PATIENCE_S))
        await door.closing()
        for sender, sent in ((fresh, HONEST), (kept, HONEST), (begun, HONEST[20:])):
            await sender.send(sent)
            answer = await sender.answer()
            assert (answer.status, answer.headers[b"connection"]) == (200, b"close")
            assert await sender.rest() == b""
        await closing


async def test_door_that_closes_finishes_what_it_has_begun() -> None:
    async with front() as door:
        waiting = await door.connect(WAIT)
        await door.app.taken.wait()
        closing = asyncio.create_task(door.door.stop(PATIENCE_S))
        await asyncio.wait({closing}, timeout=0.3)
        assert not closing.done()
        door.app.go.set()
        answer = await waiting.answer()
        assert (answer.status, answer.headers[b"connection"]) == (200, b"close")
        await closing


async def test_door_that_closes_does_not_wait_for_the_silent() -> None:
    async with front(drain_s=0.05, head_s=60, idle_s=60) as door:
        senders = [await door.connect(), await door.connect(HONEST)]
        await senders[1].answer()
        async with asyncio.timeout(PATIENCE_S):
            await door.door.stop(grace_s=60)
        assert [await sender.rest() for sender in senders] == [b"", b""]


async def test_connection_that_slips_in_while_the_door_closes_is_not_waited_for_long() -> None:
    """The loop had accepted it before, and tells the door only now."""
    async with front(drain_s=0.05, head_s=60) as door:
        door.registry.draining = True
        assert await door.ask() == b""
        assert b"connection: close" in await door.ask(HONEST)


async def test_door_that_closes_takes_no_more_from_whoever_was_answered_early() -> None:
    early = head(b"Content-Length: 2", line=b"POST /early HTTP/1.1")
    async with front(idle_s=60) as door:
        sender = await door.connect(early + b"x")
        await sender.answer()
        silent = await door.connect()
        closing = asyncio.create_task(door.door.stop(grace_s=60))
        await silent.rest()  # by now everybody has been told
        await sender.send(b"x")
        assert await sender.rest() == b""
        await closing


async def test_grace_is_the_longest_that_closing_takes() -> None:
    """Whoever is cut off hears nothing and comes back; the app may still finish what it does."""
    async with front() as door:
        waiting = await door.connect(WAIT)
        await door.app.taken.wait()
        async with asyncio.timeout(PATIENCE_S):
            await door.door.stop(grace_s=0.1)
        assert await waiting.rest() == b""
        door.app.go.set()
        await door.app.ended.wait()


async def test_caller_between_two_doors_waits_and_is_answered() -> None:
    """With a socket that somebody else holds too, nobody is refused while doors change."""
    held = bind("127.0.0.1:0")
    apps = [App(), App()]
    doors = [Door(app, [held.dup()], Limits(**QUICK)) for app in apps]
    await doors[0].start()
    await doors[0].stop(grace_s=1)
    reader, writer = await asyncio.open_connection(*held.getsockname())
    writer.write(HONEST)
    await doors[1].start()
    async with asyncio.timeout(PATIENCE_S):
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
    assert [len(app.requests) for app in apps] == [0, 1]
    writer.transport.abort()
    await doors[1].stop(grace_s=1)
    held.close()


async def test_kernel_holds_the_whole_queue_for_us() -> None:
    """The loop takes fewer connections a turn than the kernel lets wait."""
    held = bind("127.0.0.1:0")
    door = Door(App(), [held.dup()])
    await door.start()
    # The seventh 32-bit number of a listener's tcp_info is its longest queue.
    facts = held.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
    longest = struct.unpack_from("=8B24I", facts)[8 + 5]
    assert longest == min(BACKLOG, somaxconn())
    await door.stop(grace_s=1)
    held.close()


def somaxconn() -> int:
    return int(Path("/proc/sys/net/core/somaxconn").read_text())


async def test_door_that_cannot_open_says_so() -> None:
    closed = bind("127.0.0.1:0")
    closed.close()
    with pytest.raises(OSError, match="descriptor"):
        await Door(App(), [closed]).start()


async def test_door_on_a_unix_socket(tmp_path: Path) -> None:
    door = Door(App(), [bind(f"unix:{tmp_path}/hooks.sock")])
    await door.start()
    reader, writer = await asyncio.open_unix_connection(tmp_path / "hooks.sock")
    writer.write(HONEST)
    async with asyncio.timeout(PATIENCE_S):
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
    writer.transport.abort()
    await door.stop(grace_s=1)


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


async def test_no_file_descriptor_is_left_behind() -> None:
    """But what the loop opens for its own use with the first door."""
    counts = []
    for _ in range(2):
        async with front() as door:
            for _ in range(20):
                await (await door.connect(HONEST)).answer()
        counts.append(open_files())
    assert counts[0] == counts[1]
