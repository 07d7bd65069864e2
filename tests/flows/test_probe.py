"""The probe: our fault on purpose, nothing lost, and what the sender really does."""

import pytest

from hookbox.errors import OperatorError
from hookbox.flows.probe import Probes, findings
from hookbox.flows.receive import Outcome
from hookbox.store import probes
from tests.flows.conftest import SECRET, Box

BODY = {"type": "email.sent", "data": {"to": ["ann@example.com"]}}


async def send(box: Box, key: str, *, secret: bytes = SECRET) -> Outcome:
    delivery = box.delivery(key, BODY, secret=secret)
    return (await box.receiver.receive(box.source, delivery)).outcome


async def test_probe_fails_one_delivery_that_is_stored_all_the_same(box: Box) -> None:
    await box.probes.start(box.source, 1)
    assert await send(box, "a") is Outcome.BUSY
    assert box.rows("SELECT key FROM events") == [("a",)]
    assert await send(box, "b") is Outcome.ACCEPTED
    box.clock.advance(5)
    assert await send(box, "a") is Outcome.DUPLICATE
    assert await send(box, "c") is Outcome.ACCEPTED
    assert box.rows("SELECT outcome FROM probe") == [("every failed delivery came again",)]


async def test_report_compares_the_retry_with_what_is_declared(box: Box) -> None:
    await box.probes.start(box.source, 1)
    await send(box, "a")
    box.clock.advance(5)
    await send(box, "a")
    row = await box.writer.write(lambda t: probes.latest(t, "std"))
    assert row is not None
    kept = await box.writer.write(lambda t: probes.requests(t, row.id))
    report = {
        each.question: (each.found, each.agrees) for each in findings(box.source.provider, kept)
    }
    assert report["time until the next attempt"] == ("5.0 s", True)
    assert report["signed time on the retry"] == ("renewed", True)
    assert report["body on the retry"] == ("the same bytes", None)
    assert report["headers that changed"][0] == "webhook-signature, webhook-timestamp"


async def test_forged_deliveries_do_not_use_the_probe_up(box: Box) -> None:
    await box.probes.start(box.source, 1)
    assert await send(box, "x", secret=b"y" * 32) is Outcome.REFUSED
    assert await send(box, "a") is Outcome.BUSY


async def test_probe_goes_on_after_a_restart(box: Box) -> None:
    await box.probes.start(box.source, 1)
    await send(box, "a")
    box.receiver._probes = again = Probes(box.writer, box.clock)
    await again.resume()
    assert await send(box, "b") is Outcome.ACCEPTED
    assert await send(box, "a") is Outcome.DUPLICATE
    assert box.rows("SELECT count(*) FROM probe WHERE ended_at IS NULL") == [(0,)]


async def test_probe_ends_by_itself_when_the_sender_never_comes_again(box: Box) -> None:
    await box.probes.start(box.source, 1)
    await send(box, "a")
    box.clock.advance(100 * 86_400)
    assert await send(box, "b") is Outcome.ACCEPTED
    assert box.rows("SELECT outcome FROM probe") == [("horizon over",)]


async def test_probe_whose_time_is_over_makes_way_for_the_next(box: Box) -> None:
    await box.probes.start(box.source, 1)
    box.clock.advance(100 * 86_400)
    await box.probes.start(box.source, 1)
    assert box.rows("SELECT outcome FROM probe ORDER BY id") == [("horizon over",), (None,)]
    assert await send(box, "a") is Outcome.BUSY


async def test_second_probe_of_a_source_is_refused_until_the_first_is_over(box: Box) -> None:
    await box.probes.start(box.source, 1)
    with pytest.raises(OperatorError, match="under way"):
        await box.probes.start(box.source, 1)
    await box.probes.stop(box.source)
    await box.probes.start(box.source, 2)
    assert [await send(box, key) for key in "abc"] == [
        Outcome.BUSY, Outcome.BUSY, Outcome.ACCEPTED,
    ]  # fmt: skip
