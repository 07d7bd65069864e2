"""Where the box may go: what a URL says, and whose an address is.

A URL has one reading here, our own; what is sent is put together from its parts, and what does not
fit is refused before any look-up.
"""

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass

from hookbox.errors import AddressRefused

URL = re.compile(
    r"(https?)://([A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::([0-9]{1,5}))?(/[!\"$-~]{0,4000})?"
)
NUMERIC = re.compile(r"[0-9]+|0[xX][0-9A-Fa-f]*")
PORTS = {"http": 80, "https": 443}

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

# What older Pythons take for public: protocol assignments, and relays between IPv4 and IPv6.
SPECIAL_V4 = tuple(ipaddress.IPv4Network(each) for each in ("192.0.0.0/24", "192.88.99.0/24"))
# The only block of IPv6 that is routed; in it, Teredo and 6to4 wrap addresses of IPv4.
GLOBAL_V6 = ipaddress.IPv6Network("2000::/3")
WRAPPING_V6 = tuple(ipaddress.IPv6Network(each) for each in ("2001::/32", "2002::/16"))
# What a network without IPv4 makes of IPv4's addresses (RFC 6052). Real, so what is inside counts.
NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """Where requests may go besides public addresses by https: to this machine, and to networks
    that a person named.
    """

    loopback: bool = False
    networks: tuple[Network, ...] = ()

    def check(self, target: Target, addresses: Iterable[Address], *, plain: bool = False) -> None:
        """Raises AddressRefused unless the target may be gone to at each of these addresses, as far
        as they are known. `plain`: by http to the internet, too.
        """
        public = plain or target.scheme == "https"
        if not (public or self.loopback or self.networks):
            raise AddressRefused(f"{target.host}: only https goes out")
        for address in addresses:
            if not self._allows(address, public=public):
                raise AddressRefused(f"{target.host}: must not connect to {address}")

    def _allows(self, address: Address, *, public: bool) -> bool:
        if (public and is_public(address)) or (self.loopback and address.is_loopback):
            return True
        return any(address in network for network in self.networks)


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
        return bool(literal(host))
    return all(0 < len(label) < 64 for label in labels)


def literal(host: str) -> tuple[Address, ...]:
    """The address that a host is written as; none for a name."""
    try:
        return (ipaddress.ip_address(host),)
    except ValueError:
        return ()


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
