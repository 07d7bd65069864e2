"""Which event this is, for senders whose source says where to look.

The sender's own id where there is a usable one; else a natural key made of what makes the event
itself (order, status, time). A natural key is a guess: two events that share those facts become
one, so each use is marked, counted and shown.
"""

from collections.abc import Callable
from dataclasses import dataclass

from hookbox.providers.places import Place
from hookbox.providers.schemes import Identity
from hookbox.providers.templates import Template
from hookbox.rules.digest import synthesised_key
from hookbox.rules.reading import at, bare, key_text


@dataclass(frozen=True, slots=True)
class Identified:
    """An event's key, and whether it was made from content."""

    key: str
    synthesised: bool


def identify(
    identity: Identity, document: object, header: Callable[[str], object]
) -> Identified | None:
    """The event's key; None when there is neither an id nor any part of a natural key."""
    if identity.id and identity.stable:
        key = _sent_id(identity.id, document, header)
        if key is not None:
            return Identified(key, synthesised=False)
    parts = [_text(at(document, pointer)) for pointer in identity.natural]
    return Identified(synthesised_key(*parts), synthesised=True) if any(parts) else None


def _sent_id(template: Template, document: object, header: Callable[[str], object]) -> str | None:
    texts = [
        key_text(part.value(document, header)) if isinstance(part, Place) else part.decode()
        for part in template.parts
        if not isinstance(part, str)
    ]
    return None if None in texts else key_text("".join(text for text in texts if text))


def _text(value: object) -> str:
    """A part of a natural key: verbatim, addresses in lower case, empty for what is not there."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return value.lower() if bare(value) == value else value
    return str(value) if isinstance(value, int | float) else ""
