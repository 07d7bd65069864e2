"""Pages as most feeds write them: a JSON object with a list of items, and what says how to go on.

An item that nobody should read spoils neither the page nor its neighbours. The members around the
list are read loosely, with numbers as text: they steer, and are never stored.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from urllib.parse import urlencode

from hookbox.model import Rotten, SplitEvent
from hookbox.rules.digest import Content, Unreadable, blank, text_of
from hookbox.rules.elements import Element, read_elements
from hookbox.rules.reading import Pointer

_loosely = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str).raw_decode

# Reads one item as an event, or says in a few words why it is none.
ReadItem = Callable[[Element], SplitEvent | str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A page, taken apart."""

    document: object  # loosely read
    elements: list[Element]


@dataclass(slots=True)
class Items:
    """What a page's items turned out to be."""

    events: list[SplitEvent] = field(default_factory=list)
    rotten: list[Rotten] = field(default_factory=list)


def opened(body: bytes, items: Pointer) -> Opened:
    """Raises Unreadable when the page as a whole cannot be read."""
    elements = read_elements(body, items)
    text = text_of(body)
    try:
        document, _ = _loosely(text, blank(text, 0))
    except (ValueError, RecursionError) as error:
        raise Unreadable("the page cannot be read") from error
    return Opened(document=document, elements=elements)


def read_items(body: bytes, elements: Iterable[Element], read: ReadItem) -> Items:
    """Each item as an event that is a slice of the page, or as a piece to set aside."""
    found = Items()
    for element in elements:
        event = _event(element, read)
        if isinstance(event, str):
            found.rotten.append(Rotten(reason=event, content=body[element.start : element.end]))
        else:
            found.events.append(event)
    return found


def _event(element: Element, read: ReadItem) -> SplitEvent | str:
    if element.content is None:
        return element.fault
    event = read(element)
    if isinstance(event, str) or event.content is not None:
        return event
    return SplitEvent(
        key=event.key,
        digest=event.digest,
        raw_kind=event.raw_kind,
        synthesised=event.synthesised,
        start=element.start,
        end=element.end,
    )


def of_content(read: Callable[[Content], SplitEvent | str]) -> ReadItem:
    """For items that are events as they stand."""

    def read_item(element: Element) -> SplitEvent | str:
        assert element.content is not None, "what has none is never handed on"
        return read(element.content)

    return read_item


def with_query(url: str, **parameters: object) -> str:
    """The URL with these parameters; those that are None are left out."""
    given = {name: value for name, value in parameters.items() if value is not None}
    if not given:
        return url
    return f"{url}{'&' if '?' in url else '?'}{urlencode(given)}"
