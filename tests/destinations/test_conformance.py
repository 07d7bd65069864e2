"""What every destination does, whatever its type."""

import asyncio
import logging
from pathlib import Path

import pytest

from hookbox.destinations import DESTINATIONS
from hookbox.destinations.contract import EXCERPT_MAX
from hookbox.model import Verdict
from tests.destinations.parcels import MESSAGE_ID, RECIPIENT, parcel
from tests.destinations.rigs import HANGING, MISSING, TAKING

PATIENCE_S = 20.0  # for what has a deadline of its own, on a busy machine

every_type = pytest.mark.parametrize("name", DESTINATIONS)


@every_type
def test_type_has_its_rigs_and_its_row_in_the_readme(name: str) -> None:
    assert all(name in rigs for rigs in (TAKING, HANGING, MISSING))
    kind = DESTINATIONS[name]
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    assert kind.name == name
    assert kind.required <= kind.options.keys()
    assert [
        option for option in kind.options if f"\n| `{name}` | `{option}` | " not in readme
    ] == []


@every_type
async def test_parcel_arrives_as_it_is(name: str, tmp_path: Path) -> None:
    async with TAKING[name](tmp_path) as rig:
        sent = parcel()
        attempt = await rig.destination.deliver(sent)
        assert attempt.verdict is Verdict.DONE, attempt
        assert rig.bodies() == [sent.body]


@every_type
async def test_second_attempt_carries_the_same_key(name: str, tmp_path: Path) -> None:
    async with TAKING[name](tmp_path) as rig:
        for number in (1, 2):
            await rig.destination.deliver(parcel(attempt=number))
        await rig.destination.deliver(parcel(replay=3))
        assert rig.keys() == ["7", "7", "7:r3"]


@every_type
async def test_parcels_at_once_all_arrive(name: str, tmp_path: Path) -> None:
    async with TAKING[name](tmp_path) as rig:
        attempts = await asyncio.gather(
            *(rig.destination.deliver(parcel(number)) for number in range(1, 9))
        )
        assert {attempt.verdict for attempt in attempts} == {Verdict.DONE}
        assert sorted(rig.keys()) == sorted(map(str, range(1, 9)))


@every_type
async def test_deadline_is_kept(name: str, tmp_path: Path) -> None:
    async with HANGING[name](tmp_path) as rig:
        async with asyncio.timeout(PATIENCE_S):
            attempt = await rig.destination.deliver(parcel())
        assert attempt.verdict is Verdict.LATER
        assert "within 0.5 s" in f"{attempt.outcome} {attempt.excerpt}"
        assert rig.left() == []


@every_type
async def test_cancelled_attempt_ends_and_leaves_nothing(name: str, tmp_path: Path) -> None:
    async with HANGING[name](tmp_path) as rig:
        task = asyncio.create_task(rig.destination.deliver(parcel()))
        async with asyncio.timeout(PATIENCE_S):
            await rig.begun()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert rig.left() == []


@every_type
async def test_target_that_is_not_there_is_tried_later(name: str, tmp_path: Path) -> None:
    async with MISSING[name](tmp_path) as rig:
        attempt = await rig.destination.deliver(parcel())
    assert attempt.verdict is Verdict.LATER
    assert attempt.blames_target
    assert not attempt.spared
    assert 0 < len(attempt.excerpt) <= EXCERPT_MAX


@every_type
async def test_closing_twice_is_closing_once(name: str, tmp_path: Path) -> None:
    for rigs in (TAKING, MISSING):
        async with rigs[name](tmp_path) as rig:
            await rig.destination.close()
        async with rigs[name](tmp_path) as rig:
            await rig.destination.deliver(parcel())
            await rig.destination.close()
            await rig.destination.close()


@every_type
async def test_nothing_of_a_parcel_is_logged(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    for rigs in (TAKING, MISSING):
        async with rigs[name](tmp_path) as rig:
            await rig.destination.deliver(parcel())
            assert RECIPIENT not in f"{rig.destination!r}"
    assert RECIPIENT not in caplog.text
    assert MESSAGE_ID not in caplog.text
