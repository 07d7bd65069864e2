"""Slow, greedy and silent senders lose their place; honest ones are answered."""

import asyncio

import pytest

from tests.web.front import HONEST, PATIENCE_S, front, head, statuses

CHUNKED = b"Transfer-Encoding: chunked"
WAIT = head(b"Content-Length: 0", line=b"POST /wait HTTP/1.1")


async def test_slow_head_is_told_and_cut_off() -> None:
    async with front(head_s=0.05) as door:
        heard = await door.ask(b"POST /hooks/a HTTP/1.1\r\nHost: a\r\nX-A: ")
        assert statuses(heard) == [408]
        assert door.registry.expired == 1
        assert not door.app.requests


async def test_head_that_trickles_does_not_move_its_deadline() -> None:
    async with front(head_s=0.2) as door:
        sender = await door.connect(b"POST /hooks/a HTTP/1.1\r\nHost: a\r\n")
        heard = asyncio.create_task(sender.rest())
        while not heard.done():
            await sender.send(b"X-A: b\r\n")
            await asyncio.wait({heard}, timeout=0.02)
        assert statuses(heard.result()) == [408]


async def test_silent_connection_is_closed_without_a_word() -> None:
    """An answer nobody asked for could be taken for the answer to the next request."""
    async with front(head_s=0.05) as door:
        assert await door.ask() == b""
        assert door.registry.expired == 0


async def test_slow_body_is_closed_without_an_answer_and_the_app_called_off() -> None:
    """To some senders any 4xx means "never again"; no answer means "again" to all of them."""
    async with front(body_s=0.05, linger_s=60) as door:
        heard = await door.ask(head(b"Content-Length: 100") + b"x")
        assert statuses(heard) == []
        async with asyncio.timeout(PATIENCE_S):
            await door.app.ended.wait()
        assert door.app.requests[0].hung_up


async def test_app_that_does_not_read_is_no_fault_of_the_sender() -> None:
    """A 4xx would be final for some senders, and the delay is ours."""
    late = head(b"Content-Length: 400000", line=b"POST /late HTTP/1.1")
    async with front(body_s=0.05) as door:
        sender = await door.connect(late + b"x" * 399_999)
        answer = await sender.answer()
        assert (answer.status, answer.headers[b"retry-after"]) == (503, b"2")


async def test_app_that_never_answers_costs_its_connection_only() -> None:
    async with front(answer_s=0.05) as door:
        assert await door.ask(WAIT) == b""
        await door.emptied()
        assert door.registry.expired == 1


async def test_kept_connection_is_closed_when_nothing_more_comes() -> None:
    async with front(idle_s=0.05) as door:
        assert statuses(await door.ask(HONEST)) == [200]
        assert door.registry.expired == 0


async def test_kept_connection_ends_after_its_share_of_requests() -> None:
    async with front(requests_max=3) as door:
        sender = await door.connect()
        for expected in (None, None, b"close"):
            await sender.send(HONEST)
            assert (await sender.answer()).headers.get(b"connection") == expected
        assert await sender.rest() == b""


@pytest.mark.parametrize(("bytes_over", "status"), [(0, 200), (1, 431)])
async def test_head_is_capped_to_the_byte(bytes_over: int, status: int) -> None:
    bare = len(head(b"Content-Length: 0", b"X-A: "))
    filling = b"X-A: " + b"x" * (1_024 - bare + bytes_over)
    async with front(head_bytes_max=1_024, idle_s=0.05) as door:
        assert statuses(await door.ask(head(b"Content-Length: 0", filling))) == [status]


@pytest.mark.parametrize(("fields", "status"), [(98, 200), (99, 431)])
async def test_fields_are_counted(fields: int, status: int) -> None:
    """Host and Content-Length are two of the hundred."""
    many = (b"X-%d: a" % number for number in range(fields))
    async with front(idle_s=0.05) as door:
        heard = await door.ask(head(b"Content-Length: 0", *many))
        assert statuses(heard) == [status]


ENDLESS = {
    "one field": (b"POST / HTTP/1.1\r\nX-A: ", b"x" * 1_000),
    "many fields": (b"POST / HTTP/1.1\r\n", b"X-A: b\r\n" * 125),
    "target": (b"POST /", b"x" * 1_000),
    "empty lines": (b"", b"\r\n" * 500),
    "chunk extension": (head(CHUNKED) + b"1;a=", b"x" * 1_000),
    "trailers": (head(CHUNKED) + b"0\r\n", b"X-A: b\r\n" * 125),
    "one trailer": (head(CHUNKED) + b"0\r\nX-A: ", b"x" * 1_000),
}


@pytest.mark.parametrize("name", ENDLESS)
async def test_what_has_no_end_is_refused_soon(name: str) -> None:
    start, more = ENDLESS[name]
    async with front() as door:
        sender = await door.connect(start)
        heard = asyncio.create_task(sender.rest())
        sent = 0
        while not heard.done():
            sent += len(more)
            assert sent < 256 * 1_024
            await sender.send(more)
        assert statuses(heard.result()) == [431]


async def test_body_above_the_cap_is_refused_before_it_is_read() -> None:
    """Even a sender that asks first: it is never told to continue, and the app sees nothing."""
    async with front(body_bytes_max=1_000) as door:
        fields = (b"Content-Length: 1001", b"Expect: 100-continue")
        assert statuses(await door.ask(head(*fields))) == [413]
        assert not door.app.requests


async def test_refusal_reaches_a_sender_that_is_still_sending() -> None:
    """Closing at once would reset the connection before the sender looks at the answer."""
    body = b"x" * 4_000_000
    async with front() as door:
        sender = await door.connect()
        await sender.send(head(b"Content-Length: %d" % len(body)) + body)
        assert (await sender.answer()).status == 413
        await door.emptied()


async def test_sender_that_does_not_listen_is_cut_off() -> None:
    """A refusal is waited for, but not for ever, and not for any number of bytes."""
    async with front(linger_s=0.05) as door:
        await door.connect(head(b"Content-Length: x"))
        await door.emptied()
    async with front(linger_s=60, linger_bytes_max=100_000) as door:
        await door.connect(head(b"Content-Length: x") + b"x" * 300_000)
        await door.emptied()


async def test_chunked_body_is_refused_at_the_cap_and_the_app_called_off() -> None:
    async with front(body_bytes_max=1_000) as door:
        heard = await door.ask(
            head(CHUNKED) + b"1f4\r\n" + b"x" * 500 + b"\r\n1f5\r\n" + b"x" * 501
        )
        assert statuses(heard) == [413]
        async with asyncio.timeout(PATIENCE_S):
            await door.app.ended.wait()
        assert door.app.requests[0].hung_up


async def test_sender_that_asks_first_is_told_to_continue() -> None:
    async with front() as door:
        sender = await door.connect(head(b"Content-Length: 2", b"Expect: 100-continue"))
        assert (await sender.answer()).status == 100
        await sender.send(b"ok")
        assert (await sender.answer()).status == 200
        assert door.app.requests[0].body == b"ok"
        assert await sender.rest() == b""


async def test_old_sender_that_asks_first_just_waits_for_its_answer() -> None:
    """HTTP/1.0 does not know the answer 100 and would take it for the last one."""
    fields = (b"Content-Length: 2", b"Expect: 100-continue")
    async with front() as door:
        heard = await door.ask(head(*fields, line=b"POST / HTTP/1.0") + b"ok")
        assert statuses(heard) == [200]


async def test_answer_before_the_body_drops_the_body_and_keeps_the_connection() -> None:
    early = head(b"Content-Length: 300000", line=b"POST /early HTTP/1.1")
    async with front() as door:
        sender = await door.connect(early + b"x" * 200_000)
        assert (await sender.answer()).status == 200
        await sender.send(b"x" * 100_000, HONEST)
        assert (await sender.answer()).status == 200
        assert [request.path for request in door.app.requests] == ["/early", "/hooks/a"]
        assert door.registry.held_bytes == 0


async def test_body_behind_an_early_answer_has_its_deadline_and_cap_still() -> None:
    early = head(CHUNKED, line=b"POST /early HTTP/1.1")
    async with front(body_s=0.1) as door:
        assert statuses(await door.ask(early + b"2\r\nab\r\n")) == [200]
    async with front(body_bytes_max=1_000) as door:
        sender = await door.connect(early)
        await sender.answer()
        await sender.send(b"3e9\r\n" + b"x" * 1_001)
        assert await sender.rest() == b""


async def test_sender_that_finishes_its_side_still_gets_the_answer() -> None:
    async with front() as door:
        sender = await door.connect(WAIT)
        sender.writer.write_eof()
        await (await door.connect(HONEST)).answer()  # by now the end has been seen
        door.app.go.set()
        answer = await sender.answer()
        assert (answer.status, answer.headers[b"connection"]) == (200, b"close")


async def test_sender_that_asks_again_before_its_answer_gets_that_answer_alone() -> None:
    async with front() as door:
        sender = await door.connect(WAIT)
        await door.app.taken.wait()
        await sender.send(HONEST)
        await (await door.connect(HONEST)).answer()  # by now the second request has been seen
        door.app.go.set()
        answer = await sender.answer()
        assert (answer.status, answer.headers[b"connection"]) == (200, b"close")
        assert await sender.rest() == b""


async def test_fault_of_ours_is_not_blamed_on_the_sender(caplog: pytest.LogCaptureFixture) -> None:
    """An error inside the protocol is told in the log, and the sender hears nothing final."""
    async with front(fields_max="not a number") as door:
        assert await door.ask(HONEST) == b""
        assert "TypeError" in caplog.text


async def test_sender_that_hangs_up_leaves_nothing_behind() -> None:
    async with front() as door:
        for sent in (b"", b"POST", head(b"Content-Length: 9") + b"x", HONEST):
            sender = await door.connect(sent)
            sender.hang_up()
        await door.emptied()
        assert door.registry.held_bytes == 0


async def test_full_door_puts_out_the_one_waited_for_longest() -> None:
    async with front(connections_max=3) as door:
        oldest = await door.connect(b"POST /hooks/a HTTP/1.1\r\n")
        younger = [await door.connect(head(b"Content-Length: 9") + b"x") for _ in range(2)]
        honest = await door.connect(HONEST)
        assert (await honest.answer()).status == 200
        assert await oldest.rest() == b""
        assert door.registry.evicted == 1
        await younger[0].send(b"x" * 8)
        assert (await younger[0].answer()).status == 200


async def test_kept_connection_that_asks_again_is_no_longer_the_oldest() -> None:
    async with front(connections_max=2) as door:
        kept = await door.connect(HONEST)
        await kept.answer()
        slow = await door.connect(HONEST[:20])
        await kept.send(HONEST[:20])
        await (await door.connect(HONEST)).answer()
        assert await slow.rest() == b""
        await kept.send(HONEST[20:])
        assert (await kept.answer()).status == 200


async def test_connection_that_waits_for_us_is_never_put_out() -> None:
    """However many come: whoever has sent a whole request gets its answer."""
    async with front(connections_max=2) as door:
        waiting = await door.connect(WAIT)
        async with asyncio.timeout(PATIENCE_S):
            await door.app.taken.wait()
        for _ in range(5):
            await door.connect(b"POST")
        assert (await (await door.connect(HONEST)).answer()).status == 200
        door.app.go.set()
        assert (await waiting.answer()).status == 200


async def test_kept_connection_gives_way_to_a_new_one() -> None:
    async with front(connections_max=1) as door:
        kept = await door.connect(HONEST)
        await kept.answer()
        assert (await (await door.connect(HONEST)).answer()).status == 200
        assert await kept.rest() == b""


async def test_full_memory_puts_out_whoever_holds_most() -> None:
    """Big bodies that never end cannot keep a small one from being read."""
    async with front(held_bytes_max=50_000) as door:
        greedy = await door.connect(head(b"Content-Length: 90000") + b"x" * 30_000)
        modest = await door.connect(head(b"Content-Length: 20000") + b"x" * 19_990)
        honest = await door.connect(head(b"Content-Length: 100") + b"x" * 100)
        assert (await honest.answer()).status == 200
        assert await greedy.rest() == b""
        await modest.send(b"x" * 10)
        assert (await modest.answer()).status == 200


async def test_memory_full_of_our_own_work_makes_the_sender_come_back() -> None:
    """Nobody is to blame but us: 503 with a time, never a 4xx."""
    async with front(held_bytes_max=10_000) as door:
        size = b"Content-Length: 9000"
        await door.connect(head(size, line=b"POST /wait HTTP/1.1") + b"x" * 9_000)
        async with asyncio.timeout(PATIENCE_S):
            await door.app.taken.wait()
        late = await door.connect(head(size) + b"x" * 9_000)
        answer = await late.answer()
        assert (answer.status, answer.headers[b"retry-after"]) == (503, b"2")
