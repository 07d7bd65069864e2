"""Wrong copies of right things: bodies, header values, whole headers. For senders with a signature
of their own kind; those that sign headers with an HMAC have theirs in mutations.py."""

import json
from collections.abc import Iterator

from tests.providers.requests import Headers

Pairs = list[tuple[str, str]]


def bodies(body: bytes) -> Iterator[tuple[str, bytes]]:
    """The body as proxies, frameworks and forgers change it."""
    for at in range(0, len(body), max(1, len(body) // 12)):
        yield f"flipped at {at}", body[:at] + bytes([body[at] ^ 1]) + body[at + 1 :]
    yield "empty", b""
    yield "cut by one", body[:-1]
    yield "cut in half", body[: len(body) // 2]
    yield "without its first byte", body[1:]
    yield "stripped of its end", body.rstrip() if body.rstrip() != body else body[:-2]
    for name, tail in (("blank", b" "), ("newline", b"\n"), ("CR LF", b"\r\n"), ("NUL", b"\0")):
        yield f"and a {name}", body + tail
    yield "twice", body + body
    yield "behind a byte order mark", b"\xef\xbb\xbf" + body
    yield "written anew", json.dumps(json.loads(body), indent=1).encode()
    yield "in other case", body.swapcase()
    yield "with escaped slashes", body.replace(b"/", b"\\/") + b" "
    yield "as UTF-16", body.decode().encode("utf-16")


def values(value: str) -> Iterator[tuple[str, str | bytes]]:
    """A header's value, changed in ways that lax readers overlook."""
    raw = value.encode()
    yield "empty", ""
    yield "in quotes", f'"{value}"'
    yield "joined with itself", f"{value},{value}"
    yield "twice in a row", f"{value} {value}"
    yield "cut by one", value[:-1]
    yield "cut in half", value[: len(value) // 2]
    yield "reversed", value[::-1]
    yield "the word `undefined`", "undefined"
    for byte in (b"\xe9", b"\xff", b"\0", b"\xc2\xa0", b"\r\n", b"\t"):
        for at in (0, len(raw) // 2, len(raw)):
            yield f"with {byte!r} at {at}", raw[:at] + byte + raw[at:]


def headers(good: dict[str, str], names: list[str]) -> Iterator[tuple[str, Headers]]:
    """The headers with one of those named absent, changed, or there twice."""
    for name in names:
        value, others = good[name], [(n, v) for n, v in good.items() if n != name]
        yield f"{name} absent", others
        for what, changed in values(value):
            yield f"{name} {what}", [*others, (name, changed)]
        for what, copies in (
            ("twice", (value, value)),
            ("twice, a wrong one first", ("x", value)),
            ("twice, a wrong one last", (value, "x")),
            ("twice, an empty one first", ("", value)),
        ):
            yield f"{name} {what}", [*others, *((name, each) for each in copies)]
        if "-" in name:
            yield f"{name} under its name with _", [*others, (name.replace("-", "_"), value)]


def flips(secretive: bytes) -> Iterator[tuple[str, bytes]]:
    """Every byte changed by one bit."""
    for at, byte in enumerate(secretive):
        yield f"flipped at {at}", secretive[:at] + bytes([byte ^ 1]) + secretive[at + 1 :]
