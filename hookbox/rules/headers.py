"""Reading one header of a delivery, where two readers could see two things.

A header that is there twice, or that holds a byte outside ASCII, is refused and never repaired:
whoever signs a request signs one plain value. Values stay bytes, because the bytes are what was
signed.
"""

from collections.abc import Iterable

from hookbox.errors import Reason, Refused

Headers = Iterable[tuple[bytes, bytes]]


def one(headers: Headers, name: str) -> bytes | None:
    """The value of the header, None where it is absent. `name` in lower case."""
    wanted = name.encode()
    value = None
    for found, content in headers:
        if found == wanted:
            if value is not None:
                raise Refused(Reason.HEADER_AMBIGUOUS)
            value = content
    if value is not None and not value.isascii():
        raise Refused(Reason.HEADER_MALFORMED)
    return value


def required(headers: Headers, name: str, missing: Reason) -> bytes:
    """The value of a header without which nothing can be proved; an empty one counts as absent."""
    value = one(headers, name)
    if not value:
        raise Refused(missing)
    return value


def pairs(value: bytes, separator: bytes = b",") -> list[tuple[bytes, bytes]]:
    """The `name=value` pairs of a header, in whatever order; what is no pair is left out."""
    parts = (part.strip(b" \t").partition(b"=") for part in value.split(separator))
    return [(name, content) for name, equals, content in parts if equals]


def one_of(found: list[tuple[bytes, bytes]], name: bytes, missing: Reason) -> bytes:
    """The value of the only pair of this name."""
    values = [value for each, value in found if each == name]
    if not values:
        raise Refused(missing)
    if len(values) > 1:
        raise Refused(Reason.HEADER_AMBIGUOUS)
    return values[0]
