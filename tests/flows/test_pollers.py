"""When the list is asked: at once, in time, after trouble, not while the sender wants a pause."""

import asyncio
from dataclasses import replace

import pytest

from hookbox.flows import poll
from hookbox.flows.pollers import START_AFTER_S
from tests.flows.polled import PolledBox
from tests.servers import answering
from tests.upstream import event, page, telling


async def started(polled: PolledBox) -> None:
    await polled.pollers.adopt()
    polled.clock.advance(START_AFTER_S)
    await finished(polled, 1)


async def finished(polled: PolledBox, rounds: int) -> None:
    """So many rounds have been recorded, with no time passing."""
    await polled.until(lambda: len(polled.upstream.asked) >= rounds, advance_s=0)
    at = polled.clock.now()
    recorded = f"SELECT 1 FROM poll WHERE tried_at >= {at}"
    await polled.until(lambda: bool(polled.rows(recorded)), advance_s=0)
    for _ in range(10):  # the poller hears of it, and goes to rest
        await asyncio.to_thread(lambda: None)


async def later(polled: PolledBox, seconds: float) -> int:
    """How often the list was asked when so much time has passed."""
    for _ in range(100):
        polled.clock.advance(seconds / 100)
        await polled.writer.write(lambda _: None)
    return len(polled.upstream.asked)


async def test_list_is_asked_at_start_and_every_quarter_of_an_hour(polled: PolledBox) -> None:
    await started(polled)
    assert await later(polled, 899) == 1
    polled.clock.advance(92)  # a tenth of jitter
    await finished(polled, 2)
    polled.clock.advance(991)
    await finished(polled, 3)


async def test_whoever_asks_first_after_a_start_has_the_first_round(polled: PolledBox) -> None:
    """And the poller does not ask the same again by itself."""
    await polled.pollers.adopt()
    await polled.pollers.ask("agent")
    assert await later(polled, 60) == 1


async def test_wake_has_every_list_asked_now(polled: PolledBox) -> None:
    await started(polled)
    polled.pollers.wake_all()
    await polled.until(lambda: len(polled.upstream.asked) == 2, advance_s=0.1)


async def test_trouble_that_may_pass_is_tried_again_soon(polled: PolledBox) -> None:
    polled.upstream.script = [answering("500 Oops")]
    await started(polled)
    assert polled.rows("SELECT stopped, caught_up_at FROM poll") == [(0, None)]
    polled.clock.advance(17)
    await finished(polled, 2)
    assert polled.rows("SELECT trouble FROM poll") == [(None,)]


async def test_pause_that_the_sender_asks_for_is_kept(polled: PolledBox) -> None:
    """Whatever its webhooks say meanwhile."""
    polled.upstream.script = [telling("429 Too Many", "rate_limited", "Retry-After: 600")]
    await started(polled)
    polled.pollers.nudge("agent")
    assert await later(polled, 590) == 1
    polled.clock.advance(70)
    await finished(polled, 2)


async def test_stopped_source_waits_for_a_person(polled: PolledBox) -> None:
    polled.upstream.script = [answering("401 Unauthorized")]
    await started(polled)
    assert polled.rows("SELECT stopped FROM poll") == [(1,)]
    polled.pollers.nudge("agent")
    assert await later(polled, 7 * 86_400) == 1
    polled.upstream.add(event(1))
    assert (await polled.poll()).new == 1
    polled.clock.advance(991)
    await finished(polled, 3)


async def test_same_events_without_end_are_not_asked_for_at_once(
    polled: PolledBox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A list that gives its first page again and again, under a fresh cursor each time."""
    monkeypatch.setattr(poll, "PAGES_MAX", 1)
    polled.change(scoped=True)  # no number is missed, so nothing is asked for besides
    polled.upstream.script = [
        answering("200 OK", page(event(1), cursor=str(number), more=True)) for number in range(1, 9)
    ]
    await started(polled)
    # What the first round brought was news, so the next one follows at once.
    await polled.until(lambda: len(polled.upstream.asked) == 2, advance_s=0.01)
    assert await later(polled, 13) == 2
    await polled.until(lambda: len(polled.upstream.asked) == 3, advance_s=0.1)


async def test_source_that_is_no_longer_polled_is_left_alone(polled: PolledBox) -> None:
    await started(polled)
    polled.sources.replace({"agent": replace(polled.source, polling=None)})
    await polled.pollers.adopt()
    polled.pollers.wake_all()
    assert await later(polled, 2_000) == 1


async def test_mistake_of_ours_is_no_end(polled: PolledBox) -> None:
    """A poller that died would look like a quiet sender."""
    feed = polled.source.polling.feed  # type: ignore[union-attr]

    def ask(_: object) -> object:
        raise ZeroDivisionError

    polled.change(feed=replace(feed, ask=ask))
    await polled.pollers.adopt()
    await polled.writer.write(lambda _: None)
    polled.change(feed=feed)
    polled.upstream.add(event(1))
    await polled.until(lambda: polled.keys() == ["evt_1"], advance_s=100)
