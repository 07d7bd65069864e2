"""How addresses are written: where to listen, whom to believe, what the box is called outside."""

from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from urllib.parse import urlsplit

from hookbox.errors import ConfigError

Network = IPv4Network | IPv6Network

_LISTEN_MEND = 'write it like "127.0.0.1:8080", "[::1]:8080" or "unix:/run/hookbox/hooks.sock"'
_PORT_MAX = 65_535
_UNIX_PATH_MAX_BYTES = 107  # what the kernel's socket address holds
_EVERYWHERE = {"0.0.0.0", "::"}  # noqa: S104  (recognised here, bound only when the person asks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listen:
    """One place to listen at: a host and a port (0: any free one), or a Unix socket."""

    host: str = ""
    port: int = 0
    path: Path | None = None

    @property
    def text(self) -> str:
        if self.path:
            return f"unix:{self.path}"
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return self.path is not None or self.host == "localhost" or _is_loopback(self.host)

    @classmethod
    def parse(cls, value: object) -> "Listen":
        if not isinstance(value, str):
            raise ConfigError(f"{value!r} is not an address", mend=_LISTEN_MEND)
        if value.startswith("unix:"):
            return cls(path=_socket_path(value.removeprefix("unix:")))
        host, _, port = value.rpartition(":")
        bracketed = host.startswith("[") and host.endswith("]")
        bare = host[1:-1] if bracketed else host
        if not bare or bracketed != (":" in bare) or any(sign in bare for sign in "/[]@ "):
            raise ConfigError(f"{value!r} is not an address", mend=_LISTEN_MEND)
        if not (port.isascii() and port.isdigit() and int(port) <= _PORT_MAX):
            raise ConfigError(
                f"{value!r} has no usable port", mend="a port is a number from 1 to 65535"
            )
        return cls(host=bare, port=int(port))

    def overlaps(self, other: "Listen") -> bool:
        """Whether the two cannot be open at once."""
        if self.path or other.path:
            return self.path == other.path
        same_host = self.host == other.host or bool(_EVERYWHERE & {self.host, other.host})
        return same_host and self.port == other.port != 0


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _socket_path(text: str) -> Path:
    if not text.startswith("/"):
        raise ConfigError("a Unix socket needs its full path", mend=_LISTEN_MEND)
    if len(text.encode()) > _UNIX_PATH_MAX_BYTES:
        raise ConfigError(
            f"a Unix socket's path has at most {_UNIX_PATH_MAX_BYTES} bytes",
            mend="choose a shorter one",
        )
    return Path(text)


def network(value: object) -> Network:
    """An address or a network: whose headers are believed, or what may be called."""
    try:
        found = ip_network(value) if isinstance(value, str) else None
    except ValueError as error:
        raise ConfigError(
            f"{value!r} is not an address or network: {error}", mend=_NETWORK_MEND
        ) from None
    if found is None:
        raise ConfigError(f"{value!r} is not an address or network", mend=_NETWORK_MEND)
    if found.prefixlen == 0:
        raise ConfigError(f"{value!r} means everybody", mend="name those that are meant")
    return found


_NETWORK_MEND = 'write it like "127.0.0.1" or "10.0.0.0/8"'


def public_url(value: object) -> str:
    """What senders have before `/hooks/...`: scheme, host and perhaps a port."""
    mend = 'write it like "https://hooks.example.com"'
    if not isinstance(value, str):
        raise ConfigError(f"{value!r} is not a URL", mend=mend)
    try:
        parts = urlsplit(value)
        port = parts.port
    except ValueError as error:
        raise ConfigError(f"{value!r} is not a URL: {error}", mend=mend) from None
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise ConfigError(f"{value!r} is not the URL of a web server", mend=mend)
    if parts.username is not None:
        raise ConfigError("must not hold a user name or password", mend=mend)
    bare = value.removesuffix("/")
    if parts.path not in ("", "/") or set(bare) & set("?# ") or not bare.isascii():
        raise ConfigError(
            "has more than scheme, host and port", mend=f"{mend}; `/hooks/SOURCE` is added to it"
        )
    return bare
