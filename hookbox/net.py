"""Outbound HTTP: the only way out of the box.

One request, one answer, within one deadline and one size. Redirects are answers like any other;
there are no cookies, no proxies, no credentials in URLs, and nothing is inflated.

The address guard: a name is looked up once, every address that it has must be allowed, and the
connection goes to the address that was checked, while TLS still proves the name. So it does not
matter what the name's server answers the next time. A URL has one reading here, our own; what is
sent is put together from its parts, and what does not fit is refused before any look-up.
"""

import asyncio
import ipaddress
import re
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hookbox.errors import AddressRefused, AnswerTooLarge, NetError

if TYPE_CHECKING:
    import httpx

DEADLINE_S = 10.0
ANSWER_MAX = 65_536
ADDRESSES_MAX = 4  # of a name with many, the first ones; the deadline is shared among them

URL = re.compile(
    r"(https?)://([A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::([0-9]{1,5}))?(/[!\"$-~]{0,4000})?"
)
NUMERIC = re.compile(r"[0-9]+|0[xX][0-9A-Fa-f]*")
PORTS = {"http": 80, "https": 443}

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
# Host and port to addresses and ports, as getaddrinfo does.
Resolve = Callable[[str, int], Awaitable[Sequence[tuple[str, int]]]]

# What older Pythons take for public: protocol assignments, and relays between IPv4 and IPv6.
SPECIAL_V4 = tuple(ipaddress.IPv4Network(each) for each in ("192.0.0.0/24", "192.88.99.0/24"))
# The only block of IPv6 that is routed; in it, Teredo and 6to4 wrap addresses of IPv4.
GLOBAL_V6 = ipaddress.IPv6Network("2000::/3")
WRAPPING_V6 = tuple(ipaddress.IPv6Network(each) for each in ("2001::/32", "2002::/16"))
# What a network without IPv4 makes of IPv4's addresses (RFC 6052). Real, so what is inside counts.
NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back, whatever its status. Header names in lower case."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Target:
    """A URL, taken apart."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def host_header(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"


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
        self._loopback, self._resolve, self._tls = loopback, resolve, tls

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
        if target.scheme == "http" and not (plain or self._loopback):
            raise AddressRefused(f"{target.host}: only https goes out")
        try:
            async with asyncio.timeout(deadline_s):
                addresses = await self._addresses(target, plain=plain)
                request = _Request(method, target, headers or {}, body, answer_max)
                return await self._first_answer(request, addresses, deadline_s)
        except TimeoutError as error:
            raise NetError(f"{target.host}: no answer within {deadline_s:g} s") from error

    async def _addresses(self, target: Target, *, plain: bool) -> Sequence[tuple[Address, int]]:
        """Where the target is; AddressRefused when one of its addresses is not allowed."""
        literal = _literal(target.host)
        if literal is not None:
            found: Sequence[tuple[Address, int]] = [(literal, target.port)]
        else:
            try:
                names = await self._resolve(target.host, target.port)
            except (OSError, UnicodeError) as error:
                raise NetError(f"{target.host}: the name cannot be looked up") from error
            found = [(ipaddress.ip_address(address), port) for address, port in names]
        if not found:
            raise NetError(f"{target.host}: the name has no address")
        for address, _ in found:
            if not self._allowed(address, public=plain or target.scheme == "https"):
                raise AddressRefused(f"{target.host}: must not connect to {address}")
        return found[:ADDRESSES_MAX]

    def _allowed(self, address: Address, *, public: bool) -> bool:
        return (public and is_public(address)) or (self._loopback and is_loopback(address))

    async def _first_answer(
        self, request: "_Request", addresses: Sequence[tuple[Address, int]], deadline_s: float
    ) -> Answer:
        """The answer of the first address that can be connected to."""
        import httpx

        trouble: Exception | None = None
        for address, port in addresses:
            try:
                return await self._exchange(request, address, port, deadline_s / len(addresses))
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                trouble = error
            except httpx.HTTPError as error:
                trouble = error
                break
        why = str(trouble) or type(trouble).__name__
        raise NetError(f"{request.target.host}: {why}") from trouble

    async def _exchange(
        self, request: "_Request", address: Address, port: int, connect_s: float
    ) -> Answer:
        """One request on a connection of its own, so that none is ever shared between names."""
        import httpx

        if self._tls is None:
            self._tls = ssl.create_default_context()
        async with httpx.AsyncHTTPTransport(verify=self._tls, trust_env=False) as transport:
            response = await transport.handle_async_request(request.to(address, port, connect_s))
            try:
                body = await _capped(response, request)
            finally:
                await response.aclose()
        return Answer(status=response.status_code, headers=dict(response.headers), body=body)


@dataclass(frozen=True, slots=True)
class _Request:
    """A request that may go to any of the target's addresses."""

    method: str
    target: Target
    headers: Mapping[str, str]
    body: bytes
    answer_max: int

    def to(self, address: Address, port: int, connect_s: float) -> "httpx.Request":
        import httpx

        target = self.target
        own = {
            "host": target.host_header,
            "user-agent": "hookbox",
            "accept-encoding": "identity",
            "connection": "close",
        }
        return httpx.Request(
            self.method,
            httpx.URL(
                scheme=target.scheme, host=str(address), port=port, raw_path=target.path.encode()
            ),
            headers={**{name.lower(): value for name, value in self.headers.items()}, **own},
            content=self.body or None,
            extensions={"timeout": {"connect": connect_s}, "sni_hostname": target.host},
        )


async def _capped(response: "httpx.Response", request: _Request) -> bytes:
    parts, size = [], 0
    async for part in response.aiter_raw():
        parts.append(part)
        size += len(part)
        if size > request.answer_max:
            told = f"{request.target.host}: more than {request.answer_max} bytes came back"
            raise AnswerTooLarge(told)
    return b"".join(parts)


# -- what may be reached -------------------------------------------------------------------------


def parsed(url: str) -> Target:
    """The parts of a URL; AddressRefused for what could be read in two ways, or is no URL."""
    found = URL.fullmatch(url)
    if found is None:
        raise AddressRefused("this is not a plain http or https URL")
    scheme, host, port = found[1], found[2].strip("[]").lower(), int(found[3] or PORTS[found[1]])
    if not 0 < port < 65_536 or not _is_host(host):
        raise AddressRefused("this is not a plain http or https URL")
    return Target(scheme, host, port, found[4] or "/")


def _is_host(host: str) -> bool:
    """A name, or an address written in the one usual way: no `127.1`, no `0x7f000001`."""
    labels = host.split(".")
    if ":" in host or NUMERIC.fullmatch(labels[-1]):
        return _literal(host) is not None
    return all(0 < len(label) < 64 for label in labels)


def _literal(host: str) -> Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def is_loopback(address: Address) -> bool:
    return address.is_loopback


def is_public(address: Address) -> bool:
    """Whether the address is somebody else's, out there: not this machine, its network, or a
    wrapping of either."""
    if isinstance(address, ipaddress.IPv6Address):
        if address in NAT64:
            return is_public(ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF))
        wrapped = any(address in network for network in WRAPPING_V6)
        return address in GLOBAL_V6 and address.is_global and not wrapped
    special = any(address in network for network in SPECIAL_V4)
    return address.is_global and not (address.is_multicast or address.is_reserved or special)
