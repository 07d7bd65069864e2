"""A standstill holds the worker, never a sender, and never for good."""

import asyncio

import pytest

from hookbox.errors import OperatorError
from hookbox.flows import standstill
from hookbox.flows.standstill import Standstill
from hookbox.store.decisions import Word
from tests.flows.conftest import Box

PATIENCE_S = 5.0
WORD = Word(who="eve", reason="a test", at=0)


@pytest.fixture
def turning() -> asyncio.Lock:
    """What the worker holds while it applies."""
    return asyncio.Lock()


@pytest.fixture
def still(box: Box, turning: asyncio.Lock) -> Standstill:
    return Standstill(box.writer, turning, box.path.parent)


async def test_standstill_begins_when_the_batch_at_hand_is_applied(
    still: Standstill, turning: asyncio.Lock
) -> None:
    await turning.acquire()
    begun = asyncio.create_task(still.begin())
    await asyncio.sleep(0)
    assert not begun.done()
    turning.release()
    async with asyncio.timeout(PATIENCE_S):
        assert await begun == 0
    assert turning.locked()
    still.end()
    async with asyncio.timeout(PATIENCE_S):
        await turning.acquire()


async def test_events_are_stored_meanwhile(box: Box, still: Standstill) -> None:
    await still.begin()
    done = await box.receiver.receive(box.source, box.delivery("k", {"type": "email.delivered"}))
    assert done.outcome.value == "accepted"
    still.end()


async def test_standstill_ends_by_itself_and_then_nothing_is_swapped(
    still: Standstill, turning: asyncio.Lock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(standstill, "LASTS_S", 0.01)
    await still.begin()
    async with asyncio.timeout(PATIENCE_S):
        await turning.acquire()
    turning.release()
    with pytest.raises(OperatorError, match="took too long"):
        await still.swap("rebuild-1.db", 0, WORD)


async def test_there_is_one_at_a_time_and_another_after_it(still: Standstill) -> None:
    await still.begin()
    with pytest.raises(OperatorError, match="another rebuild"):
        await still.begin()
    with pytest.raises(OperatorError, match="nothing was changed"):
        await still.swap("rebuild-1.db", 0, WORD)
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                await still.begin()
            except OperatorError:
                await asyncio.sleep(0)
                continue
            break
    still.end()
