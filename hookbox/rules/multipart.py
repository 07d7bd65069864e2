"""Reading `multipart/form-data`: what senders post when mail with attachments comes in.

The boundary is taken from the body's own first line. The Content-Type header repeats it, but no
sender signs its headers, and whoever chooses the boundary chooses what the parts are.
"""

import re
from dataclasses import dataclass

from hookbox.rules.digest import Unreadable, digest_of_bytes

PARTS_MAX = 1000  # an inbound mail has two dozen fields and its attachments
HEAD_MAX = 8192  # a part's headers: a field's name, a file's name and type
BOUNDARY = re.compile(rb"--[!-~](?:[ -~]{0,68}[!-~])?")  # RFC 2046: at most 70 characters

NEWLINE = b"\r\n"
PARAMETER = re.compile(rb';\s*([a-z*]{1,20})=(?:"((?:[^"\\]|\\.)*)"|([^\s;"]*))', re.IGNORECASE)
QUOTED = re.compile(rb"\\(.)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One field, or one file where there is a file name."""

    name: bytes
    filename: bytes | None
    content_type: bytes
    content: bytes


def is_multipart(body: bytes) -> bool:
    """Whether the body begins as one; neither JSON nor a form can."""
    return body.startswith(b"--")


def parts(body: bytes) -> list[Part]:
    """The parts in their order. Unreadable where their ends cannot be told for certain."""
    boundary = body[:80].partition(NEWLINE)[0]
    if not BOUNDARY.fullmatch(boundary):
        raise Unreadable("a multipart body without its boundary")
    pieces = (NEWLINE + body).split(NEWLINE + boundary, PARTS_MAX + 2)[1:]
    if len(pieces) > PARTS_MAX + 1:
        raise Unreadable(f"a multipart body of more than {PARTS_MAX} parts")
    if not pieces[-1].startswith(b"--") or pieces[-1].strip(b"-\r\n \t"):
        raise Unreadable("a multipart body that does not end")
    return [_part(piece) for piece in pieces[:-1]]


def texts(body: bytes) -> dict[str, str]:
    """The fields that are no files; of two with one name the last counts.

    Bytes that are no UTF-8 become lone surrogates, so that nothing is lost and every text stays
    another.
    """
    return {text(part.name): text(part.content) for part in parts(body) if part.filename is None}


def form_object(body: bytes) -> dict[str, object]:
    """The same and the files, each by its name, type, size and digest: the bytes stay where they
    are."""
    return {text(part.name): _value(part) for part in parts(body)}


def text(found: bytes) -> str:
    return found.decode("utf-8", "surrogateescape")


def _part(piece: bytes) -> Part:
    head, end, content = piece.partition(NEWLINE + NEWLINE)
    if not end or len(head) > HEAD_MAX or not head.startswith(NEWLINE):
        raise Unreadable("a part without its headers")
    headers = dict(_header(line) for line in reversed(head.split(NEWLINE)[1:]))
    parameters = {name.lower(): value for name, value in _parameters(headers)}
    name = parameters.get(b"name")
    if name is None:
        raise Unreadable("a part without a name")
    return Part(
        name=name,
        filename=parameters.get(b"filename"),
        content_type=headers.get(b"content-type", b"text/plain"),
        content=content,
    )


def _header(line: bytes) -> tuple[bytes, bytes]:
    name, _, value = line.partition(b":")
    return name.strip().lower(), value.strip()


def _parameters(headers: dict[bytes, bytes]) -> list[tuple[bytes, bytes]]:
    found = PARAMETER.findall(headers.get(b"content-disposition", b""))
    return [(name, QUOTED.sub(rb"\1", quoted) or bare) for name, quoted, bare in reversed(found)]


def _value(part: Part) -> object:
    if part.filename is None:
        return text(part.content)
    return {
        "filename": text(part.filename),
        "content-type": text(part.content_type),
        "size": len(part.content),
        "sha256": digest_of_bytes(part.content).hex(),
    }
