"""Sources that their cursor drives: webhooks wake the poller, and the list alone makes events."""

from dataclasses import replace

import pytest

from hookbox.flows.polling import End
from hookbox.flows.receive import Outcome
from hookbox.model import Drive, Via
from tests.flows.polled import PolledBox
from tests.servers import answering
from tests.upstream import event


async def waiting(polled: PolledBox) -> list[object]:
    return [key for (key,) in polled.rows("SELECT key FROM early ORDER BY id")]


async def test_events_are_admitted_in_the_order_of_their_sequence(polled: PolledBox) -> None:
    polled.change(drive=Drive.CURSOR)
    listed = [event(number) for number in range(1, 6)]
    for each in reversed(listed):
        assert (await polled.receive(each)).outcome is Outcome.ACCEPTED
    assert polled.keys() == []
    assert len(await waiting(polled)) == 5
    polled.upstream.add(*listed)
    done = await polled.poll()
    assert (done.new, polled.keys()) == (5, [f"evt_{number}" for number in range(1, 6)])
    assert await waiting(polled) == []
    assert polled.rows("SELECT sum(duplicates) FROM events") == [(5,)]
    assert polled.rows("SELECT count(*) FROM quarantine") == [(0,)]


async def test_repeat_of_a_webhook_that_waits_is_a_repeat(polled: PolledBox) -> None:
    polled.change(drive=Drive.CURSOR)
    await polled.receive(event(1))
    assert (await polled.receive(event(1))).outcome is Outcome.DUPLICATE
    assert await waiting(polled) == ["evt_1"]


async def test_webhook_behind_its_event_is_a_repeat_at_once(polled: PolledBox) -> None:
    polled.change(drive=Drive.CURSOR)
    polled.upstream.add(event(1))
    await polled.poll()
    assert (await polled.receive(event(1))).outcome is Outcome.DUPLICATE
    assert await waiting(polled) == []


async def test_webhook_that_contradicts_the_list_is_put_aside(polled: PolledBox) -> None:
    polled.change(drive=Drive.CURSOR)
    await polled.receive(event(1, status="bounced"))
    polled.upstream.add(event(1, status="delivered"))
    await polled.poll()
    assert polled.rows("SELECT reason FROM quarantine") == [("payload_digest_conflict",)]
    assert (await polled.receive(event(1, status="failed"))).outcome is Outcome.QUARANTINED


async def test_nothing_is_lost_while_the_list_cannot_be_read(polled: PolledBox) -> None:
    """What was acknowledged waits on disk, for as long as it takes."""
    polled.change(drive=Drive.CURSOR)
    await polled.receive(event(2))
    await polled.receive(event(1))
    polled.upstream.script = [answering("401 Unauthorized")]
    assert (await polled.poll()).end is End.STOPPED
    polled.clock.advance(3 * 24 * 3600)
    polled.upstream.script = [answering("500 Oops")]
    assert (await polled.poll()).end is End.FAILED
    assert (polled.keys(), len(await waiting(polled))) == ([], 2)
    polled.upstream.add(event(1), event(2))
    await polled.poll()
    assert polled.keys() == ["evt_1", "evt_2"]


async def test_webhook_that_the_list_never_brings_is_admitted_in_the_end(
    polled: PolledBox,
) -> None:
    """The list was read to its end, and long enough after it; it may have expired there."""
    polled.change(drive=Drive.CURSOR)
    await polled.receive(event(9))
    await polled.poll()
    assert (polled.keys(), await waiting(polled)) == ([], ["evt_9"])
    polled.clock.advance(301)
    await polled.poll()
    assert (polled.keys(), await waiting(polled)) == (["evt_9"], [])
    assert polled.rows("SELECT via, verified_by FROM events") == [("webhook", "current")]


@pytest.mark.parametrize("polling", ["webhook", None])
async def test_source_that_is_driven_so_no_longer_lets_go_of_what_waits(
    polled: PolledBox, polling: str | None
) -> None:
    polled.change(drive=Drive.CURSOR)
    await polled.receive(event(1))
    if polling is None:
        polled.sources.replace({"agent": replace(polled.source, polling=None)})
    else:
        polled.change(drive=Drive(polling))
    await polled.pollers.adopt()
    assert (polled.keys(), await waiting(polled)) == (["evt_1"], [])


async def test_what_the_box_sent_itself_waits_for_no_list(polled: PolledBox) -> None:
    polled.change(drive=Drive.CURSOR)
    assert (await polled.receive(event(1), via=Via.SIMULATE)).outcome is Outcome.ACCEPTED
    assert polled.keys() == ["evt_1"]


async def test_webhook_has_the_list_asked_at_once(polled: PolledBox) -> None:
    polled.change(drive=Drive.CURSOR)
    await polled.pollers.adopt()
    await polled.until(lambda: polled.upstream.asked == [None], advance_s=0.1)
    await polled.until(lambda: bool(polled.rows("SELECT 1 FROM poll")), advance_s=0)
    polled.upstream.add(event(1))
    await polled.receive(event(1))
    await polled.until(lambda: polled.keys() == ["evt_1"], advance_s=0.1)
