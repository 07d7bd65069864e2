"""From raw bytes to rows: what is accepted, refused, set aside, and sent away to come back."""

import sqlite3

import pytest

from hookbox.errors import Reason
from hookbox.flows.receive import Outcome
from hookbox.model import Admission
from hookbox.providers.contract import Trust
from tests.flows.conftest import PREVIOUS, Box

BOUNCE = {"type": "email.bounced", "data": {"to": ["ann@example.com"]}}


async def test_accepted_is_stored_and_wakes_the_worker(box: Box) -> None:
    receipt = await box.receiver.receive(box.source, box.delivery("evt_1", BOUNCE))
    assert (receipt.outcome, receipt.admission) == (Outcome.ACCEPTED, Admission(new=1))
    assert box.rows("SELECT key, verified_by, state FROM events") == [
        ("evt_1", "current", "pending")
    ]
    assert box.woken == [None]


async def test_duplicate_wakes_nobody(box: Box) -> None:
    for expected in (Outcome.ACCEPTED, Outcome.DUPLICATE, Outcome.DUPLICATE):
        receipt = await box.receiver.receive(box.source, box.delivery("evt_1", BOUNCE))
        assert receipt.outcome is expected
    assert box.woken == [None]


async def test_conflict_is_success_to_the_sender_and_visible_to_the_operator(box: Box) -> None:
    await box.receiver.receive(box.source, box.delivery("evt_1", BOUNCE))
    other = {"type": "email.complained", "data": {"to": ["zoe@example.com"]}}
    receipt = await box.receiver.receive(box.source, box.delivery("evt_1", other))
    assert receipt.outcome is Outcome.QUARANTINED
    assert not receipt.unreadable
    assert box.rows("SELECT key, reason FROM quarantine") == [("evt_1", "payload_digest_conflict")]


@pytest.mark.parametrize("body", [b'{"type":"x","data":', b'"hello"', b"[]", b"", b"\xff\xfe"])
async def test_authentic_but_unreadable_is_kept_byte_for_byte(box: Box, body: bytes) -> None:
    receipt = await box.receiver.receive(box.source, box.delivery("evt_1", body))
    assert receipt.outcome is Outcome.QUARANTINED
    assert receipt.unreadable
    assert box.rows("SELECT key FROM quarantine") == [("evt_1",)]
    assert box.rows("SELECT body FROM delivery") == [(body,)]
    assert box.rows("SELECT count(*) FROM events") == [(0,)]


async def test_mistake_of_ours_in_a_provider_loses_nothing(box: Box) -> None:
    def broken(_: object) -> object:
        raise ZeroDivisionError

    box.change(split=broken)
    receipt = await box.receiver.receive(box.source, box.delivery("evt_1", BOUNCE))
    assert receipt.outcome is Outcome.QUARANTINED
    assert box.rows("SELECT reason FROM quarantine") == [("split_failed",)]


async def test_refusal_stores_nothing_and_is_counted_with_its_skew(box: Box) -> None:
    stale = box.delivery("evt_1", BOUNCE, skew_s=301)
    future = box.delivery("evt_2", BOUNCE, skew_s=-301)
    forged = box.delivery("evt_3", BOUNCE, secret=b"x" * 32)
    for delivery in (stale, future, forged, forged):
        receipt = await box.receiver.receive(box.source, delivery)
        assert receipt.outcome is Outcome.REFUSED
    assert box.rows("SELECT count(*) FROM refusals") == [(0,)]
    await box.tally.flush()
    await box.tally.flush()
    assert box.rows(
        "SELECT reason, count, last_skew_s, last_remote FROM refusals ORDER BY reason"
    ) == [
        ("future", 1, -301.0, "192.0.2.7"),
        ("signature_wrong", 2, None, "192.0.2.7"),
        ("stale", 1, 301.0, "192.0.2.7"),
    ]
    assert box.rows("SELECT count(*) FROM delivery") == [(0,)]


async def test_observing_skew_accepts_and_counts_what_it_would_have_refused(box: Box) -> None:
    source = box.source
    trust = Trust(keys=source.trust.keys, tolerance_s=None)
    from dataclasses import replace

    observing = replace(source, trust=trust)
    receipt = await box.receiver.receive(observing, box.delivery("evt_1", BOUNCE, skew_s=900))
    assert receipt.outcome is Outcome.ACCEPTED
    await box.tally.flush()
    assert box.rows("SELECT reason, last_skew_s FROM refusals") == [("stale", 900.0)]


async def test_source_without_secret_sends_everybody_away_to_come_back(box: Box) -> None:
    from dataclasses import replace

    bare = replace(box.source, trust=Trust(keys=(), tolerance_s=300))
    receipt = await box.receiver.receive(bare, box.delivery("evt_1", BOUNCE))
    assert (receipt.outcome, receipt.reason) == (Outcome.BUSY, Reason.NO_SECRET)
    assert receipt.retry_after_s is not None


async def test_secret_slots_are_counted_with_their_last_use(box: Box) -> None:
    await box.receiver.receive(box.source, box.delivery("evt_1", BOUNCE))
    box.clock.advance(10)
    await box.receiver.receive(box.source, box.delivery("evt_2", BOUNCE, secret=PREVIOUS))
    await box.receiver.receive(box.source, box.delivery("evt_3", BOUNCE, secret=PREVIOUS))
    await box.tally.flush()
    now = box.clock.now()
    assert box.rows("SELECT slot, accepted, last_used_at FROM secret_use ORDER BY slot") == [
        ("current", 1, now - 10_000),
        ("previous", 2, now),
    ]


async def test_locked_database_is_our_fault_and_the_retry_is_accepted(box: Box) -> None:
    other = sqlite3.connect(box.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    receipt = await box.receiver.receive(box.source, box.delivery("evt_1", BOUNCE))
    assert receipt.outcome is Outcome.BUSY
    other.execute("ROLLBACK")
    other.close()
    receipt = await box.receiver.receive(box.source, box.delivery("evt_1", BOUNCE))
    assert receipt.outcome is Outcome.ACCEPTED
    assert box.rows("SELECT count(*) FROM events") == [(1,)]


async def test_full_disk_is_our_fault_and_ends_when_there_is_space(box: Box) -> None:
    pages = await box.writer.write(lambda t: t.execute("PRAGMA page_count").fetchone()[0])
    await box.writer.write(
        lambda t: t.execute(f"PRAGMA max_page_count = {pages}").fetchone() and None
    )
    big = {"type": "email.sent", "pad": "x" * 50_000}
    receipt = await box.receiver.receive(box.source, box.delivery("evt_1", big))
    assert receipt.outcome is Outcome.BUSY
    assert receipt.retry_after_s == 60
    await box.writer.write(
        lambda t: t.execute("PRAGMA max_page_count = 1000000").fetchone() and None
    )
    receipt = await box.receiver.receive(box.source, box.delivery("evt_1", big))
    assert receipt.outcome is Outcome.ACCEPTED


async def test_caller_that_goes_away_leaves_the_writer_in_order(box: Box) -> None:
    import asyncio

    tasks = [
        asyncio.create_task(box.receiver.receive(box.source, box.delivery(f"evt_{n}", BOUNCE)))
        for n in range(50)
    ]
    await asyncio.sleep(0)
    for task in tasks[::2]:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    receipt = await box.receiver.receive(box.source, box.delivery("evt_last", BOUNCE))
    assert receipt.outcome is Outcome.ACCEPTED
    stored = {key for (key,) in box.rows("SELECT key FROM events")}
    assert {f"evt_{n}" for n in range(1, 50, 2)} <= stored


async def test_text_that_sqlite_cannot_hold_is_stored_raw_and_applied(box: Box) -> None:
    body = b'{"type":"email.bounced","data":{"to":["Ann \\ud83d <ann@example.com>"],"x":"\\u0000"}}'
    receipt = await box.receiver.receive(box.source, box.delivery("evt_1", body))
    assert receipt.outcome is Outcome.ACCEPTED
    worker = box.worker()
    worker.stop()
    assert box.rows("SELECT body FROM delivery") == [(body,)]
