"""Postmark's list of bounces and complaints, the newest first.

`GET /bounces?count=…&offset=…&fromdate=…`, with the server's token, answers `Bounces` and
`TotalCount`. What arrives meanwhile only moves items to later pages, so none is missed. The cursor
is the newest time seen, saved when the list was read to its end; dates are Postmark's own, in its
own zone, so a day and more is read again each time. Deliveries, opens and clicks are not in it.
https://postmarkapp.com/developer/api/bounce-api (2026-08)
"""

import json

from hookbox.model import SplitEvent
from hookbox.providers.feed import Ask, Feed, Page, Place
from hookbox.providers.pages import of_content, opened, read_items, with_query
from hookbox.providers.postmark_events import Document, identify, own_digest, record_type
from hookbox.rules.digest import Content
from hookbox.rules.instants import instant, written
from hookbox.rules.reading import at, plain_text

AGAIN_MS = 86_400_000
LIMIT_MAX = 250  # they allow 500; a page is one transaction, and others wait for it
SHOWN_MAX = 10_000  # of one search: beyond that Postmark shows nothing


def ask(place: Place) -> Ask:
    offset, _ = _onward(place)
    begin = instant(place.cursor)
    url = with_query(
        place.url,
        count=place.limit,
        offset=offset,
        fromdate=None if begin is None else written(begin - AGAIN_MS)[:10],
    )
    headers = {"x-postmark-server-token": place.token, "accept": "application/json"}
    return Ask(url=url, headers=headers)


def _onward(place: Place) -> tuple[int, int]:
    """How many items were given in this round, and the newest time among them."""
    offset, _, newest = place.onward.partition("@")
    return int(offset or 0), int(newest or 0)


def read(place: Place, body: bytes) -> Page:
    page = opened(body, ("Bounces",))
    items = read_items(body, page.elements, of_content(_event))
    offset, newest = _onward(place)
    values = [each.content.value for each in page.elements if each.content]
    newest = max([newest, *(instant(at(value, ("BouncedAt",))) or 0 for value in values)])
    offset += len(page.elements)
    total = plain_text(at(page.document, ("TotalCount",)), 12) or "0"
    more = bool(page.elements) and total.isdigit() and offset < int(total)
    shown = offset + place.limit <= SHOWN_MAX
    return Page(
        events=tuple(items.events),
        rotten=tuple(items.rotten),
        cursor=None if more or newest <= (instant(place.cursor) or 0) else written(newest),
        onward=f"{offset}@{newest}" if more else "",
        more=more,
        fault=f"there are {total} bounces, and Postmark shows {SHOWN_MAX} of them"
        if more and not shown
        else "",
    )


def _event(content: Content) -> SplitEvent | str:
    """A bounce as its webhook tells it, which names the kind of record."""
    document = content.value
    if not isinstance(document, dict):
        return "the bounce is JSON, but not an object"
    record = _record(document)
    identified = identify(record, content.digest)
    if identified.synthesised:
        return "the bounce has no id"
    return SplitEvent(
        key=identified.key,
        digest=own_digest(record, content.digest),
        raw_kind=record_type(record),
        content=None if record is document else json.dumps(record).encode(),
    )


def _record(document: Document) -> Document:
    complaint = document.get("Type") == "SpamComplaint"
    word = "SpamComplaint" if complaint else "Bounce"
    return document if record_type(document) == word else {**document, "RecordType": word}


FEED = Feed(ask=ask, read=read, limit_max=LIMIT_MAX, every_min_s=15)
