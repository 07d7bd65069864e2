"""Jumps in a gapless sequence are on record until what is missing comes."""

import logging

import pytest

from hookbox.flows.polling import End
from hookbox.store import gaps
from tests.flows.polled import PolledBox
from tests.servers import answering
from tests.upstream import event, page, telling


async def test_jump_opens_a_gap_and_the_late_event_closes_it(polled: PolledBox) -> None:
    """A transaction of the sender that committed late must not be skipped for good."""
    polled.upstream.add(event(1), event(2), event(5))
    await polled.poll()
    assert (polled.gaps(), polled.cursor) == ([(3, 4, "sequence_jump")], "5")
    polled.upstream.add(event(4))
    await polled.poll()
    assert polled.gaps() == [(3, 3, "sequence_jump")]
    polled.upstream.add(event(3))
    await polled.poll()
    assert polled.gaps() == []
    assert polled.keys() == ["evt_1", "evt_2", "evt_5", "evt_4", "evt_3"]
    assert polled.cursor == "5"


async def test_jump_between_two_pages_is_seen(polled: PolledBox) -> None:
    polled.upstream.add(event(1), event(4))
    polled.change(limit=1)
    await polled.poll()
    assert polled.gaps() == [(2, 3, "sequence_jump")]


async def test_cursor_ahead_of_the_last_event_is_a_jump(polled: PolledBox) -> None:
    polled.upstream.script = [answering("200 OK", page(event(1), cursor="3"))]
    await polled.poll()
    assert polled.gaps() == [(2, 3, "sequence_jump")]


async def test_cursor_ahead_on_an_empty_page_is_a_jump(polled: PolledBox) -> None:
    """A list that says "nothing, go on at 9" has left out what came before."""
    polled.upstream.add(event(1))
    await polled.poll()
    polled.upstream.script = [answering("200 OK", page(cursor="9"))]
    await polled.poll()
    assert (polled.cursor, polled.gaps()) == ("9", [(2, 9, "sequence_jump")])


async def test_list_may_begin_anywhere(polled: PolledBox) -> None:
    polled.upstream.add(event(1_000_000))
    await polled.poll()
    assert polled.gaps() == []


async def test_scoped_key_sees_jumps_that_mean_nothing(polled: PolledBox) -> None:
    polled.upstream.add(event(1), event(7))
    polled.change(scoped=True)
    await polled.poll()
    assert polled.gaps() == []


async def test_event_that_cannot_be_read_is_not_missing(polled: PolledBox) -> None:
    polled.upstream.add(event(1), {**event(2), "id": None}, event(3))
    await polled.poll()
    assert polled.gaps() == []


async def test_gap_that_cannot_be_asked_for_stops_nobody(polled: PolledBox) -> None:
    polled.upstream.add(event(1), event(3))
    await polled.poll()
    for answer in (telling("410 Gone", "cursor_expired"), telling("400 No", "invalid_cursor")):
        polled.upstream.script = [answer]
        assert (await polled.poll()).end is End.CAUGHT_UP
    assert polled.gaps() == [(2, 2, "sequence_jump")]
    assert polled.cursor == "3"


async def test_gap_that_stays_is_said_once_and_asked_for_no_more(
    polled: PolledBox, caplog: pytest.LogCaptureFixture
) -> None:
    polled.upstream.add(event(1), event(3))
    await polled.poll()
    with caplog.at_level(logging.ERROR):
        for _ in range(3):
            polled.clock.advance(3600)
            await polled.poll()
    assert caplog.text.count("events stay missing") == 1
    polled.clock.advance(24 * 3600)
    polled.upstream.asked.clear()
    await polled.poll()
    assert polled.upstream.asked == ["3"]


async def test_number_of_open_gaps_is_bounded(polled: PolledBox) -> None:
    """A key that sees a part of the project and is not declared so misses every other event."""
    polled.upstream.add(*(event(number) for number in range(1, 2 * gaps.OPEN_MAX + 100, 2)))
    await polled.poll()
    assert polled.rows("SELECT count(*) FROM gaps") == [(gaps.OPEN_MAX,)]


async def test_person_closes_what_they_looked_into(polled: PolledBox) -> None:
    polled.upstream.add(event(1), event(3), event(5))
    await polled.poll()
    assert await polled.pollers.close_gaps("agent") == 2
    assert polled.gaps() == []
    assert await polled.pollers.close_gaps("agent") == 0
