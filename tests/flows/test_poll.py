"""One round through the list: nothing is missed, nothing counts twice, and the cursor follows."""

import asyncio
import json
from dataclasses import replace

import pytest

from hookbox.errors import OperatorError
from hookbox.flows import fetch
from hookbox.flows.fetch import PAGE_MAX_BYTES
from hookbox.flows.polling import End
from hookbox.flows.receive import Outcome
from hookbox.flows.release import release
from hookbox.model import SplitEvent
from hookbox.providers import PROVIDERS
from hookbox.providers.feed import Page, Place
from tests.flows.polled import PolledBox
from tests.servers import answering
from tests.upstream import TOKEN, as_webhook, event, page, telling

efa_feed = PROVIDERS["efa"].feed


async def test_list_is_read_to_its_end_page_by_page(polled: PolledBox) -> None:
    polled.upstream.add(*(event(number) for number in range(1, 251)))
    done = await polled.poll()
    assert (done.end, done.pages, done.new, done.cursor) == (End.CAUGHT_UP, 3, 250, "250")
    assert polled.keys() == [f"evt_{number}" for number in range(1, 251)]
    assert polled.cursor == "250"
    assert polled.upstream.asked == [None, "100", "200"]
    assert polled.rows("SELECT DISTINCT via, verified_by FROM events") == [("poll", "none")]
    assert polled.rows("SELECT count(*) FROM outbox WHERE target = 'apply'") == [(250,)]
    assert len(polled.woken) == 3


async def test_next_round_asks_from_the_saved_cursor_and_stores_nothing(polled: PolledBox) -> None:
    polled.upstream.add(event(1))
    await polled.poll()
    done = await polled.poll()
    assert (done.end, done.new, done.duplicate) == (End.CAUGHT_UP, 0, 0)
    assert polled.upstream.asked == [None, "1"]


async def test_key_is_sent_to_the_list(polled: PolledBox) -> None:
    await polled.poll()
    assert f"authorization: bearer {TOKEN}".encode() in polled.upstream.heads[0].lower()


@pytest.mark.parametrize("first", ["webhook", "poll"])
async def test_both_ways_bring_one_event(polled: PolledBox, first: str) -> None:
    """Whichever is faster, the other is a repeat, and never a contradiction."""
    listed = [event(number) for number in range(1, 31)]
    polled.upstream.add(*listed)
    ways = [polled.poll, *(lambda each=each: polled.receive(each) for each in listed)]
    for way in ways if first == "poll" else ways[::-1]:
        await way()
    assert len(polled.keys()) == 30
    assert polled.rows("SELECT sum(duplicates) FROM events") == [(30,)]
    assert polled.rows("SELECT count(*) FROM quarantine") == [(0,)]
    via = {"poll": "poll", "webhook": "webhook"}[first]
    assert polled.rows("SELECT DISTINCT via FROM events") == [(via,)]


async def test_both_ways_at_once_bring_one_event(polled: PolledBox) -> None:
    listed = [event(number) for number in range(1, 101)]
    polled.upstream.add(*listed)
    await asyncio.gather(polled.poll(), *(polled.receive(each) for each in listed))
    assert len(polled.keys()) == 100
    assert polled.rows("SELECT sum(duplicates) FROM events") == [(100,)]
    assert polled.rows("SELECT count(*) FROM quarantine") == [(0,)]


async def test_same_id_with_other_content_is_put_aside(polled: PolledBox) -> None:
    await polled.receive(event(1, status="bounced"))
    polled.upstream.add(event(1, status="delivered"))
    done = await polled.poll()
    assert (done.conflicting, polled.cursor) == (1, "1")
    assert polled.rows("SELECT reason FROM quarantine") == [("payload_digest_conflict",)]


async def test_polled_event_has_the_time_that_the_list_gives(polled: PolledBox) -> None:
    polled.upstream.add(event(1))
    await polled.poll()
    await polled.apply()
    assert polled.rows("SELECT kind, recipient, occurred_at FROM events") == [
        ("delivered", "r1@example.com", "2023-11-14T22:00:00.000Z")
    ]


async def test_expired_cursor_is_never_used_again(polled: PolledBox) -> None:
    """The list begins lower now; what is known stays known, and what is missing is on record."""
    polled.upstream.add(event(1487))
    await polled.poll()
    polled.upstream.events.clear()
    polled.upstream.script = [telling("410 Gone", "cursor_expired")]
    polled.upstream.add(event(3), event(4, key="evt_1487", message_id="msg_1487",
                                        recipient="r1487@example.com"))  # fmt: skip
    polled.upstream.asked.clear()
    done = await polled.poll()
    assert (done.end, done.new, done.duplicate, polled.cursor) == (End.CAUGHT_UP, 1, 1, "4")
    assert polled.upstream.asked == ["1487", None]
    assert polled.gaps() == [(1488, None, "cursor_expired")]
    await polled.poll()
    assert polled.upstream.asked == ["1487", None, "4"]


async def test_dead_cursor_is_gone_even_when_the_new_beginning_cannot_be_read(
    polled: PolledBox,
) -> None:
    polled.upstream.add(event(1487))
    await polled.poll()
    gone, broken = telling("410 Gone", "cursor_expired"), answering("500 Oops")
    polled.upstream.script = [gone, broken]
    assert (await polled.poll()).end is End.FAILED
    assert polled.cursor is None
    polled.upstream.asked.clear()
    await polled.poll()
    assert polled.upstream.asked == [None]


async def test_list_that_expires_at_its_beginning_stops_its_source(polled: PolledBox) -> None:
    polled.upstream.script = [telling("410 Gone", "cursor_expired")] * 2
    assert (await polled.poll()).end is End.STOPPED
    assert len(polled.upstream.asked) == 1


ANSWERS = {
    "invalid cursor": (telling("400 Bad Request", "invalid_cursor"), End.STOPPED),
    "key refused": (telling("401 Unauthorized", "unauthenticated"), End.STOPPED),
    "not allowed": (telling("403 Forbidden", "permission_denied"), End.STOPPED),
    "pause": (telling("429 Too Many Requests", "rate_limited", "Retry-After: 7"), End.THROTTLED),
    "broken": (answering("500 Internal Server Error"), End.FAILED),
    "pause for all": (answering("503 Busy", b"", "Retry-After: 9"), End.THROTTLED),
    "gateway": (answering("502 Bad Gateway", b"<html>"), End.FAILED),
    "redirect": (answering("302 Found", b"", "Location: http://127.0.0.1:1/"), End.FAILED),
    "not found": (answering("404 Not Found"), End.FAILED),
    "truncated": (answering("200 OK", page(event(2))[:-30]), End.FAILED),
    "cut off": (answering("200 OK\r\nContent-Length: 9999", page(event(2))), End.FAILED),
    "no list": (answering("200 OK", b'{"data":{}}'), End.FAILED),
    "no JSON": (answering("200 OK", b"\xff\xfe"), End.FAILED),
    "packed": (answering("200 OK", b"\x1f\x8b", "Content-Encoding: gzip"), End.FAILED),
    "cursor is no number": (answering("200 OK", page(cursor="x")), End.STUCK),
    "cursor goes back": (answering("200 OK", page(cursor="0")), End.STUCK),
    "empty for ever": (answering("200 OK", page(cursor="1", more=True)), End.STUCK),
    "the same for ever": (answering("200 OK", page(event(1), cursor="1", more=True)), End.STUCK),
}


@pytest.mark.parametrize(("answer", "end"), ANSWERS.values(), ids=ANSWERS.keys())
async def test_answer_that_leads_nowhere_leaves_the_cursor(
    polled: PolledBox, answer: object, end: End
) -> None:
    """And when the list is well again, not one event was skipped."""
    polled.upstream.add(event(1))
    await polled.poll()
    polled.upstream.asked.clear()
    polled.upstream.script = [answer] * 10  # type: ignore[list-item]
    done = await polled.poll()
    assert (done.end, polled.cursor) == (end, "1")
    assert done.told
    assert len(polled.upstream.asked) <= 3
    polled.upstream.script.clear()
    polled.upstream.add(event(2), event(3))
    assert (await polled.poll()).new == 2
    assert polled.keys() == ["evt_1", "evt_2", "evt_3"]


async def test_pause_that_the_sender_asks_for_is_told(polled: PolledBox) -> None:
    polled.upstream.script = [telling("429 Too Many Requests", "x", "Retry-After: 7")]
    assert (await polled.poll()).retry_after_s == 7.0


async def test_known_events_under_a_fresh_cursor_are_progress(polled: PolledBox) -> None:
    known = event(1)
    polled.upstream.script = [
        answering("200 OK", page(known, cursor=str(number), more=number < 6))
        for number in range(1, 7)
    ]
    done = await polled.poll()
    assert (done.end, done.pages, done.new, done.duplicate) == (End.CAUGHT_UP, 6, 1, 5)
    assert polled.cursor == "6"


async def test_endless_list_is_left_after_some_pages_and_gone_on_with(polled: PolledBox) -> None:
    polled.upstream.add(*(event(number) for number in range(1, 151)))
    polled.change(limit=1)
    done = await polled.poll()
    assert (done.end, done.new, polled.cursor) == (End.MORE, 100, "100")
    assert (await polled.poll()).end is End.CAUGHT_UP
    assert len(polled.keys()) == 150


async def test_list_of_empty_pages_without_end_is_left(polled: PolledBox) -> None:
    """Each under a fresh cursor, so that none of them is a place seen before."""
    polled.upstream.script = [
        answering("200 OK", page(cursor=str(number), more=True)) for number in range(1, 201)
    ]
    done = await polled.poll()
    assert (done.end, done.pages) == (End.STUCK, 100)
    assert "not one event" in done.told
    assert polled.cursor == "100"


async def test_too_large_page_is_asked_for_in_smaller_ones(polled: PolledBox) -> None:
    filling = "x" * (PAGE_MAX_BYTES // 5)
    polled.upstream.add(*(event(number, note=filling) for number in range(1, 9)))
    polled.change(limit=8)
    assert (await polled.poll()).new == 8
    assert polled.cursor == "8"


async def test_event_that_is_too_large_alone_is_said(polled: PolledBox) -> None:
    polled.upstream.add(event(1, note="x" * PAGE_MAX_BYTES))
    polled.change(limit=2)
    done = await polled.poll()
    assert done.end is End.FAILED
    assert "one event alone is too large" in done.told


async def test_list_that_does_not_answer_is_left(
    polled: PolledBox, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hang(_: bytes, __: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(fetch, "PAGE_S", 0.2)
    polled.upstream.script = [hang]
    done = await polled.poll()
    assert done.end is End.FAILED
    assert "no answer within 0.2 s" in done.told


async def test_answer_without_end_is_left(
    polled: PolledBox, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def pour(_: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(b"x" * 10_000)
            await writer.drain()

    monkeypatch.setattr(fetch, "PAGE_MAX_BYTES", 100_000)
    polled.upstream.script = [pour] * 20
    done = await polled.poll()
    assert done.end is End.FAILED
    assert len(polled.upstream.asked) == 7  # 100, 50, 25, 12, 6, 3 and 1 events


SPOILT = {
    "lone surrogate": json.dumps(event(2, recipient="b\ud83d@example.com")),
    "no id": json.dumps({**event(2), "id": None}),
    "no object": "7",
    "two of a name": json.dumps(event(2)).replace('"type"', '"id": "other", "type"'),
    "NaN": json.dumps(event(2, note=float("nan"))),
    "huge integer": json.dumps(event(2)).replace('"delivered"', "9" * 5000),
}


@pytest.mark.parametrize("spoilt", SPOILT.values(), ids=SPOILT.keys())
async def test_one_spoilt_event_is_put_aside_alone(polled: PolledBox, spoilt: str) -> None:
    good = json.dumps(event(1)), json.dumps(event(3))
    body = f'{{"data": [{good[0]}, {spoilt}, {good[1]}], "next_cursor": "3", "has_more": false}}'
    polled.upstream.script = [answering("200 OK", body.encode())]
    done = await polled.poll()
    assert (done.new, done.quarantined, polled.cursor) == (2, 1, "3")
    assert polled.keys() == ["evt_1", "evt_3"]
    ((content,),) = polled.rows("SELECT content FROM quarantine")
    assert content == spoilt


async def test_spoilt_event_is_let_through_alone_once_it_can_be_read(polled: PolledBox) -> None:
    """A page is read again as a page, and what is known of it stays as it is."""
    polled.upstream.add(event(1), event(2, recipient="b\ud83d@example.com"), event(3))
    await polled.poll()
    now, provider = polled.clock.now(), polled.source.provider
    with pytest.raises(OperatorError, match="half a character"):
        await polled.writer.write(lambda t: release(t, 1, lambda _: provider, now))
    feed = provider.feed
    assert feed is not None
    mended = replace(provider, feed=replace(feed, read=read_everything))
    told = await polled.writer.write(lambda t: release(t, 1, lambda _: mended, now))
    assert told == "read again: 1 new event"
    assert polled.keys() == ["evt_1", "evt_3", "evt_2"]


def read_everything(place: Place, body: bytes) -> Page:
    """As the feed might read in a later version."""
    mended = body.replace(b"\\ud83d", b"\\u00e9")
    assert len(mended) == len(body)
    assert efa_feed is not None
    return efa_feed.read(place, mended)


async def test_event_that_the_store_refuses_is_put_aside_alone(polled: PolledBox) -> None:
    """A mistake of ours in one event costs neither its neighbours nor the cursor."""
    polled.upstream.add(event(1), event(2), event(3))
    feed = polled.source.polling.feed  # type: ignore[union-attr]

    def read(place: object, body: bytes) -> Page:
        found = feed.read(place, body)  # type: ignore[arg-type]
        first, second, third = found.events
        spoilt = SplitEvent(key=second.key, digest=b"short", start=second.start, end=second.end)
        return replace(found, events=(first, spoilt, third))

    polled.change(feed=replace(feed, read=read))
    done = await polled.poll()
    assert (done.new, done.quarantined, polled.cursor) == (2, 1, "3")
    assert polled.rows("SELECT reason FROM quarantine") == [("unstorable",)]


async def test_page_that_cannot_be_stored_leaves_the_cursor(polled: PolledBox) -> None:
    """A full disk costs a round and no event."""
    await polled.poll()
    polled.upstream.add(*(event(number, note="x" * 9_000) for number in range(1, 101)))
    pages = await polled.writer.write(lambda t: t.execute("PRAGMA page_count").fetchone()[0])
    await limit_pages(polled, pages)
    assert (await polled.poll()).end is End.FAILED
    assert (polled.cursor, polled.keys()) == (None, [])
    await limit_pages(polled, 1_000_000)
    assert (await polled.poll()).new == 100


async def limit_pages(polled: PolledBox, pages: int) -> None:
    """Pretend that the disk ends there."""
    await polled.writer.write(
        lambda t: t.execute(f"PRAGMA max_page_count = {pages}").fetchone() and None
    )


async def test_other_address_is_another_list(polled: PolledBox) -> None:
    """A cursor of one project must not skip the events of another."""
    polled.upstream.add(event(1), event(2))
    await polled.poll()
    assert polled.source.polling is not None
    polled.change(url=f"{polled.source.polling.url}?inbox=7")
    await polled.poll()
    assert polled.upstream.asked == [None, None]


async def test_person_begins_elsewhere(polled: PolledBox) -> None:
    """Back is only reading again; ahead is on record."""
    polled.upstream.add(*(event(number) for number in range(1, 11)))
    await polled.poll()
    assert (await polled.poll("3")).duplicate == 7
    polled.upstream.add(event(21))
    assert (await polled.poll("20")).new == 1
    assert polled.gaps() == [(11, 20, "skipped_by_hand")]
    assert (await polled.poll("start")).duplicate == 11


@pytest.mark.parametrize("begin", ["x", "-1", "", "1\n", "٣", "9" * 30, "9" * 5000])
async def test_what_is_no_cursor_is_refused(polled: PolledBox, begin: str) -> None:
    with pytest.raises(OperatorError, match="no cursor"):
        await polled.poll(begin)


async def test_four_hours_of_silence_are_made_good(polled: PolledBox) -> None:
    """The sender gave some webhooks up meanwhile; afterwards everything is there once."""
    listed = [event(number) for number in range(1, 101)]
    polled.upstream.add(*listed[:40])
    for each in listed[:40]:
        assert (await polled.receive(each)).outcome is Outcome.ACCEPTED
    await polled.poll()
    polled.clock.advance(4 * 3600)  # nobody took what came meanwhile
    polled.upstream.add(*listed[40:])
    for each in listed[90:]:  # these are still tried
        await polled.receive(each)
    done = await polled.poll()
    assert (done.new, done.duplicate) == (50, 10)
    assert sorted(map(str, polled.keys())) == sorted(str(each["id"]) for each in listed)
    assert polled.rows("SELECT count(*) FROM quarantine") == [(0,)]
    assert polled.gaps() == []
    assert as_webhook(listed[0])["id"] == "evt_1"
