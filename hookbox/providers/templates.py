"""Texts made from parts of a request: `{ts}.{body}`, `v0:{header:X-Time}:{body}`.

    {body}           the bytes that are signed
    {ts} {id}        what the source's `timestamp` and `id` point at
    {header:NAME}    a header, literally as sent
    {query:NAME}     a parameter of the query
    {json:/pointer}  a text or whole number in the body
    {url}            the source's public address, never taken from the request
    {form_sorted}    every field's name and value, sorted by name, with nothing in between

A value may not contain the literal that follows it in the template: then the same bytes could be
taken apart in two ways, and a signature for one would prove the other.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hookbox.errors import ConfigError, Reason, Refused
from hookbox.providers.places import ANYWHERE, Place, Where, parsed_place
from hookbox.rules.digest import Unreadable, read_value
from hookbox.rules.forms import fields, flat_object
from hookbox.rules.headers import Headers, one
from hookbox.rules.reading import at, key_text

PART = re.compile(r"\{([^{}]*)\}")
WHOLE = ("body", "url", "form_sorted")  # parts that are no place; the rest are


@dataclass(slots=True)
class Request:
    """One request while it is looked at.

    `pairs` are the signature's, where it has any. `form`: the body is one, and no JSON.
    """

    headers: Headers
    query: bytes
    body: bytes
    url: str = ""
    form: bool = False
    pairs: Sequence[tuple[bytes, bytes]] = ()
    _document: object = field(default=None, init=False)
    _read: bool = field(default=False, init=False)

    def document(self) -> object:
        """What the body says, read before anything is proved: only to find what proves it."""
        if not self._read:
            try:
                self._document = (flat_object if self.form else read_value)(self.body)
                self._read = True
            except Unreadable as error:
                raise Refused(Reason.ENVELOPE_MALFORMED) from error
        return self._document

    def at(self, place: Place) -> bytes | None:
        """The bytes at a place; None where there is nothing."""
        if place.where is Where.HEADER:
            return one(self.headers, place.name)
        if place.where is Where.JSON:
            text = key_text(at(self.document(), place.pointer))
            return None if text is None else text.encode()
        found = self.pairs if place.where is Where.PAIR else _fields(self.query)
        values = [value for name, value in found if name == place.name.encode()]
        if len(values) > 1:
            raise Refused(Reason.HEADER_AMBIGUOUS)
        return values[0] if values else None


@dataclass(frozen=True, slots=True)
class Template:
    """A parsed template: literals as bytes, parts as places or as the names in WHOLE."""

    parts: tuple[bytes | str | Place, ...]

    def places(self) -> tuple[Place, ...]:
        return tuple(part for part in self.parts if isinstance(part, Place))

    def whole(self, name: str) -> bool:
        return name in self.parts

    def render(self, request: Request, stamp: Place | None = None) -> bytes | None:
        """The text for this request; None when one of its parts is not there.

        The signed time's own form is strict enough to say where it ends.
        """
        made = []
        for part, following in zip(self.parts, (*self.parts[1:], b""), strict=True):
            value = part if isinstance(part, bytes) else _value(part, request)
            if value is None:
                return None
            literal = following if isinstance(part, Place) and part != stamp else b""
            if isinstance(literal, bytes) and literal and literal in value:
                raise Refused(Reason.ENVELOPE_MALFORMED)
            made.append(value)
        return b"".join(made)


def _value(part: str | Place, request: Request) -> bytes | None:
    if isinstance(part, Place):
        return request.at(part)
    if part == "body":
        return request.body
    if part == "url":
        return request.url.encode()
    by_name = sorted(_fields(request.body), key=lambda pair: pair[0])
    return b"".join(name + value for name, value in by_name)


def _fields(text: bytes) -> list[tuple[bytes, bytes]]:
    try:
        return fields(text)
    except Unreadable as error:
        raise Refused(Reason.ENVELOPE_MALFORMED) from error


def parsed_template(
    setting: str,
    text: object,
    named: Mapping[str, Place | None],
    allowed: tuple[Where, ...] = ANYWHERE,
) -> Template:
    """The template that a setting writes. `named`: what `{ts}` and `{id}` stand for here."""
    if not isinstance(text, str):
        raise ConfigError("this must be a text", where=setting, mend='for example "{ts}.{body}"')
    parts: list[bytes | str | Place] = []
    for position, piece in enumerate(PART.split(text)):
        if position % 2:
            parts.append(_parsed_part(setting, piece, named, allowed))
        elif "{" in piece or "}" in piece:
            raise ConfigError(
                f"a brace without its other half in `{text}`",
                where=setting,
                mend="parts are written {like:this}; a brace cannot be literal text",
            )
        elif piece:
            parts.append(piece.encode())
    return Template(tuple(parts))


def _parsed_part(
    setting: str, piece: str, named: Mapping[str, Place | None], allowed: tuple[Where, ...]
) -> str | Place:
    if piece in WHOLE and allowed == ANYWHERE:
        return piece
    if piece not in named:
        return parsed_place(setting, piece, allowed)
    place = named[piece]
    if place is None:
        where = "timestamp" if piece == "ts" else piece
        raise ConfigError(
            f"`{{{piece}}}` stands for nothing yet",
            where=setting,
            mend=f'say where it is: {where} = "header:X-{where.title()}"',
        )
    return place
