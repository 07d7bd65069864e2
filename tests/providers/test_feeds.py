"""The lists of events that senders keep: every event is what its webhook is, and pages lead on."""

import json
from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

import pytest

from hookbox.errors import ConfigError, CursorExpired, CursorInvalid, FeedDenied, FeedError
from hookbox.model import StoredEvent, Via
from hookbox.providers import PROVIDERS
from hookbox.providers.contract import Provider
from hookbox.providers.feed import Feed, Page, Place, Refusal
from hookbox.rules.digest import Unreadable
from tests.providers.requests import delivery, events, proved, provider_of, stored
from tests.providers.samples import Sample, samples, shown

NOW = 1_773_480_413_000
POLLED = [name for name, each in PROVIDERS.items() if provider_of(name).feed is not None]


def feed_of(provider: Provider, **table: object) -> Feed:
    assert provider.feed is not None
    return provider.feed.configure(provider.feed, table)


def place(url: str = "https://api.example.com/list", **changes: object) -> Place:
    fixed = Place(url=url, token="the-key", limit=50, now=NOW)
    return replace(fixed, **changes)  # type: ignore[arg-type]


def asked(feed: Feed, where: Place) -> dict[str, str]:
    query = parse_qs(urlsplit(feed.ask(where).url).query)
    return {name: values[0] for name, values in query.items()}


def polled(provider: Provider, page: Page, body: bytes) -> StoredEvent:
    """The page's only event, as the store gives it back."""
    (event,) = page.events
    found = stored(provider, proved(delivery({}, body, received_at=NOW)), event)
    return replace(found, via=Via.POLL, signed_at=None)


# --- the same event, whichever way it came


def listed(sample: Sample) -> tuple[bytes, Mapping[str, object]]:
    """The sample as its sender's list shows it, and what the list is told of itself."""
    body = json.loads(sample.body)
    if sample.provider == "mailgun":
        return json.dumps({"items": [body["event-data"]], "paging": {}}).encode(), {}
    if sample.provider == "postmark":
        own = {name: value for name, value in body.items() if name not in ("RecordType", "Content")}
        return json.dumps(
            {"TotalCount": 1, "Bounces": [{**own, "DumpAvailable": True}]}
        ).encode(), {}
    if sample.provider == "efa":
        item = {**body, "project_sequence": 7, "occurred_at": "2026-03-14T09:26:00Z"}
        return json.dumps({"data": [item], "next_cursor": "7", "has_more": False}).encode(), {}
    key = str(sample.events[0]["key"])
    return json.dumps({"data": [{"key": key, "payload": body}]}).encode(), {
        "id": "/key",
        "event": "/payload",
    }


def told_twice() -> list[Sample]:
    """Samples whose event is in the list, too."""

    def is_listed(sample: Sample) -> bool:
        if sample.provider not in POLLED or sample.handshake is not None or not sample.events:
            return False
        if sample.provider == "postmark":
            return str(sample.events[0]["key"]).startswith(("Bounce:", "SpamComplaint:"))
        return sample.body.startswith(b"{") and (
            sample.provider != "mailgun" or b'"event-data"' in sample.body
        )

    return [sample for sample in samples() if is_listed(sample)]


@pytest.mark.parametrize("sample", told_twice(), ids=str)
def test_event_of_the_list_is_the_event_of_the_webhook(sample: Sample) -> None:
    """The same key, the same digest, and it says the same."""
    provider = provider_of(sample.provider, sample.options)
    received = proved(delivery(sample.headers, sample.body, received_at=sample.now))
    (hooked,) = events(provider.split(received))
    body, table = listed(sample)
    page = feed_of(provider, **table).read(place(), body)
    assert not page.rotten
    (event,) = page.events
    assert (event.key, event.digest, event.raw_kind) == (hooked.key, hooked.digest, hooked.raw_kind)
    ((first,), (second,)) = (
        provider.normalize(stored(provider, received, hooked)),
        provider.normalize(polled(provider, page, body)),
    )
    times = ("occurred_at", "time_source")
    heads = [{n: v for n, v in shown(each).items() if n not in times} for each in (first, second)]
    assert heads[0] == heads[1]


def test_samples_tell_of_every_kind_of_feed() -> None:
    told = {sample.provider for sample in told_twice()}
    assert {"efa", "mailgun", "postmark", "standardwebhooks", "svix", "courier"} <= told


@pytest.mark.parametrize("name", POLLED)
@pytest.mark.parametrize("body", [b"", b"[", b"{}", b"\xff", b"null", b'{"data":7}', b'{"items":'])
def test_page_that_is_none_is_unreadable(name: str, body: bytes) -> None:
    with pytest.raises(Unreadable):
        feed_of(provider_of(name)).read(place(), body)


@pytest.mark.parametrize("name", POLLED)
def test_key_is_in_a_header_and_never_in_the_address(name: str) -> None:
    ask = feed_of(provider_of(name)).ask(place(token="sEcReT"))
    assert "sEcReT" not in ask.url
    assert any("sEcReT" in value or "YXBpOnNFY1JlVA==" in value for value in ask.headers.values())


@pytest.mark.parametrize("name", POLLED)
@pytest.mark.parametrize(
    ("status", "kind"),
    [(410, CursorExpired), (400, CursorInvalid), (401, FeedDenied), (403, FeedDenied)],
)
def test_refusals_have_their_own_errors(name: str, status: int, kind: type[FeedError]) -> None:
    refusal = Refusal(status=status, headers={}, body=b'{"error":{"code":"why"}}')
    found = feed_of(provider_of(name)).refused(refusal, NOW)
    assert type(found) is kind
    assert "why" in str(found)


# --- Mailgun


MAILGUN = feed_of(provider_of("mailgun"))
HALF_AN_HOUR_MS = 1_800_000


def mailgun_page(*ages_s: float, onward: str = "https://api.example.com/next") -> bytes:
    items = [{"id": f"e{age}", "timestamp": NOW / 1000 - age, "event": "opened"} for age in ages_s]
    return json.dumps({"items": items, "paging": {"next": onward}}).encode()


def test_mailgun_is_asked_from_a_time_on_and_then_by_its_own_addresses() -> None:
    assert asked(MAILGUN, place(cursor="2026-03-01T00:00:00.000Z"))["begin"] == "1772323200.0"
    onward = place(onward="https://api.example.com/next")
    assert MAILGUN.ask(onward).url == "https://api.example.com/next"


def test_mailgun_page_that_holds_old_events_moves_the_cursor_to_their_last() -> None:
    page = MAILGUN.read(place(cursor="2026-03-01T00:00:00.000Z"), mailgun_page(9000, 7200))
    assert page.cursor == "2026-03-14T07:26:53.000Z"
    assert (page.more, page.onward) == (True, "https://api.example.com/next")


def test_mailgun_cursor_is_never_young() -> None:
    """What turns up late lies between events that were read already."""
    for ages in ((9000, 10), ()):
        page = MAILGUN.read(place(cursor="2026-03-01T00:00:00.000Z"), mailgun_page(*ages))
        assert page.cursor == "2026-03-14T08:56:53.000Z"
    assert not page.more


def test_mailgun_cursor_never_goes_back() -> None:
    young = "2026-03-14T09:20:00.000Z"
    assert MAILGUN.read(place(cursor=young), mailgun_page(9000)).cursor is None


# --- Postmark


POSTMARK = feed_of(provider_of("postmark"))


def bounces(*times: str, total: int) -> bytes:
    found = [{"ID": n, "Type": "HardBounce", "BouncedAt": at} for n, at in enumerate(times, 1)]
    return json.dumps({"TotalCount": total, "Bounces": found}).encode()


def test_postmark_pages_follow_by_their_offset_and_the_last_one_moves_the_cursor() -> None:
    first = POSTMARK.read(place(), bounces("2026-03-14T08:00:00Z", "2026-03-13T08:00:00Z", total=3))
    assert (first.more, first.cursor) == (True, None)
    second_place = place(onward=first.onward)
    assert asked(POSTMARK, second_place) == {"count": "50", "offset": "2"}
    second = POSTMARK.read(second_place, bounces("2026-03-12T08:00:00Z", total=3))
    assert (second.more, second.cursor) == (False, "2026-03-14T08:00:00.000Z")
    again = asked(POSTMARK, place(cursor=second.cursor))
    assert again == {"count": "50", "offset": "0", "fromdate": "2026-03-13"}


def test_postmark_shows_no_more_than_ten_thousand() -> None:
    page = POSTMARK.read(place(onward="9990@0"), bounces("2026-03-14T08:00:00Z", total=12_000))
    assert "shows 10000 of them" in page.fault


# --- declared


def test_declared_list_is_asked_and_followed_as_described() -> None:
    feed = feed_of(
        provider_of("standardwebhooks"),
        items="/result/list",
        id="/uid",
        cursor="item:/uid",
        cursor_parameter="starting_after",
        limit_parameter="",
        more="",
        header="X-Api-Key",
        scheme="",
    )
    ask = feed.ask(place(url="https://api.example.com/e?type=mail", cursor="a b"))
    assert ask.url == "https://api.example.com/e?type=mail&starting_after=a+b"
    assert ask.headers == {"X-Api-Key": "the-key"}
    body = json.dumps({"result": {"list": [{"uid": "e1", "type": "x.sent"}, {"uid": "e2"}]}})
    page = feed.read(place(), body.encode())
    assert [event.key for event in page.events] == ["e1", "e2"]
    assert (page.cursor, page.more) == ("e2", True)
    empty = feed.read(place(cursor="e2"), b'{"result":{"list":[]}}')
    assert (empty.cursor, empty.more) == (None, False)


def test_declared_list_without_settings_is_the_common_one() -> None:
    feed = feed_of(provider_of("svix"))
    assert asked(feed, place(cursor="c1")) == {"cursor": "c1", "limit": "50"}
    body = json.dumps({"data": [{"id": "m1"}], "next_cursor": "c2", "has_more": True}).encode()
    page = feed.read(place(cursor="c1"), body)
    assert ([event.key for event in page.events], page.cursor, page.more) == (["m1"], "c2", True)


@pytest.mark.parametrize("cursor", ["null", '"\\ud800"', '""', "{}", "[1]"])
def test_declared_list_that_promises_more_and_no_way_there_is_at_fault(cursor: str) -> None:
    """Taken for its end, it would lose everything behind it without a word."""
    body = f'{{"data": [{{"id": "m1"}}], "next_cursor": {cursor}, "has_more": true}}'.encode()
    page = feed_of(provider_of("svix")).read(place(cursor="c1"), body)
    assert ([event.key for event in page.events], page.cursor) == (["m1"], None)
    assert "no cursor" in page.fault
    unworded = feed_of(provider_of("svix"), more="").read(place(cursor="c1"), body)
    assert (unworded.more, unworded.fault) == (False, "")


def test_event_inside_an_item_keeps_its_own_bytes() -> None:
    provider = provider_of("standardwebhooks")
    inner = '{"type":"email.bounced", "data":{"email":"zoë@example.com","score":1.50}}'
    body = f'{{"data":[{{"id":"ü","x":1}},{{"id":"m2","event":{inner}}}]}}'.encode()
    page = feed_of(provider, event="/event").read(place(), body)
    assert [event.content for event in page.events] == [inner.encode()]
    assert len(page.rotten) == 1
    hooked = events(provider.split(proved(delivery({"webhook-id": "m2"}, inner.encode()))))[0]
    assert page.events[0].digest == hooked.digest


@pytest.mark.parametrize(
    ("table", "where"),
    [
        ({"itmes": "/data"}, "itmes"),
        ({"items": "data"}, "items"),
        ({"items": 7}, "items"),
        ({"cursor": "item:id"}, "cursor"),
        ({"header": "X Key"}, "header"),
        ({"scheme": "a\nb"}, "scheme"),
        ({"cursor_parameter": "a&b"}, "cursor_parameter"),
        ({"cursor_parameter": ""}, "cursor_parameter"),
    ],
)
def test_declared_list_that_cannot_be_meant_is_refused(
    table: dict[str, object], where: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        feed_of(provider_of("standardwebhooks"), **table)
    assert refused.value.where == where
