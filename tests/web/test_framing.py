"""A request that two programs could read in two ways is refused, and hides no other request."""

import sys
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.web.front import HONEST, Front, front, head, statuses

pytestmark = pytest.mark.asyncio(loop_scope="module")

CHUNKED = b"Transfer-Encoding: chunked"
EMPTY = b"Content-Length: 0"
NO_CHUNKS = b"0\r\n\r\n"
HIDDEN = b"GET /hidden HTTP/1.1\r\nHost: hooks.example\r\n\r\n"

# name: the bytes, and how they are refused. The hidden request follows each of them.
AMBIGUOUS = {
    "length and chunks": (head(b"Content-Length: 6", CHUNKED) + NO_CHUNKS, 400),
    "chunks and length": (head(CHUNKED, b"Content-Length: 4") + b"5c\r\n", 400),
    "two equal lengths": (head(b"Content-Length: 2", b"Content-Length: 2") + b"ab", 400),
    "two lengths": (head(b"Content-Length: 2", b"Content-Length: 51") + b"ab", 400),
    "list of lengths": (head(b"Content-Length: 2, 2") + b"ab", 400),
    "length with sign": (head(b"Content-Length: +2") + b"ab", 400),
    "length in hex": (head(b"Content-Length: 0x2") + b"ab", 400),
    "length below zero": (head(b"Content-Length: -1"), 400),
    "length with blank": (head(b"Content-Length: 2 2") + b"ab", 400),
    "length empty": (head(b"Content-Length:"), 400),
    "length in other digits": (head("Content-Length: ٢".encode()) + b"ab", 400),
    "length of 2 to the 64": (head(b"Content-Length: 18446744073709551616"), 400),
    "length of 30 digits": (head(b"Content-Length: 0" + b"9" * 29), 400),
    "length above the cap": (head(b"Content-Length: 1048577"), 413),
    "coding misspelt": (head(b"Transfer-Encoding: xchunked") + NO_CHUNKS, 501),
    "coding in capitals": (head(b"Transfer-Encoding: CHUNKED") + NO_CHUNKS, 501),
    "coding quoted": (head(b'Transfer-Encoding: "chunked"') + NO_CHUNKS, 501),
    "coding unknown": (head(b"Transfer-Encoding: identity") + NO_CHUNKS, 501),
    "coding before chunks": (head(b"Transfer-Encoding: gzip, chunked") + NO_CHUNKS, 501),
    "coding after chunks": (head(b"Transfer-Encoding: chunked, identity") + NO_CHUNKS, 400),
    "coding twice": (head(CHUNKED, CHUNKED) + NO_CHUNKS, 400),
    "coding then another": (head(CHUNKED, b"Transfer-Encoding: identity") + NO_CHUNKS, 400),
    "coding with blank before colon": (head(b"Transfer-Encoding : chunked") + NO_CHUNKS, 400),
    "coding with control character": (head(b"Transfer-Encoding: \x0bchunked") + NO_CHUNKS, 400),
    "coding on a folded line": (head(b"Transfer-Encoding:\r\n chunked") + NO_CHUNKS, 400),
    "coding in HTTP/1.0": (head(CHUNKED, line=b"POST / HTTP/1.0") + NO_CHUNKS, 400),
    "field folded": (head(b"X-A: a\r\n b", EMPTY), 400),
    "field folded by a tab": (head(b"X-A: a\r\n\tb", EMPTY), 400),
    "first field after a blank": (b"POST / HTTP/1.1\r\n Host: a\r\n\r\n", 400),
    "bare line feeds": (b"POST / HTTP/1.1\nHost: a\nContent-Length: 2\n\nab", 400),
    "bare line feed once": (head(b"X-A: a\nContent-Length: 2") + b"ab", 400),
    "bare carriage return": (head(b"X-A: a\rContent-Length: 2", EMPTY), 400),
    "NUL in a value": (head(b"X-A: a\0b", EMPTY), 400),
    "NUL in a name": (head(b"X\0A: ab", EMPTY), 400),
    "name empty": (head(b": a", EMPTY), 400),
    "no colon": (head(b"Content-Length 0"), 400),
    "chunk ended by a line feed": (head(CHUNKED) + b"2\nab\n0\n\n", 400),
    "chunk longer than said": (head(CHUNKED) + b"2\r\nabXX0\r\n\r\n", 400),
    "chunk size in 0x": (head(CHUNKED) + b"0x2\r\nab\r\n0\r\n\r\n", 400),
    "chunk size with sign": (head(CHUNKED) + b"+2\r\nab\r\n0\r\n\r\n", 400),
    "chunk size with blank": (head(CHUNKED) + b"2 \r\nab\r\n0\r\n\r\n", 400),
    "chunk size without end": (head(CHUNKED) + b"f" * 18 + b"\r\nab\r\n", 400),
    "chunk extension with line feed": (head(CHUNKED) + b"2;a\nb\r\nab\r\n0\r\n\r\n", 400),
    "chunk extension too long": (head(CHUNKED) + b"2;a=" + b"x" * 40_000 + b"\r\nab\r\n", 431),
    "length in a trailer": (head(CHUNKED) + b"0\r\nContent-Length: 9\r\n\r\n", 400),
    "no Host": (b"POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n", 400),
    "two Hosts": (head(b"Host: other.example", EMPTY), 400),
    "two equal Hosts": (head(b"Host: hooks.example", EMPTY), 400),
    "Host empty": (b"POST / HTTP/1.1\r\nHost:\r\nContent-Length: 0\r\n\r\n", 400),
    "Host a list": (b"POST / HTTP/1.1\r\nHost: a, b\r\nContent-Length: 0\r\n\r\n", 400),
    "Host with a user": (b"POST / HTTP/1.1\r\nHost: a@b\r\nContent-Length: 0\r\n\r\n", 400),
    "target names another host": (head(EMPTY, line=b"POST http://b/hooks/a HTTP/1.1"), 400),
    "target without slash": (head(line=b"OPTIONS * HTTP/1.1"), 400),
    "target with blank": (head(EMPTY, line=b"POST /a b HTTP/1.1"), 400),
    "target not in ASCII": (head(EMPTY, line="POST /é HTTP/1.1".encode()), 400),
    "version 0.9": (b"GET /hooks/a\r\nHost: a\r\n\r\n", 400),
    "version 1.2": (head(EMPTY, line=b"POST / HTTP/1.2"), 400),
    "version 2.0": (head(EMPTY, line=b"POST / HTTP/2.0"), 400),
    "HTTP/2 outright": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    "method in small letters": (head(EMPTY, line=b"post / HTTP/1.1"), 400),
    "TRACE": (head(line=b"TRACE / HTTP/1.1"), 501),
    "CONNECT": (head(line=b"CONNECT hooks.example:443 HTTP/1.1"), 501),
    "WebSocket": (head(b"Connection: Upgrade", b"Upgrade: websocket"), 501),
    "HTTP/2 by upgrade": (head(b"Connection: Upgrade", b"Upgrade: h2c", EMPTY), 501),
    "upgrade without connection": (head(b"Upgrade: h2c", EMPTY), 501),
    "more fields than allowed": (head(*(b"X-%d: a" % n for n in range(100)), EMPTY), 431),
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def opened() -> AsyncIterator[Front]:
    """One door for all: opening and closing it for each of the many rows takes too long."""
    async with front() as door:
        yield door


@pytest.fixture
def door(opened: Front) -> Front:
    """The door, with nothing left of the test before."""
    opened.app.requests.clear()
    opened.registry.refused_by_status.clear()
    return opened


@pytest.mark.parametrize("name", AMBIGUOUS)
async def test_ambiguous_request_is_refused_and_hides_nothing(door: Front, name: str) -> None:
    """One refusal, a closed connection, and at most the request itself has reached the app."""
    sent, status = AMBIGUOUS[name]
    heard = await door.ask(sent + HIDDEN + HIDDEN)
    assert statuses(heard) == [status]
    assert b"connection: close" in heard
    assert not [request for request in door.app.requests if request.path == "/hidden"]
    assert len(door.app.requests) <= 1
    assert door.registry.refused_by_status == {status: 1}


@pytest.mark.parametrize("name", AMBIGUOUS)
async def test_reading_does_not_depend_on_how_the_bytes_arrive(door: Front, name: str) -> None:
    """Byte by byte, every request is refused with the same status as in one piece."""
    sent, status = AMBIGUOUS[name]
    heard = await door.ask(*(bytes([byte]) for byte in sent + HIDDEN))
    assert statuses(heard) == [status]
    assert not [request for request in door.app.requests if request.path == "/hidden"]


CLEAR = {
    "length": (head(b"Content-Length: 2") + b"ab", b"ab"),
    "length with leading zeros": (head(b"Content-Length: 002") + b"ab", b"ab"),
    "length with blanks around": (head(b"Content-Length: \t2 \t") + b"ab", b"ab"),
    "chunks": (head(CHUNKED) + b"1\r\na\r\n1\r\nb\r\n0\r\n\r\n", b"ab"),
    "chunks after a tab": (head(b"Transfer-Encoding:\tchunked") + b"2\r\nab\r\n0\r\n\r\n", b"ab"),
    "chunk extension": (head(CHUNKED) + b"2;name=value\r\nab\r\n0\r\n\r\n", b"ab"),
    "chunk size in capitals": (head(CHUNKED) + b"A\r\n0123456789\r\n0\r\n\r\n", b"0123456789"),
    "Host with port": (b"POST / HTTP/1.1\r\nHost: a:8080\r\nContent-Length: 2\r\n\r\nab", b"ab"),
    "Host of six": (b"POST / HTTP/1.1\r\nHost: [::1]:80\r\nContent-Length: 2\r\n\r\nab", b"ab"),
    "empty lines before": (b"\r\n\r\n" + head(b"Content-Length: 2") + b"ab", b"ab"),
    "HTTP/1.0": (head(b"Content-Length: 2", line=b"POST / HTTP/1.0") + b"ab", b"ab"),
    "no body": (head(line=b"GET /hooks/a HTTP/1.1"), b""),
}


@pytest.mark.parametrize("cut", [False, True], ids=["whole", "byte by byte"])
@pytest.mark.parametrize("name", CLEAR)
async def test_clear_request_is_read_exactly(door: Front, name: str, cut: bool) -> None:
    sent, body = CLEAR[name]
    pieces = [bytes([byte]) for byte in sent] if cut else [sent]
    sender = await door.connect(*pieces)
    assert (await sender.answer()).status == 200
    assert [bytes(request.body) for request in door.app.requests] == [body]


async def test_request_behind_another_is_dropped(door: Front) -> None:
    """What a sender pushes before its answer may be hidden in what it relays: it ends here."""
    assert statuses(await door.ask(HONEST + HIDDEN)) == [200]
    assert [request.path for request in door.app.requests] == ["/hooks/a"]


async def test_bytes_behind_a_request_of_unsaid_length_are_dropped(door: Front) -> None:
    """A proxy that sends a body without saying so would make its bytes our next request."""
    sender = await door.connect(head())
    assert (await sender.answer()).headers[b"connection"] == b"close"
    await sender.send(HIDDEN)
    await sender.rest()
    assert len(door.app.requests) == 1


async def test_trailers_never_join_the_headers(door: Front) -> None:
    """A trailer named like a signature must not be read as one."""
    sent = head(CHUNKED) + b"2\r\nab\r\n0\r\nX-Signature: forged\r\nX-Other: 1\r\n\r\n"
    sender = await door.connect(sent)
    assert (await sender.answer()).status == 200
    assert [name for name, _ in door.app.requests[0].headers] == [
        b"host",
        b"transfer-encoding",
    ]


async def test_header_values_stay_bytes_and_duplicates_stay_two(door: Front) -> None:
    """Names are in lower case; whether two values are one too many is for the provider to say."""
    fields = (b"X-Signature: one", b"x-signature: Two, three", b"X-Odd: \xe9\xff", EMPTY)
    await (await door.connect(head(*fields))).answer()
    assert door.app.requests[0].headers == [
        (b"host", b"hooks.example"),
        (b"x-signature", b"one"),
        (b"x-signature", b"Two, three"),
        (b"x-odd", b"\xe9\xff"),
        (b"content-length", b"0"),
    ]


async def test_lenient_parser_would_be_caught(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """h11 alone reads a good part of the table: the table can fail."""
    monkeypatch.setitem(sys.modules, "httptools", None)
    monkeypatch.delitem(sys.modules, "hookbox.web.protocol")
    accepted = set()
    async with front() as lenient:
        for name, (sent, _) in AMBIGUOUS.items():
            sender = await lenient.connect(sent)
            sender.writer.write_eof()
            if 200 in statuses(await sender.rest()):
                accepted.add(name)
    assert {"length and chunks", "two equal lengths", "field folded", "bare line feeds"} <= accepted
    assert "httptools is not installed" in caplog.text
