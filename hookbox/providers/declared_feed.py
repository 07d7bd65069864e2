"""The declarative feed: a list of events of any sender, described by its source's settings.

    [source.NAME.poll]
    url = "https://api.example.com/events"
    token = "env:NAME_KEY"

Where the events are, and which they are
    items = "/data"                   # the list; "" when the page is the list
    event = "/payload"                # in each item: what the webhook's body holds; "" is all of it
    id = "/id"                        # in each item: what the webhook calls the event

How the next page is asked for
    cursor = "/next_cursor"           # in the page, or "item:/id": in its last item
    cursor_parameter = "cursor"       # what it is sent back as
    limit_parameter = "limit"         # "" where the sender takes none
    more = "/has_more"                # true while there is more; "" where only an empty page is
                                      # the last

How the token is sent
    header = "Authorization"
    scheme = "Bearer"                 # before the token; "" for the token alone

An event must be told in the list as its webhook tells it, member by member; the order of members
does not matter. One that differs is put aside as a contradiction.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from hookbox.errors import ConfigError
from hookbox.model import SplitEvent
from hookbox.providers.feed import Ask, Feed, Page, Place, Table, no_feed_options
from hookbox.providers.pages import opened, read_items, with_query
from hookbox.rules.digest import Content, Unreadable
from hookbox.rules.elements import Element, read_inside
from hookbox.rules.reading import Pointer, at, key_text, parsed_pointer

LIMIT_MAX = 100
HEADER = re.compile(r"[A-Za-z0-9-]{1,64}")
PARAMETER = re.compile(r"[A-Za-z0-9_.\[\]-]{0,64}")
NAMED = re.compile(r"[A-Za-z0-9_.\[\]-]{1,64}")
LAST_ITEM = "item:"

# Reads an event as the source's webhooks are read, under the id that the list gives it, if any.
ReadEvent = Callable[[Content, str | None], SplitEvent | str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How one sender's list looks."""

    items: Pointer = ("data",)
    event: Pointer = ()
    id: Pointer = ("id",)
    cursor: Pointer = ("next_cursor",)
    cursor_of_item: bool = False
    cursor_parameter: str = "cursor"
    limit_parameter: str = "limit"
    more: Pointer | None = ("has_more",)
    header: str = "Authorization"
    scheme: str = "Bearer"


def ask(shape: Shape, place: Place) -> Ask:
    parameters: dict[str, object] = {shape.cursor_parameter: place.cursor}
    if shape.limit_parameter:
        parameters[shape.limit_parameter] = place.limit
    credentials = f"{shape.scheme} {place.token}" if shape.scheme else place.token
    return Ask(url=with_query(place.url, **parameters), headers={shape.header: credentials})


def read(shape: Shape, read_event: ReadEvent, place: Place, body: bytes) -> Page:
    page = opened(body, shape.items)
    items = read_items(body, page.elements, partial(_event, shape, read_event, body))
    cursor = _cursor(shape, page.document, page.elements)
    more = _more(shape, page.document, page.elements)
    promised = more and shape.more is not None  # a list without such a word ends with its cursors
    return Page(
        events=tuple(items.events),
        rotten=tuple(items.rotten),
        cursor=None if cursor == place.cursor else cursor,
        more=more and cursor is not None,
        fault="there is more of it, and no cursor to go on from" if promised and not cursor else "",
    )


def _cursor(shape: Shape, document: object, elements: list[Element]) -> str | None:
    if not shape.cursor_of_item:
        return key_text(at(document, shape.cursor))
    values = [element.content.value for element in elements if element.content]
    return key_text(at(values[-1], shape.cursor)) if values else None


def _more(shape: Shape, document: object, elements: list[Element]) -> bool:
    return bool(elements) if shape.more is None else at(document, shape.more) is True


def _event(shape: Shape, read_event: ReadEvent, body: bytes, element: Element) -> SplitEvent | str:
    assert element.content is not None, "read"
    event_id = key_text(at(element.content.value, shape.id))
    if not shape.event:
        return read_event(element.content, event_id)
    item = body[element.start : element.end]
    try:
        content, start, end = read_inside(item, shape.event)
    except Unreadable as error:
        return str(error)
    found = read_event(content, event_id)
    return found if isinstance(found, str) else replace(found, content=item[start:end])


def declared(read_event: ReadEvent) -> Feed:
    """The feed of a source whose events are read so."""
    return _shaped(Shape(), read_event)


def _shaped(shape: Shape, read_event: ReadEvent) -> Feed:
    return Feed(
        ask=partial(ask, shape),
        read=partial(read, shape, read_event),
        limit_max=LIMIT_MAX,
        configure=partial(_configured, read_event),
    )


def _configured(read_event: ReadEvent, feed: Feed, table: Table) -> Feed:
    unknown = {name: value for name, value in table.items() if name not in SETTINGS}
    no_feed_options(feed, unknown)
    texts = {name: _text(name, value) for name, value in table.items()}
    shape = Shape()
    for name, text in texts.items():
        shape = SETTINGS[name](shape, text)
    return _shaped(shape, read_event)


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise ConfigError("this must be a text", where=name, mend='write it like "/data"')
    return value


def _pointer(name: str, text: str) -> Pointer:
    try:
        return parsed_pointer(text)
    except ValueError as error:
        raise ConfigError(str(error), where=name, mend='write it like "/data"') from error


def _put_pointer(name: str) -> Callable[[Shape, str], Shape]:
    def put(shape: Shape, text: str) -> Shape:
        return replace(shape, **{name: _pointer(name, text)})  # type: ignore[arg-type]  # a Pointer

    return put


def _put_matching(name: str, form: re.Pattern[str]) -> Callable[[Shape, str], Shape]:
    def put(shape: Shape, text: str) -> Shape:
        if not form.fullmatch(text):
            raise ConfigError(f"`{text}` cannot stand here", where=name, mend="use plain letters")
        return replace(shape, **{name: text})  # type: ignore[arg-type]  # a text

    return put


def _put_cursor(shape: Shape, text: str) -> Shape:
    of_item = text.startswith(LAST_ITEM)
    pointer = _pointer("cursor", text.removeprefix(LAST_ITEM))
    return replace(shape, cursor=pointer, cursor_of_item=of_item)


def _put_more(shape: Shape, text: str) -> Shape:
    return replace(shape, more=_pointer("more", text) if text else None)


SETTINGS: dict[str, Callable[[Shape, str], Shape]] = {
    "items": _put_pointer("items"),
    "event": _put_pointer("event"),
    "id": _put_pointer("id"),
    "cursor": _put_cursor,
    "cursor_parameter": _put_matching("cursor_parameter", NAMED),
    "limit_parameter": _put_matching("limit_parameter", PARAMETER),
    "more": _put_more,
    "header": _put_matching("header", HEADER),
    "scheme": _put_matching("scheme", re.compile(r"[A-Za-z0-9-]{0,32}")),
}
