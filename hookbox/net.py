"""Outbound HTTP: the only way out of the box.

One request, one answer, within one deadline and one size. Redirects are answers like any other;
there are no cookies, no proxies, no credentials in URLs, and nothing is inflated.

The address guard: a name is looked up once for each request, every address that it has must be
allowed, and the connection goes to the address that was checked, while TLS still proves the name.
So it does not matter what the name's server answers the next time.
"""

import asyncio
import functools
import ipaddress
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hookbox.errors import AnswerTooLarge, NetError
from hookbox.rules.reach import Address, Network, Reach, Target, literal, parsed

if TYPE_CHECKING:
    import httpx

DEADLINE_S = 10.0
ANSWER_MAX = 65_536
ADDRESSES_MAX = 4  # of a name with many, the first ones; the deadline is shared among them

# A way's own deadline for connecting: to a machine that is up it takes a few round trips.
CONNECT_S = 5.0
# How long a connection is kept for the next request. Common servers close theirs after five seconds
# or more, and a request that crosses such a close would fail for nothing.
KEPT_S = 4.0

# Host and port to addresses and ports, as getaddrinfo does.
Resolve = Callable[[str, int], Awaitable[Sequence[tuple[str, int]]]]
Place = tuple[Address, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back, whatever its status. Header names in lower case."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


async def look_up(host: str, port: int) -> Sequence[tuple[str, int]]:
    """The addresses that the system knows for a name."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [(str(where[0]), int(where[1])) for *_, where in found]


class Net:
    """Makes requests to public addresses by https, and with `loopback` to this machine, too.

    `tls`: whom to trust instead of the system's authorities.
    """

    def __init__(
        self,
        *,
        loopback: bool = False,
        resolve: Resolve = look_up,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._guard = _Guard(Reach(loopback=loopback), resolve)
        self._tls = tls

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        deadline_s: float = DEADLINE_S,
        answer_max: int = ANSWER_MAX,
        plain: bool = False,
    ) -> Answer:
        """Raises AddressRefused before anything was sent, or NetError when no answer came.

        `plain` allows http to the internet, for what proves itself (an authority's certificate).
        """
        target = parsed(url)
        once = {**(headers or {}), "connection": "close"}
        request = _Request(method, target, once, body, answer_max)
        return await self._guard.answer(request, self._exchange, deadline_s, plain=plain)

    async def _exchange(self, request: "_Request", place: Place, connect_s: float) -> Answer:
        """One request on a connection of its own, so that none is ever shared between names."""
        import httpx

        if self._tls is None:
            self._tls = ssl.create_default_context()
        async with httpx.AsyncHTTPTransport(verify=self._tls, trust_env=False) as transport:
            return await _exchanged(transport, request, place, connect_s)


class Way:
    """A way out to one URL, its connections kept from one request to the next.

    It leads to public addresses by https, to this machine, and to the networks that are named.
    There are as many connections as requests were ever under way at once.
    """

    def __init__(
        self,
        url: str,
        *,
        networks: tuple[Network, ...] = (),
        resolve: Resolve = look_up,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """Raises AddressRefused for a URL that cannot be gone to, as far as that shows in it."""
        self._target = parsed(url)
        reach = Reach(loopback=True, networks=networks)
        reach.check(self._target, literal(self._target.host))
        self._guard = _Guard(reach, resolve)
        self._tls = tls
        self._idle: list[httpx.AsyncHTTPTransport] = []
        self._good: Place | None = None  # where the last answer came from
        self._closed = False

    async def post(self, *, headers: Mapping[str, str], body: bytes, deadline_s: float) -> Answer:
        """The answer, its body cut at ANSWER_MAX. Raises NetError when none came."""
        request = _Request("POST", self._target, headers, body, ANSWER_MAX, cut=True)
        return await self._guard.answer(request, self._exchange, deadline_s, first=self._good)

    async def close(self) -> None:
        """Let the connections go."""
        self._closed = True
        while self._idle:
            await self._idle.pop().aclose()

    async def _exchange(self, request: "_Request", place: Place, connect_s: float) -> Answer:
        """On the connection that was used last, so that those that are too many grow old.

        A transport holds one connection: a pool of many looks at each of them for every request.
        """
        transport = self._idle.pop() if self._idle else self._opened()
        try:
            answer = await _exchanged(transport, request, place, min(connect_s, CONNECT_S))
        except BaseException:
            await transport.aclose()
            raise
        self._good = place
        if self._closed:
            await transport.aclose()
        else:
            self._idle.append(transport)
        return answer

    def _opened(self) -> "httpx.AsyncHTTPTransport":
        import httpx

        if self._tls is None:
            # Where TLS is not spoken, reading all authorities would be for nothing.
            speaks = self._target.scheme == "https"
            self._tls = (
                ssl.create_default_context() if speaks else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            )
        one = httpx.Limits(max_connections=1, keepalive_expiry=KEPT_S)
        return httpx.AsyncHTTPTransport(verify=self._tls, trust_env=False, limits=one)


@dataclass(frozen=True, slots=True)
class _Request:
    """A request that may go to any of the target's addresses. `cut`: of an answer that is too long
    the beginning will do.
    """

    method: str
    target: Target
    headers: Mapping[str, str]
    body: bytes
    answer_max: int
    cut: bool = False

    def to(self, place: Place, connect_s: float) -> "httpx.Request":
        import httpx

        target = self.target
        own = {
            "host": target.host_header,
            "user-agent": "hookbox",
            "accept-encoding": "identity",
        }
        return httpx.Request(
            self.method,
            _url(target.scheme, str(place[0]), place[1], target.path),
            headers={**{name.lower(): value for name, value in self.headers.items()}, **own},
            content=self.body or None,
            extensions={"timeout": {"connect": connect_s}, "sni_hostname": target.host},
        )


@functools.lru_cache(maxsize=64)  # a way asks for the same one again and again
def _url(scheme: str, host: str, port: int, path: str) -> "httpx.URL":
    import httpx

    return httpx.URL(scheme=scheme, host=host, port=port, raw_path=path.encode())


Exchange = Callable[[_Request, Place, float], Awaitable[Answer]]


@dataclass(frozen=True, slots=True)
class _Guard:
    """Lets requests through to where they may go."""

    reach: Reach
    resolve: Resolve

    async def answer(
        self,
        request: _Request,
        exchange: Exchange,
        deadline_s: float,
        *,
        plain: bool = False,
        first: Place | None = None,
    ) -> Answer:
        """The answer within the deadline. `first`: which of the addresses to begin with."""
        target = request.target
        self.reach.check(target, literal(target.host), plain=plain)
        try:
            async with asyncio.timeout(deadline_s):
                places = await self._places(target, plain=plain)
                places.sort(key=lambda place: place != first)
                return await _first_answer(request, places, exchange, deadline_s / len(places))
        except TimeoutError as error:
            raise NetError(f"{target.host}: no answer within {deadline_s:g} s") from error

    async def _places(self, target: Target, *, plain: bool) -> list[Place]:
        """Where the target is; AddressRefused when one of its addresses is not allowed."""
        found = [(address, target.port) for address in literal(target.host)]
        if not found:
            try:
                names = await self.resolve(target.host, target.port)
            except (OSError, UnicodeError) as error:
                raise NetError(f"{target.host}: the name cannot be looked up") from error
            found = [(ipaddress.ip_address(name), port) for name, port in names]
        if not found:
            raise NetError(f"{target.host}: the name has no address")
        self.reach.check(target, [address for address, _ in found], plain=plain)
        return found[:ADDRESSES_MAX]


async def _first_answer(
    request: _Request, places: Sequence[Place], exchange: Exchange, connect_s: float
) -> Answer:
    """The answer of the first address that can be connected to."""
    import httpx

    trouble: Exception | None = None
    for place in places:
        try:
            return await exchange(request, place, connect_s)
        except (httpx.LocalProtocolError, UnicodeEncodeError):
            # Its words repeat the header that cannot be sent, and that may be a credential.
            raise NetError(f"{request.target.host}: a header of ours cannot be sent") from None
        except httpx.HTTPError as error:
            trouble = error
            if not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
                break
    why = str(trouble) or type(trouble).__name__
    raise NetError(f"{request.target.host}: {why}") from trouble


async def _exchanged(
    transport: "httpx.AsyncHTTPTransport", request: _Request, place: Place, connect_s: float
) -> Answer:
    response = await transport.handle_async_request(request.to(place, connect_s))
    try:
        body = await _body(response, request)
    finally:
        await response.aclose()
    return Answer(status=response.status_code, headers=dict(response.headers), body=body)


async def _body(response: "httpx.Response", request: _Request) -> bytes:
    parts, size = [], 0
    async for part in response.aiter_raw():
        parts.append(part)
        size += len(part)
        if size > request.answer_max:
            break
    if size > request.answer_max and not request.cut:
        told = f"{request.target.host}: more than {request.answer_max} bytes came back"
        raise AnswerTooLarge(told)
    return b"".join(parts)[: request.answer_max]
