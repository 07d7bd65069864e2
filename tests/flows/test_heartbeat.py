"""Outages are known exactly, and each source is told what they may have cost."""

import asyncio
import logging

import pytest

from hookbox.flows.heartbeat import Heartbeat
from hookbox.flows.outages import Verdict, verdicts
from hookbox.rules.losses import Loss
from hookbox.store import heartbeat
from tests.flows.conftest import Box
from tests.flows.polled import PolledBox
from tests.upstream import event

HOUR_S = 3_600


def outages(box: Box | PolledBox) -> list[tuple[object, ...]]:
    return box.rows("SELECT from_at, to_at FROM outage")


async def judged(box: Box | PolledBox) -> Verdict:
    [found] = await box.writer.write(lambda t: verdicts(t, box.clock.now()))
    return found


async def test_silence_between_stop_and_start_is_an_outage(box: Box) -> None:
    beating = Heartbeat(box.writer, box.clock)
    await beating.start()
    box.clock.advance(7)
    await beating.stop()
    stopped_at = box.clock.now()
    box.clock.advance(4 * HOUR_S)
    await Heartbeat(box.writer, box.clock).start()
    assert outages(box) == [(stopped_at, box.clock.now())]


async def test_outage_of_a_process_that_died_begins_with_what_it_stored_last(box: Box) -> None:
    """It had no time for a last beat."""
    beating = Heartbeat(box.writer, box.clock)
    await beating.start()
    box.clock.advance(9)
    await box.receiver.receive(box.source, box.delivery("evt_1", {"type": "email.sent"}))
    died_at = box.clock.now()
    box.clock.advance(60)
    await Heartbeat(box.writer, box.clock).start()
    assert outages(box) == [(died_at, box.clock.now())]


async def test_quick_restart_and_a_first_start_are_no_outages(box: Box) -> None:
    for _ in range(2):
        await Heartbeat(box.writer, box.clock).start()
        box.clock.advance(0.9)
    assert outages(box) == []


async def test_clock_that_was_set_back_is_no_outage(box: Box) -> None:
    await Heartbeat(box.writer, box.clock).start()
    box.clock.step(-HOUR_S)
    await Heartbeat(box.writer, box.clock).start()
    assert outages(box) == []


async def test_machine_that_slept_is_noticed_without_a_restart(box: Box) -> None:
    beating = Heartbeat(box.writer, box.clock)
    await beating.start()
    running = asyncio.create_task(beating.run())
    fell_asleep_at = box.clock.now()
    await asyncio.sleep(0)
    box.clock.advance(HOUR_S)
    while not outages(box):
        await box.writer.write(lambda _: None)
    assert outages(box) == [(fell_asleep_at, box.clock.now())]
    running.cancel()


async def test_regular_beats_are_no_outage(box: Box) -> None:
    beating = Heartbeat(box.writer, box.clock)
    await beating.start()
    running = asyncio.create_task(beating.run())
    for _ in range(20):
        await asyncio.sleep(0)
        box.clock.advance(60)
        await box.writer.write(lambda _: None)
    assert outages(box) == []
    running.cancel()


async def test_short_outage_is_made_good_by_retries(box: Box) -> None:
    await Heartbeat(box.writer, box.clock).start()
    box.clock.advance(HOUR_S)
    await Heartbeat(box.writer, box.clock).start()
    assert (await judged(box)).loss is Loss.SAFE


async def test_long_outage_is_told_with_what_to_do(
    box: Box, caplog: pytest.LogCaptureFixture
) -> None:
    await Heartbeat(box.writer, box.clock).start()
    box.clock.advance(100 * HOUR_S)
    with caplog.at_level(logging.WARNING):
        await Heartbeat(box.writer, box.clock).start()
    found = await judged(box)
    assert (found.loss, found.step) == (Loss.LOST, "look at the sender what came in that time")
    assert found.outage is not None
    assert found.outage.length_s == 100 * HOUR_S
    assert "source=std verdict=lost" in caplog.text
    box.clock.advance(8 * 24 * HOUR_S)
    assert (await judged(box)).loss is Loss.SAFE


async def test_source_that_was_added_later_lost_nothing(box: Box) -> None:
    await Heartbeat(box.writer, box.clock).start()
    box.clock.advance(100 * HOUR_S)
    await box.writer.write(lambda t: t.execute("UPDATE source SET since = NULL"))
    await Heartbeat(box.writer, box.clock).start()
    assert (await judged(box)).loss is Loss.SAFE


async def test_list_that_was_read_since_makes_an_outage_good(polled: PolledBox) -> None:
    polled.upstream.add(event(1))
    await polled.poll()
    await Heartbeat(polled.writer, polled.clock).start()
    polled.clock.advance(30 * HOUR_S)
    await Heartbeat(polled.writer, polled.clock).start()
    found = await judged(polled)
    assert (found.loss, found.step) == (Loss.AT_RISK, "hookbox poll agent")
    polled.clock.advance(1)
    await polled.poll()
    found = await judged(polled)
    assert (found.loss, found.step) == (Loss.RECOVERED, "")


async def test_outages_are_forgotten_in_time(box: Box) -> None:
    for _ in range(3):
        await Heartbeat(box.writer, box.clock).start()
        box.clock.advance(heartbeat.KEPT_MS / 1000 + 1)
    await Heartbeat(box.writer, box.clock).start()
    assert len(outages(box)) == 1
