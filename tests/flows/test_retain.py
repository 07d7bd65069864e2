"""Retention runs by itself, gives way, and goes on where a stop cut it short."""

import asyncio

import pytest

from hookbox.flows import retain
from hookbox.flows.retain import Ages, Retention
from tests.flows.conftest import Box

DAY_S = 86_400
AGES = Ages(bodies_s=30 * DAY_S, keys_s=90 * DAY_S)


def retention(box: Box, *, trusted: bool = True) -> Retention:
    made = Retention(box.writer, box.clock, asyncio.Lock(), lambda: trusted)
    made.ages = AGES
    return made


async def receive(box: Box, *keys: str) -> None:
    for key in keys:
        await box.receiver.receive(box.source, box.delivery(key, {"type": "email.opened"}))
    done = "UPDATE job SET state = 'completed', finished_at = 0"
    await box.writer.write(lambda t: t.execute(done))


def contents(box: Box) -> int:
    [(count,)] = box.rows("SELECT count(*) FROM events WHERE content IS NOT NULL")
    return int(str(count))


async def passed(box: Box, seconds: float) -> None:
    """Let so much time pass for whoever sleeps, and what they then do."""
    await _turns(box)
    box.clock.advance(seconds)
    await _turns(box)


async def _turns(box: Box) -> None:
    for _ in range(50):
        await box.writer.write(lambda _: None)  # behind whatever they have asked for


async def test_old_content_goes_within_the_hour(box: Box) -> None:
    await receive(box, "a")
    running = asyncio.create_task(retention(box).run())
    await passed(box, retain.FIRST_AFTER_S)
    assert contents(box) == 1
    box.clock.step(31 * DAY_S)
    await receive(box, "b")
    await passed(box, retain.EVERY_S)
    assert contents(box) == 1
    assert box.rows("SELECT key FROM events WHERE content IS NULL") == [("a",)]
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_clock_that_cannot_be_trusted_takes_nothing(box: Box) -> None:
    await receive(box, "a")
    box.clock.step(400 * DAY_S)
    running = asyncio.create_task(retention(box, trusted=False).run())
    await passed(box, retain.FIRST_AFTER_S)
    assert contents(box) == 1
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_clock_that_is_far_ahead_of_all_that_was_heard_takes_nothing(box: Box) -> None:
    """A board without a battery wakes up in another year."""
    await receive(box, "a")
    box.clock.step(400 * DAY_S)
    running = asyncio.create_task(retention(box).run())
    await passed(box, retain.FIRST_AFTER_S)
    assert contents(box) == 1
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_purge_that_was_cut_short_goes_on_where_it_was(
    box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retain, "STEP_S", 0)
    await receive(box, *(f"k{n}" for n in range(100)))
    box.clock.advance(31 * DAY_S)
    first = asyncio.create_task(retention(box).purge())
    while contents(box) == 100:
        await asyncio.to_thread(lambda: None)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    left = contents(box)
    assert 0 < left < 100
    counts = await retention(box).purge()
    assert (counts["bodies"], contents(box)) == (left, 0)


async def test_command_comes_back_for_the_rest(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retain, "STEP_S", 0)
    await receive(box, *(f"k{n}" for n in range(60)))
    box.clock.advance(31 * DAY_S)
    keeper = retention(box)
    taken, calls, done = 0, 0, False
    while not done:
        slice_ = asyncio.create_task(keeper.purge_some(0.5))
        while not slice_.done():
            box.clock.advance(0.3)
            await asyncio.to_thread(lambda: None)
        counts, done = slice_.result()
        taken += counts["bodies"]
        calls += 1
    assert taken == 60
    assert calls > 1


async def test_ledger_that_is_held_still_keeps_its_events(box: Box) -> None:
    await receive(box, "a", "b")
    box.clock.advance(100 * DAY_S)
    turning = asyncio.Lock()
    keeper = Retention(box.writer, box.clock, turning)
    keeper.ages = AGES
    async with turning:
        purging = asyncio.create_task(keeper.purge())
        await passed(box, 1)
        assert contents(box) == 2
    assert (await purging)["events"] == 1
