"""A person lets through what was put aside; what cannot be read stays and says why."""

import pytest

from hookbox.errors import OperatorError
from hookbox.flows.receive import Outcome
from hookbox.flows.release import release
from hookbox.providers.contract import Provider
from tests.flows.conftest import Box

GOOD = {"type": "email.complained", "data": {"to": ["ann@example.com"]}}


def current(box: Box) -> Provider:
    return box.source.provider


async def set_aside(box: Box, key: str, body: bytes) -> None:
    receipt = await box.receiver.receive(box.source, box.delivery(key, body))
    assert receipt.outcome is Outcome.QUARANTINED


async def let_through(box: Box, entry_id: int, *, unread: bool = False) -> str:
    now = box.clock.now()
    return await box.writer.write(
        lambda t: release(t, entry_id, lambda _: current(box), now, unread=unread)
    )


async def test_content_that_can_be_read_now_becomes_its_event(box: Box) -> None:
    """A provider was mended since, or the source's settings were."""
    mended = current(box).split

    def broken(_: object) -> object:
        raise ZeroDivisionError

    box.change(split=broken)
    await box.receiver.receive(box.source, box.delivery("evt_1", GOOD))
    box.change(split=mended)
    assert await let_through(box, 1) == "read again: 1 new event"
    assert box.rows("SELECT key, state FROM events") == [("evt_1", "pending")]
    assert box.rows("SELECT count(*) FROM outbox WHERE target = 'apply'") == [(1,)]
    assert box.rows("SELECT resolution FROM quarantine") == [("read again: 1 new event",)]
    receipt = await box.receiver.receive(box.source, box.delivery("evt_1", GOOD))
    assert receipt.outcome is Outcome.DUPLICATE


async def test_what_still_cannot_be_read_stays_and_says_why(box: Box) -> None:
    await set_aside(box, "evt_1", b'{"type":')
    with pytest.raises(OperatorError, match=r"still cannot be read.*nothing was changed"):
        await let_through(box, 1)
    assert box.rows("SELECT resolved_at FROM quarantine") == [(None,)]
    assert box.rows("SELECT count(*) FROM events") == [(0,)]


async def test_unread_keeps_it_as_an_event_of_kind_unknown(box: Box) -> None:
    await set_aside(box, "evt_1", b"nonsense")
    assert (await let_through(box, 1, unread=True)).startswith("accepted as event 1")
    assert box.rows("SELECT content FROM events") == [("nonsense",)]


async def test_contradiction_becomes_an_event_of_its_own(box: Box) -> None:
    await box.receiver.receive(box.source, box.delivery("evt_1", GOOD))
    other = {"type": "email.bounced", "data": {"to": ["zoe@example.com"]}}
    await box.receiver.receive(box.source, box.delivery("evt_1", other))
    await let_through(box, 1)
    keys = [str(key) for (key,) in box.rows("SELECT key FROM events ORDER BY id")]
    assert keys[0] == "evt_1"
    assert keys[1].startswith("evt_1~")


async def test_nothing_is_let_through_twice(box: Box) -> None:
    await set_aside(box, "evt_1", b"nonsense")
    await let_through(box, 1, unread=True)
    with pytest.raises(OperatorError, match="resolved already"):
        await let_through(box, 1)


async def test_credentials_are_not_kept_with_what_could_not_be_read(box: Box) -> None:
    from dataclasses import replace

    delivery = box.delivery("evt_1", b"nonsense")
    told = replace(delivery, headers=(*delivery.headers, (b"authorization", b"Basic c2VjcmV0")))
    await box.receiver.receive(box.source, told)
    ((headers,),) = box.rows("SELECT headers FROM delivery")
    assert "webhook-id" in str(headers)
    assert "c2VjcmV0" not in str(headers)
