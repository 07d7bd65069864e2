"""Whether a request's head can be read in one way only.

Pure rules over what the parser read. A head that two programs could read differently lets a request
hide inside another one behind a proxy, so it is refused, whichever reading would be ours. The
parser itself already refuses folded lines, bare CR or LF, NUL and other control characters, blanks
before a colon, and unreadable lengths and chunks.
"""

import re
from typing import NamedTuple

_HOST = re.compile(rb"[A-Za-z0-9._-]+(:[0-9]{1,5})?|\[[0-9A-Fa-f:.]+\](:[0-9]{1,5})?")

# 18 digits hold any size a disk can have, and keep int() away from a number of 16,000 digits.
_LENGTH_DIGITS_MAX = 18

_VERSIONS = ("1.1", "1.0")

# Methods that make a request mean something other than "here is a message for you".
_UNSUPPORTED = frozenset({b"CONNECT", b"TRACE"})

# Without a length these have no body; after any other method some reader may expect one.
BODILESS = frozenset({b"GET", b"HEAD", b"OPTIONS", b"DELETE"})

Fields = list[tuple[bytes, bytes]]


class Framing(NamedTuple):
    """The fields of a head that say where the request goes, where it ends, and what follows."""

    hosts: list[bytes]
    lengths: list[bytes]
    codings: list[bytes]
    upgrades: list[bytes]

    @property
    def says_length(self) -> bool:
        return bool(self.lengths or self.codings)


_PLACES = {b"host": 0, b"content-length": 1, b"transfer-encoding": 2, b"upgrade": 3}


def framing_of(fields: Fields) -> Framing:
    """Every field that matters, in the order sent. Names are in lower case."""
    framing = Framing([], [], [], [])
    for name, value in fields:
        if name in _PLACES:
            framing[_PLACES[name]].append(value.strip(b" \t"))
    return framing


def refusal_of(
    method: bytes, version: str, target: bytes, framing: Framing, body_bytes_max: int
) -> int | None:
    """The status that refuses this head, or None when it is clear."""
    if method in _UNSUPPORTED or framing.upgrades:
        return 501
    # A target in absolute form names a second host beside the Host field.
    if version not in _VERSIONS or not target.startswith(b"/"):
        return 400
    if len(framing.hosts) != 1 or not _HOST.fullmatch(framing.hosts[0]):
        return 400
    if framing.codings:
        return _refusal_of_coding(version, framing)
    if framing.lengths:
        return _refusal_of_length(framing.lengths, body_bytes_max)
    return None


def _refusal_of_coding(version: str, framing: Framing) -> int | None:
    # HTTP/1.0 knows no chunks: an old proxy in front would have read this request differently.
    if framing.lengths or len(framing.codings) > 1 or version == "1.0":
        return 400
    return None if framing.codings[0] == b"chunked" else 501


def _refusal_of_length(lengths: list[bytes], body_bytes_max: int) -> int | None:
    if len(lengths) > 1 or not lengths[0].isdigit():
        return 400
    too_large = len(lengths[0]) > _LENGTH_DIGITS_MAX or int(lengths[0]) > body_bytes_max
    return 413 if too_large else None
