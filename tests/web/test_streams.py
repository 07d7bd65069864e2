"""Answers that go on for longer than an answer may take, for as long as somebody reads them."""

import asyncio
import contextlib
from typing import Any

from tests.web.front import PATIENCE_S, App, front, head

ASK = head(line=b"GET /stream HTTP/1.1")
PIECE = b"x" * 65_536


class Streamer(App):
    """Writes `pieces` pieces, then another one each time that `go` is set, until its caller is
    gone.
    """

    def __init__(self, pieces: int) -> None:
        super().__init__()
        self.written = 0
        self._pieces = pieces

    async def _answer(self, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(self._pieces):
            await self._write(send)
        await self.go.wait()
        await self._write(send)
        await send({"type": "http.response.body", "body": b""})

    async def _write(self, send: Any) -> None:
        await send({"type": "http.response.body", "body": PIECE, "more_body": True})
        self.written += 1


class Waiter(App):
    """Answers when its caller has hung up."""

    async def _answer(self, send: Any) -> None:
        raise AssertionError("nobody is there")

    async def _read(self, request: Any, receive: Any) -> bool:
        await super()._read(request, receive)
        self.taken.set()
        return await super()._read(request, receive)


async def test_long_answer_outlives_its_deadline_while_its_reader_keeps_up() -> None:
    async with front(Streamer(1), answer_s=0.02) as door:
        sender = await door.connect(ASK)
        heard = asyncio.create_task(sender.rest())
        await door.beats(20)
        door.app.go.set()
        await door.app.ended.wait()
        sender.writer.write_eof()
        assert (await heard).count(PIECE) == 2
        assert door.registry.expired == 0


async def test_reader_that_takes_nothing_is_cut_off() -> None:
    app = Streamer(1_000)
    async with front(app, answer_s=0.1) as door:
        await door.connect(ASK)  # its own buffer is full after a few pieces
        async with asyncio.timeout(PATIENCE_S):
            await app.taken.wait()
            await door.emptied()
        assert door.registry.expired == 1
        app.go.set()
        await app.ended.wait()


async def test_reader_that_takes_it_slowly_is_not() -> None:
    """Each piece that is taken renews the deadline."""
    app = Streamer(300)
    async with front(app, answer_s=0.2) as door:
        sender = await door.connect(ASK)
        async with asyncio.timeout(PATIENCE_S):
            while app.written < 300:
                await sender.reader.readexactly(2 * len(PIECE))
                await door.beats(1)
        assert door.registry.beat > 2 * door.registry.beats(0.2)
        assert door.registry.expired == 0


async def test_door_that_closes_does_not_wait_for_a_reader_that_takes_nothing() -> None:
    app = Streamer(1_000)
    async with front(app, answer_s=3_600) as door:
        await door.connect(ASK)
        await app.taken.wait()
        app.go.set()
        async with asyncio.timeout(PATIENCE_S):
            await door.door.stop(grace_s=3_600)
        assert app.ended.is_set()


async def test_caller_that_finishes_its_side_has_hung_up_where_answers_are_waited_for() -> None:
    app = Waiter()
    async with front(app, half_closed=False) as door:
        sender = await door.connect(ASK)
        await app.taken.wait()
        sender.writer.write_eof()
        async with asyncio.timeout(PATIENCE_S):
            await app.ended.wait()
        assert app.requests[0].hung_up
        with contextlib.suppress(ConnectionResetError):
            assert await sender.rest() == b""
