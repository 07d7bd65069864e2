"""Whether a request's head can be read in one way only.

Pure rules over what the parser read. A head that two programs could read differently lets a request
hide inside another one behind a proxy, so it is refused, whichever reading would be ours. The
parser itself already refuses folded lines, bare CR or LF, NUL and other control characters, blanks
before a colon, and unreadable lengths and chunks.
"""

import re

from hookbox.web.connections import Limits

_HOST = re.compile(rb"[A-Za-z0-9._-]+(:[0-9]{1,5})?|\[[0-9A-Fa-f:.]+\](:[0-9]{1,5})?")

# 18 digits hold any size a disk can have, and keep int() away from a number of 16,000 digits.
_LENGTH_DIGITS_MAX = 18

# Methods that make a request mean something other than "here is a message for you".
_UNSUPPORTED = frozenset({b"CONNECT", b"TRACE"})

# Without a length these have no body; after any other method some reader may expect one.
BODILESS = frozenset({b"GET", b"HEAD", b"OPTIONS", b"DELETE"})

Fields = list[tuple[bytes, bytes]]


def has_length(fields: Fields) -> bool:
    """Whether the head says how long its body is."""
    return any(name in (b"content-length", b"transfer-encoding") for name, _ in fields)


def refusal_of(
    method: bytes, version: str, target: bytes, fields: Fields, limits: Limits
) -> int | None:
    """The status that refuses this head, or None when it is clear. Names are in lower case."""
    if len(fields) > limits.fields_max:
        return 431
    found: dict[bytes, list[bytes]] = {
        b"host": [],
        b"content-length": [],
        b"transfer-encoding": [],
        b"upgrade": [],
    }
    for name, value in fields:
        if name in found:
            found[name].append(value.strip(b" \t"))
    return (
        _refusal_of_request(method, version, target, found[b"host"])
        or _refusal_of_coding(version, found[b"transfer-encoding"], found[b"content-length"])
        or _refusal_of_length(found[b"content-length"], limits.body_bytes_max)
        or (501 if found[b"upgrade"] else None)
    )


def _refusal_of_request(
    method: bytes, version: str, target: bytes, hosts: list[bytes]
) -> int | None:
    if method in _UNSUPPORTED:
        return 501
    # A target in absolute form names a second host beside the Host field.
    if version not in ("1.0", "1.1") or not target.startswith(b"/"):
        return 400
    return None if len(hosts) == 1 and _HOST.fullmatch(hosts[0]) else 400


def _refusal_of_coding(version: str, codings: list[bytes], lengths: list[bytes]) -> int | None:
    if not codings:
        return None
    # HTTP/1.0 knows no chunks: an old proxy in front would have read this request differently.
    if lengths or len(codings) > 1 or version == "1.0":
        return 400
    return None if codings[0] == b"chunked" else 501


def _refusal_of_length(lengths: list[bytes], body_bytes_max: int) -> int | None:
    if not lengths:
        return None
    if len(lengths) > 1 or not lengths[0].isdigit():
        return 400
    too_large = len(lengths[0]) > _LENGTH_DIGITS_MAX or int(lengths[0]) > body_bytes_max
    return 413 if too_large else None
