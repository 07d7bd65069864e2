"""Reading JSON strictly, and the digest of what it says.

The digest is taken over the canonical form of an event's own content: the order of members and
white space do not matter, everything else does. `1` and `1.0` differ, and so do `1.0` and `1.00`:
numbers count as written.

What two readers could read in two ways is Unreadable: members with one name, NaN, text that is
not UTF-8, integers of thousands of digits, nesting without end. Lone surrogates and NUL are one
thing to every reader and pass; nobody must put such text into a column, see `reading.plain_text`.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from json.decoder import JSONDecodeError
from json.encoder import JSONEncoder
from typing import NoReturn

BOM = "\ufeff"

# JSON text to (value, index after it), as JSONDecoder.raw_decode.
Decode = Callable[[str, int], tuple[object, int]]


class Unreadable(ValueError):
    """Not JSON that every reader would read alike. The message says why, without any content."""


@dataclass(frozen=True, slots=True)
class Content:
    """What a JSON text says, and the digest of it."""

    value: object
    digest: bytes


class Reader:
    """Decodes and digests one JSON value after the other.

    A double forgets digits, so the literal text of every fraction of the value goes into the digest
    too (sorted: the order of members must not show).
    """

    __slots__ = ("_decode", "_fractions")

    def __init__(self) -> None:
        self._fractions: list[str] = []
        self._decode: Decode = _decoder(self._fraction)

    def _fraction(self, text: str) -> float:
        self._fractions.append(text)
        return float(text)

    def read(self, text: str, start: int = 0) -> tuple[Content, int]:
        """The JSON value that begins at `start`, and the index after it."""
        self._fractions.clear()
        value, end = _decoded(self._decode, text, start)
        try:
            canonical = _canonical(value)
        except RecursionError as error:
            raise Unreadable("nested too deeply") from error
        if self._fractions:
            canonical += "\n" + ",".join(sorted(self._fractions))
        return Content(value, hashlib.sha256(canonical.encode("ascii")).digest()), end


def text_of(body: bytes) -> str:
    """The body as text: UTF-8 and nothing else. A byte order mark stays; `blank` skips it."""
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Unreadable(f"not UTF-8 at byte {error.start}") from error


def blank(text: str, at: int) -> int:
    """The index after any white space, and after a byte order mark at the very beginning."""
    if at == 0 and text.startswith(BOM):
        at = 1
    while text[at : at + 1] in (" ", "\n", "\r", "\t"):
        at += 1
    return at


def read_json(body: bytes) -> Content:
    """The one JSON value that a body holds, and its digest."""
    text = text_of(body)
    start = blank(text, 0)
    try:
        content, end = _read_whole(text, start)
    except _HasFraction:
        content, end = Reader().read(text, start)
    _nothing_after(text, end)
    return content


def _read_whole(text: str, start: int) -> tuple[Content, int]:
    """As `Reader` reads, for what most events are: without a fraction anywhere, there is nothing to
    remember, and one decoder serves all of them.
    """
    value, end = _decoded(_decode_whole, text, start)
    try:
        canonical = _canonical(value)
    except RecursionError as error:
        raise Unreadable("nested too deeply") from error
    return Content(value, hashlib.sha256(canonical.encode("ascii")).digest()), end


def read_value(body: bytes) -> object:
    """The same without a digest."""
    text = text_of(body)
    value, end = _decoded(_decode, text, blank(text, 0))
    _nothing_after(text, end)
    return value


def value_or_none(body: bytes) -> object:
    """The same for what was let through as it is: None where it cannot be read."""
    try:
        return read_value(body)
    except Unreadable:
        return None


def digest_of(value: object) -> bytes:
    """The digest of a part of what was read; its fractions count as doubles."""
    return hashlib.sha256(_canonical(value).encode("ascii")).digest()


def digest_of_bytes(content: bytes) -> bytes:
    """The digest of content that is not JSON."""
    return hashlib.sha256(content).digest()


def synthesised_key(*parts: str) -> str:
    """The key of an event whose sender gives it none: made from what makes the event itself."""
    return "h:" + hashlib.sha256("|".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def _nothing_after(text: str, end: int) -> None:
    if blank(text, end) != len(text):
        raise Unreadable(f"not JSON: something follows the value at character {end}")


def _decoded(decode: Decode, text: str, start: int) -> tuple[object, int]:
    try:
        return decode(text, start)
    except JSONDecodeError as error:
        raise Unreadable(f"not JSON: {error.msg.lower()} at character {error.pos}") from error
    except RecursionError as error:
        raise Unreadable("nested too deeply") from error
    except Unreadable:
        raise
    except ValueError as error:  # Python does not read integers of more than 4,300 digits
        raise Unreadable("an integer of thousands of digits") from error


def _members(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise Unreadable("two members of one object have the same name")
    return members


class _HasFraction(Exception):
    """There is a fraction, whose text counts."""


def _no_fraction(text: str) -> NoReturn:
    raise _HasFraction


def _no_constant(name: str) -> NoReturn:
    raise Unreadable(f"{name} is not JSON")


def _decoder(fraction: Callable[[str], float]) -> Decode:
    return json.JSONDecoder(
        object_pairs_hook=_members, parse_float=fraction, parse_constant=_no_constant
    ).raw_decode


_decode = _decoder(float)
_decode_whole = _decoder(_no_fraction)
_canonical = JSONEncoder(sort_keys=True, separators=(",", ":")).encode
