"""Mailgun's events API, which brings back what its webhooks gave up.

`GET /v3/DOMAIN/events?begin=…&ascending=yes`, with the API key, answers `items` and the address of
the page after them; an empty page is the last. Events may turn up late and between older ones, so
whatever is younger than half an hour is read again the next time: the cursor is a time, and never a
young one. The items are what webhooks carry as `event-data`.
https://documentation.mailgun.com/docs/mailgun/user-manual/events/events (2026-09)
"""

import base64

from hookbox.model import SplitEvent
from hookbox.providers.feed import Ask, Feed, Page, Place
from hookbox.providers.pages import of_content, opened, read_items, with_query
from hookbox.rules.digest import Content, digest_of
from hookbox.rules.instants import instant, written
from hookbox.rules.reading import at, key_text, plain_text

YOUNG_MS = 30 * 60_000
KEPT_MS = 30 * 86_400_000  # by the longest plan
LIMIT_MAX = 250  # they allow 300; a page is one transaction, and others wait for it


def identity(event_id: str, occurred_at: int) -> str:
    """Ids are unique within a day: the event's, in UTC."""
    return f"{event_id}@{written(occurred_at)[:10]}"


def ask(place: Place) -> Ask:
    credentials = base64.b64encode(f"api:{place.token}".encode()).decode()
    url = place.onward or with_query(
        place.url, begin=_begin(place) / 1000, ascending="yes", limit=place.limit
    )
    return Ask(url=url, headers={"authorization": f"Basic {credentials}"})


def _begin(place: Place) -> int:
    begin = instant(place.cursor)
    return place.now - KEPT_MS if begin is None else begin


def read(place: Place, body: bytes) -> Page:
    page = opened(body, ("items",))
    items = read_items(body, page.elements, of_content(_event))
    onward = plain_text(at(page.document, ("paging", "next"))) or ""
    more = bool(page.elements) and bool(onward)
    return Page(
        events=tuple(items.events),
        rotten=tuple(items.rotten),
        cursor=_cursor(place, [each.content.value for each in page.elements if each.content], more),
        onward=onward if more else "",
        more=more,
    )


def _cursor(place: Place, items: list[object], more: bool) -> str | None:
    """The page's last time, but never a young one, nor one before where this began."""
    settled = place.now - YOUNG_MS
    times = [found for item in items if (found := instant(at(item, ("timestamp",)))) is not None]
    newest = max(times, default=_begin(place)) if more else settled
    cursor = max(_begin(place), min(newest, settled))
    return None if cursor == instant(place.cursor) else written(cursor)


def _event(content: Content) -> SplitEvent | str:
    document = content.value
    event_id = key_text(at(document, ("id",)))
    occurred_at = instant(at(document, ("timestamp",)))
    if not isinstance(document, dict) or event_id is None or occurred_at is None:
        return "the event has no id, or no time"
    return SplitEvent(
        key=identity(event_id, occurred_at),
        digest=digest_of(document),
        raw_kind=plain_text(document.get("event"), 200) or "",
    )


FEED = Feed(ask=ask, read=read, limit_max=LIMIT_MAX, every_min_s=15)
