"""The way out: where it may lead, what it brings back, and how long it takes at most."""

import asyncio
import contextlib
import gzip
import ipaddress
import socket
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from hookbox.errors import AddressRefused, NetError
from hookbox.net import Net, Resolve, Way
from hookbox.rules.reach import Target, is_public, parsed
from tests.outbound import NotAllowed, guarded
from tests.pki import authority, client_side, server, server_side
from tests.servers import HOST, Respond, answering, http_server

NAME = "sns.eu-west-1.amazonaws.com"


def resolving(*answers: Sequence[tuple[str, int]]) -> Resolve:
    """A name server that gives these answers one after the other; the last one for ever."""
    left = list(answers)

    async def resolve(host: str, port: int) -> Sequence[tuple[str, int]]:
        return left.pop(0) if len(left) > 1 else left[0]

    return resolve


# -- URLs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("https://example.com", Target("https", "example.com", 443, "/")),
        ("https://Example.COM/a?b=1", Target("https", "example.com", 443, "/a?b=1")),
        ("http://127.0.0.1:3000/x", Target("http", "127.0.0.1", 3000, "/x")),
        ("https://[2606:4700::1111]/", Target("https", "2606:4700::1111", 443, "/")),
        ("https://xn--bcher-kva.example/", Target("https", "xn--bcher-kva.example", 443, "/")),
    ],
)
def test_url_has_one_reading(url: str, target: Target) -> None:
    assert parsed(url) == target


MALFORMED = [
    *("", " ", "example.com", "//example.com/", "https:/example.com/", "https:example.com"),
    *("HTTPS://example.com/", "ftp://example.com/", "file:///etc/passwd", "gopher://a.example/"),
    *("https://", "https:///x", "https://:443/", "https://.example.com/", "https://a..example/"),
    *("https://example.com./", "https://user@example.com/", "https://user:p@example.com/"),
    *("https://example.com@127.0.0.1/", "https://example.com\\@127.0.0.1/", "https://a_b.example/"),
    *("https://example.com#@127.0.0.1/", "https://example.com/#x", "https://example.com?x=1"),
    *("https://exa mple.com/", "https://example.com/a b", " https://example.com/"),
    *("https://example.com/\n", "https://example.com\r\nHost: x/", "https://example.com/\x00"),
    *("https://example.com:0/", "https://example.com:65536/", "https://example.com:443x/"),
    *("https://example.com:-1/", "https://example.com:/", "https://exämple.com/"),
    *("https://ⓔxample.com/", "https://example。com/", "https://\uff11\uff12\uff17.0.0.1/"),
    *("https://2130706433/", "https://017700000001/", "https://0x7f000001/", "https://127.1/"),
    *("https://127.0.1/", "https://0x7f.0.0.1/", "https://0177.0.0.1/", "https://127.0.0.1.5/"),
    *("https://256.0.0.1/", "https://127.0.0.0x1/", "https://[::1/"),
    *("https://::1/", "https://[::1]x/", "https://[fe80::1%25eth0]/", "https://[127.0.0.1]:x/"),
    *("https://[v1.x]/", "https://[::ffff:7f00:1", "https://%31%32%37.0.0.1/"),
    "https://" + "a" * 64 + ".example/",
    "https://" + "a." * 130 + "example/",
]


@pytest.mark.parametrize("url", MALFORMED, ids=repr)
async def test_url_that_could_be_read_in_two_ways_goes_nowhere(url: str) -> None:
    with guarded() as guard, pytest.raises(AddressRefused):
        await Net(loopback=True).request("GET", url)
    assert (guard.connects, guard.lookups) == ([], [])


# -- addresses -----------------------------------------------------------------------------------

PUBLIC = ["1.1.1.1", "8.8.8.8", "52.94.5.1", "2606:4700:4700::1111", "64:ff9b::808:808"]
CLOSED = [
    *("0.0.0.0", "0.1.2.3", "127.0.0.1", "127.8.8.8", "10.0.0.1", "172.16.0.1", "172.31.255.255"),
    *("192.168.1.1", "169.254.169.254", "100.64.0.1", "100.100.100.200", "192.0.0.1"),
    *("192.0.0.170", "192.0.2.1", "192.88.99.1", "198.18.0.1", "198.51.100.1", "203.0.113.1"),
    *("224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255"),
    *("::", "::1", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "::ffff:169.254.169.254", "::7f00:1"),
    *("fe80::1", "fe80::1%eth0", "fec0::1", "fc00::1", "fd00:ec2::254", "ff02::1", "100::1"),
    *("2001:db8::1", "2001::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "2002:7f00:1::"),
    *("2002:a9fe:a9fe::", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "4000::1"),
]


@pytest.mark.parametrize("address", PUBLIC)
def test_public_address_is_public(address: str) -> None:
    assert is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize("address", CLOSED)
async def test_address_of_this_machine_or_its_network_is_never_connected_to(address: str) -> None:
    """Neither written in the URL, nor as what a name stands for, nor among good ones."""
    assert not is_public(ipaddress.ip_address(address))
    host = f"[{address}]" if ":" in address else address
    urls = [] if "%" in address else [(Net(), f"https://{host}/"), (Net(), f"https://{host}:8443/")]
    named = resolving([(address, 443)])
    among = resolving([("1.1.1.1", 443), (address, 443), ("8.8.8.8", 443)])
    with guarded() as guard:
        for net, url in (
            *urls,
            *((Net(resolve=each), f"https://{NAME}/") for each in (named, among)),
        ):
            with pytest.raises(AddressRefused):
                await net.request("GET", url)
            with pytest.raises(AddressRefused):
                await net.request("GET", url.replace("https", "http"), plain=True)
    assert (guard.connects, guard.lookups) == ([], [])


async def test_http_goes_out_only_where_that_was_asked_for() -> None:
    net = Net(resolve=resolving([("1.1.1.1", 80)]))
    with guarded() as guard, pytest.raises(AddressRefused):
        await net.request("GET", f"http://{NAME}/")
    assert guard.connects == []
    with guarded() as guard, pytest.raises((NotAllowed, BaseExceptionGroup)):
        await net.request("GET", f"http://{NAME}/", plain=True)
    assert guard.connects == [("1.1.1.1", 80)]


async def test_http_to_the_internet_is_refused_where_loopback_is_allowed() -> None:
    net = Net(loopback=True, resolve=resolving([("1.1.1.1", 80)]))
    with guarded(), pytest.raises(AddressRefused):
        await net.request("POST", f"http://{NAME}/")


async def test_name_is_looked_up_once_and_the_checked_address_is_the_one_that_is_used() -> None:
    """A name server that answers differently the second time changes nothing for the first."""
    async with http_server(answering("200 OK", b"here")) as good:
        asked = []

        async def rebinding(host: str, port: int) -> Sequence[tuple[str, int]]:
            asked.append((host, port))
            return [good.where] if len(asked) == 1 else [("169.254.169.254", 80)]

        net = Net(loopback=True, resolve=rebinding)
        with guarded(good.where) as guard:
            answer = await net.request("GET", "http://app.example/")
            assert (answer.body, guard.connects) == (b"here", [good.where])
            with pytest.raises(AddressRefused):
                await net.request("GET", "http://app.example/")
            assert guard.connects == [good.where]
    assert asked == [("app.example", 80)] * 2


@pytest.mark.parametrize("trouble", [OSError("no such name"), UnicodeError("too long")])
async def test_name_that_cannot_be_looked_up_is_no_crash(trouble: Exception) -> None:
    async def resolve(host: str, port: int) -> Sequence[tuple[str, int]]:
        raise trouble

    with guarded(), pytest.raises(NetError, match="looked up"):
        await Net(resolve=resolve).request("GET", f"https://{NAME}/")


async def test_name_without_address_is_no_crash() -> None:
    with guarded(), pytest.raises(NetError, match="no address"):
        await Net(resolve=resolving([])).request("GET", f"https://{NAME}/")


async def test_next_address_is_tried_when_one_does_not_listen() -> None:
    async with http_server(answering("200 OK")) as dead:
        pass
    async with http_server(answering("200 OK", b"second")) as alive:
        net = Net(loopback=True, resolve=resolving([dead.where, alive.where]))
        with guarded(dead.where, alive.where):
            answer = await net.request("GET", "http://app.example/")
    assert answer.body == b"second"


async def test_refused_connection_is_named() -> None:
    async with http_server(answering("200 OK")) as dead:
        pass
    with guarded(dead.where), pytest.raises(NetError, match=HOST):
        await Net(loopback=True).request("GET", f"http://{HOST}:{dead.port}/")


# -- requests ------------------------------------------------------------------------------------


async def _ask(respond: Respond, path: str = "/", **asked: object) -> tuple[object, bytes]:
    async with http_server(respond) as seen:
        with guarded(seen.where):
            url = f"http://{HOST}:{seen.port}{path}"
            answer = await Net(loopback=True).request("GET", url, **asked)
    return answer, seen.heads[0]


async def test_request_arrives_as_it_was_made_and_the_answer_comes_back() -> None:
    async with http_server(answering("202 Accepted", b"taken", "Retry-After: 7")) as seen:
        with guarded(seen.where):
            answer = await Net(loopback=True).request(
                "POST",
                f"http://{HOST}:{seen.port}/a%20b?c=%2F",
                headers={"Webhook-Id": "evt_1", "Content-Type": "application/json"},
                body=b'{"a": 1}',
            )
    assert (answer.status, answer.body, answer.headers["retry-after"]) == (202, b"taken", "7")
    head = seen.heads[0].decode().lower()
    assert head.startswith("post /a%20b?c=%2f http/1.1\r\n")
    assert seen.bodies == [b'{"a": 1}']
    for line in (f"host: {HOST}:{seen.port}", "webhook-id: evt_1", "user-agent: hookbox"):
        assert f"{line}\r\n" in head
    assert "cookie" not in head


@pytest.mark.parametrize(
    "spoilt", ["the-key\nX-Other: 1", "the-key\x00", "the-key-\u00fc"], ids=ascii
)
async def test_header_that_cannot_be_sent_is_not_repeated(spoilt: str) -> None:
    """It may be a credential, and errors go to logs."""
    with pytest.raises(NetError) as caught:
        await _ask(answering("200 OK"), headers={"Authorization": spoilt})
    assert "the-key" not in repr(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "307 Temporary", "308 Permanent"])
async def test_redirect_is_an_answer_and_is_not_followed(status: str) -> None:
    async with http_server(answering("200 OK", b"trap")) as trap:
        lead = f"Location: http://{HOST}:{trap.port}/"
        answer, _ = await _ask(answering(status, b"", lead))
    assert str(answer.status) == status[:3]
    assert trap.heads == []


async def test_cookies_are_forgotten() -> None:
    async with http_server(answering("200 OK", b"", "Set-Cookie: a=b")) as seen:
        net = Net(loopback=True)
        with guarded(seen.where):
            for _ in range(2):
                await net.request("GET", f"http://{HOST}:{seen.port}/")
    assert not any(b"cookie" in head.lower() for head in seen.heads)


async def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/")
    answer, _ = await _ask(answering("200 OK", b"direct"))
    assert answer.body == b"direct"


async def test_compressed_answer_is_not_inflated() -> None:
    bomb = gzip.compress(b"0" * 1_000_000)
    answer, head = await _ask(answering("200 OK", bomb, "Content-Encoding: gzip"))
    assert answer.body == bomb
    assert b"accept-encoding: identity\r\n" in head.lower()


# -- size and time -------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 999, 1000])
async def test_answer_up_to_the_cap_is_taken(size: int) -> None:
    answer, _ = await _ask(answering("200 OK", b"x" * size), answer_max=1000)
    assert len(answer.body) == size


async def test_answer_beyond_the_cap_is_cut_off() -> None:
    with pytest.raises(NetError, match="more than 1000 bytes"):
        await _ask(answering("200 OK", b"x" * 1001), answer_max=1000)


async def test_answer_without_end_is_cut_off_at_the_cap() -> None:
    async def endless(head: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            writer.write(b"10000\r\n" + b"x" * 65_536 + b"\r\n")
            await writer.drain()

    with pytest.raises(NetError, match="more than"):
        await _ask(endless)


async def test_head_without_end_is_cut_off() -> None:
    async def endless(head: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n")
        while True:
            writer.write(b"X-Filler: " + b"x" * 60_000 + b"\r\n")
            await writer.drain()

    with pytest.raises(NetError):
        await _ask(endless)


async def _never(head: bytes, writer: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()


async def _half_a_head(head: bytes, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-")
    await asyncio.Event().wait()


async def _half_a_body(head: bytes, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345")
    await asyncio.Event().wait()


async def _drop_by_drop(head: bytes, writer: asyncio.StreamWriter) -> None:
    """Each byte in time for a deadline that only looks at the gaps between them."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
    while True:
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("respond", [_never, _half_a_head, _half_a_body, _drop_by_drop])
async def test_slow_server_is_given_up_at_the_deadline(respond: Respond) -> None:
    with pytest.raises(NetError, match=r"no answer within 0.2 s"):
        await _ask(respond, deadline_s=0.2)


async def test_slow_name_server_is_given_up_at_the_deadline() -> None:
    async def resolve(host: str, port: int) -> Sequence[tuple[str, int]]:
        await asyncio.Event().wait()
        raise AssertionError

    with guarded(), pytest.raises(NetError, match=r"no answer within 0.1 s"):
        await Net(resolve=resolve).request("GET", f"https://{NAME}/", deadline_s=0.1)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"\x00\x01\x02",
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12",
        b"SSH-2.0-x\r\n\r\n",
    ],
)
async def test_answer_that_is_no_http_is_no_crash(answer: bytes) -> None:
    async def respond(head: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)

    with pytest.raises(NetError):
        await _ask(respond)


# -- TLS -----------------------------------------------------------------------------------------


async def test_tls_proves_the_name_though_the_connection_goes_to_an_address(
    tmp_path: Path,
) -> None:
    root = authority("root")
    asked: list[str | None] = []
    context = server_side([server(root, NAME)], tmp_path)
    context.sni_callback = lambda _socket, name, _context: asked.append(name)
    async with http_server(answering("200 OK", b"proved"), context) as seen:
        net = Net(loopback=True, resolve=resolving([seen.where]), tls=client_side(root))
        with guarded(seen.where):
            answer = await net.request("GET", f"https://{NAME}/x")
            with pytest.raises(NetError, match="certificate"):
                await net.request("GET", "https://sns.us-east-1.amazonaws.com/x")
    assert (answer.body, asked[0]) == (b"proved", NAME)
    assert f"host: {NAME}\r\n".encode() in seen.heads[0].lower()
    assert len(seen.heads) == 1


async def test_authority_that_nobody_trusts_proves_nothing(tmp_path: Path) -> None:
    """Nor does the system's own list, when nobody else is named."""
    context = server_side([server(authority("stranger"), NAME)], tmp_path)
    async with http_server(answering("200 OK"), context) as seen:
        for tls in (client_side(authority("root")), None):
            net = Net(loopback=True, resolve=resolving([seen.where]), tls=tls)
            with guarded(seen.where), pytest.raises(NetError, match="certificate"):
                await net.request("GET", f"https://{NAME}/")
    assert seen.heads == []


# -- a way that is kept --------------------------------------------------------------------------


@dataclass
class KeepingServer:
    """What the server saw, and whether it answers."""

    port: int = 0
    connections: int = 0
    writers: list[asyncio.StreamWriter] = field(default_factory=list)
    may_answer: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.may_answer.set()

    def hang_up(self) -> None:
        for writer in self.writers:
            writer.close()
        self.writers.clear()


@asynccontextmanager
async def keeping_server(tls: ssl.SSLContext | None = None) -> AsyncIterator[KeepingServer]:
    """A server that answers request after request on a connection."""
    seen = KeepingServer()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.connections += 1
        seen.writers.append(writer)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                await reader.readuntil(b"\r\n\r\n")
                await seen.may_answer.wait()
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        writer.close()

    listening = await asyncio.start_server(serve, HOST, 0, ssl=tls)
    seen.port = listening.sockets[0].getsockname()[1]
    try:
        yield seen
    finally:
        listening.close()
        seen.hang_up()
        await listening.wait_closed()


async def post(way: Way) -> int:
    return (await way.post(headers={}, body=b"", deadline_s=5.0)).status


async def test_connection_is_kept_for_the_next_request() -> None:
    async with keeping_server() as seen:
        way = Way(f"http://{HOST}:{seen.port}/")
        for _ in range(20):
            assert await post(way) == 200
        assert seen.connections == 1
        await way.close()


async def test_there_are_as_many_connections_as_requests_at_once() -> None:
    async with keeping_server() as seen:
        way = Way(f"http://{HOST}:{seen.port}/")
        for _ in range(5):
            assert await asyncio.gather(*(post(way) for _ in range(8))) == [200] * 8
        assert seen.connections == 8
        await way.close()


async def test_connection_that_the_server_closed_is_not_used_again() -> None:
    async with keeping_server() as seen:
        way = Way(f"http://{HOST}:{seen.port}/")
        for _ in range(5):
            assert await post(way) == 200
            seen.hang_up()
            await _settled()
        assert seen.connections == 5
        await way.close()


async def test_cancelled_request_does_not_spoil_the_next() -> None:
    async with keeping_server() as seen:
        way = Way(f"http://{HOST}:{seen.port}/")
        assert await post(way) == 200
        seen.may_answer.clear()
        task = asyncio.create_task(post(way))
        await _settled()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        seen.may_answer.set()
        assert await post(way) == 200
        await way.close()


async def _settled() -> None:
    """What was written is read, and what was closed is noticed."""
    for _ in range(50):
        await asyncio.sleep(0.001)


async def test_name_is_checked_again_though_a_connection_is_kept() -> None:
    async with keeping_server() as seen:
        resolve = resolving([(HOST, seen.port)], [("10.0.0.5", seen.port)])
        way = Way("http://app.example/", resolve=resolve)
        with guarded((HOST, seen.port)) as guard:
            assert await post(way) == 200
            with pytest.raises(AddressRefused, match=r"10\.0\.0\.5"):
                await post(way)
            assert guard.connects == [(HOST, seen.port)]
        await way.close()


async def test_address_that_answered_is_tried_first_the_next_time() -> None:
    async with http_server(answering("200 OK")) as dead:
        pass
    async with keeping_server() as seen:
        resolve = resolving([dead.where, (HOST, seen.port)])
        way = Way("http://app.example/", resolve=resolve)
        with guarded(dead.where, (HOST, seen.port)) as guard:
            assert [await post(way), await post(way)] == [200, 200]
        assert guard.connects == [dead.where, (HOST, seen.port)]
        await way.close()


PRIVATE = ["10.0.0.5", "192.168.1.7", "169.254.169.254", "fd00::5", "100.64.0.1"]


@pytest.mark.parametrize("address", PRIVATE)
@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_private_address_is_reached_only_where_its_network_is_named(
    scheme: str, address: str
) -> None:
    host = f"[{address}]" if ":" in address else address
    named = resolving([(address, 80)])
    for networks in ((), (ipaddress.ip_network("10.9.0.0/16"),)):
        with pytest.raises(AddressRefused):
            Way(f"{scheme}://{host}/", networks=networks)
        way = Way(f"{scheme}://app.example/", networks=networks, resolve=named)
        with guarded() as guard, pytest.raises(AddressRefused):
            await post(way)
        assert guard.connects == []
    way = Way(f"{scheme}://{host}/", networks=(ipaddress.ip_network(address),))
    with guarded() as guard, pytest.raises((NotAllowed, BaseExceptionGroup)):
        await post(way)
    assert [where[0] for where in guard.connects] == [address]


async def test_public_address_is_reached_by_https_only() -> None:
    with pytest.raises(AddressRefused):
        Way("http://1.1.1.1/")
    way = Way("http://app.example/", resolve=resolving([("1.1.1.1", 80)]))
    with guarded() as guard, pytest.raises(AddressRefused):
        await post(way)
    assert guard.connects == []
    with guarded() as guard, pytest.raises((NotAllowed, BaseExceptionGroup)):
        await post(Way("https://1.1.1.1/"))
    assert guard.connects == [("1.1.1.1", 443)]


async def test_kept_connection_was_proved_by_the_name(tmp_path: Path) -> None:
    root = authority("root")
    context = server_side([server(root, NAME)], tmp_path)
    async with keeping_server(context) as seen:
        resolve = resolving([(HOST, seen.port)])
        way = Way(f"https://{NAME}/", resolve=resolve, tls=client_side(root))
        with guarded((HOST, seen.port)):
            assert [await post(way), await post(way)] == [200, 200]
        assert seen.connections == 1
        other = Way("https://app.example/", resolve=resolve, tls=client_side(root))
        with guarded((HOST, seen.port)), pytest.raises(NetError, match="certificate"):
            await post(other)
        await way.close()
        await other.close()


async def test_connecting_has_a_deadline_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Towards a machine that does not answer at all: here, one whose queue of callers is full."""
    monkeypatch.setattr("hookbox.net.CONNECT_S", 0.2)
    with socket.socket() as full, contextlib.ExitStack() as callers:
        full.bind((HOST, 0))
        full.listen(0)
        for _ in range(4):
            caller = callers.enter_context(socket.socket())
            caller.setblocking(False)
            caller.connect_ex(full.getsockname())
        way = Way(f"http://{HOST}:{full.getsockname()[1]}/")
        async with asyncio.timeout(20):
            with pytest.raises(NetError, match="ConnectTimeout"):
                await way.post(headers={}, body=b"", deadline_s=60.0)
