"""The worker: everything ends applied or visibly set aside, whatever happens in between."""

import asyncio
import json
from collections.abc import Callable

import pytest

from hookbox.errors import StoreRejected
from hookbox.flows import work
from hookbox.flows.settlement import take_back
from hookbox.model import Kind, Notification, StoredEvent
from hookbox.store import claims, events, jobs, sources
from tests.flows.conftest import Box

BOUNCE = {
    "type": "email.bounced",
    "data": {"to": ["ann@example.com"], "bounce": {"type": "Permanent"}},
}


async def receive(box: Box, *keys: str) -> None:
    for key in keys:
        await box.receiver.receive(box.source, box.delivery(key, BOUNCE))


async def until(box: Box, done: Callable[[], bool], *, advance_s: float = 1.0) -> None:
    """Run a worker and let time pass until `done`; bounded."""
    worker = box.worker()
    task = asyncio.create_task(worker.run())
    for _ in range(400):
        if done():
            break
        box.clock.advance(advance_s)
        worker.wake()
        await asyncio.to_thread(lambda: None)  # lets the connection's thread have its turn
    worker.stop()
    box.clock.advance(5)
    await asyncio.wait_for(task, 5)
    assert done()


def states(box: Box) -> dict[object, object]:
    return dict(box.rows("SELECT key, state FROM events"))  # type: ignore[arg-type]


async def test_stored_events_are_applied_and_their_jobs_finished(box: Box) -> None:
    await receive(box, "a", "b", "c")
    await until(box, lambda: set(states(box).values()) == {"applied"})
    assert box.rows("SELECT DISTINCT state, attempts, last_outcome FROM outbox") == [
        ("completed", 1, "applied")
    ]
    assert box.rows("SELECT address, reason FROM suppressions") == [
        ("ann@example.com", "hard_bounce")
    ]


async def test_large_events_are_not_read_into_memory_together(
    box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Inbound mail brings its attachments; a batch of it would fill a small machine."""
    read: list[int] = []
    by_id = events.by_id
    monkeypatch.setattr(events, "by_id", lambda t, ids: (read.append(len(ids)), by_id(t, ids))[1])
    monkeypatch.setattr(claims, "BYTES_MAX", len(json.dumps(BOUNCE)) * 2)
    await receive(box, "a", "b", "c", "d", "e")
    await until(box, lambda: set(states(box).values()) == {"applied"})
    assert [count for count in read if count] == [2, 2, 1]
    assert box.rows("SELECT DISTINCT state, attempts FROM outbox") == [("completed", 1)]


async def test_event_larger_than_a_batch_is_applied_alone(
    box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "BYTES_MAX", 1)
    await receive(box, "a", "b")
    await until(box, lambda: set(states(box).values()) == {"applied"})


async def test_poison_event_ends_in_quarantine_and_blocks_nobody(box: Box) -> None:
    await receive(box, "good1", "poison", "good2")
    normalize = box.source.provider.normalize

    def fails_once_in_three(event: StoredEvent) -> tuple[Notification, ...]:
        if event.key == "poison":
            raise RuntimeError("no way to read this")
        return normalize(event)

    box.change(normalize=fails_once_in_three)
    await until(box, lambda: "pending" not in states(box).values(), advance_s=30)
    assert states(box) == {"good1": "applied", "poison": "quarantined", "good2": "applied"}
    assert box.rows("SELECT key, reason FROM quarantine") == [("poison", "apply_failed")]
    assert box.rows("SELECT state, attempts, last_outcome FROM outbox WHERE event_id = 2") == [
        ("exhausted", 3, "RuntimeError")
    ]
    assert box.rows("SELECT number, outcome, excerpt FROM attempts ORDER BY 1") == [
        (1, "error", "RuntimeError"), (2, "error", "RuntimeError"), (3, "error", "RuntimeError"),
    ]  # fmt: skip


async def test_row_that_the_schema_refuses_is_the_only_one_that_fails(box: Box) -> None:
    await receive(box, "good1", "odd", "good2")
    normalize = box.source.provider.normalize

    def says_what_cannot_be_stored(event: StoredEvent) -> tuple[Notification, ...]:
        if event.key == "odd":
            return (Notification(kind=Kind.BOUNCED, bounce_class="no such class"),)  # type: ignore[arg-type]
        return normalize(event)

    box.change(normalize=says_what_cannot_be_stored)
    await until(box, lambda: "pending" not in states(box).values(), advance_s=30)
    assert states(box) == {"good1": "applied", "odd": "quarantined", "good2": "applied"}


async def _claim_and_die(box: Box) -> None:
    """What a kill -9 between claim and finish leaves behind, and the next start finds."""
    worker = box.worker()
    await worker._turn(None)
    box.instance = await box.writer.write(sources.next_instance)
    await box.writer.write(lambda t: take_back(t, box.instance, box.clock.now()))


async def test_job_of_a_dead_process_is_done_by_the_next_and_counts_once(box: Box) -> None:
    await receive(box, "a")
    await _claim_and_die(box)
    await until(box, lambda: states(box) == {"a": "applied"})
    assert box.rows("SELECT state, attempts, crashes FROM job") == [("completed", 1, 1)]
    assert box.rows("SELECT count(*) FROM notifications") == [(1,)]


async def test_event_that_was_there_in_three_crashes_is_set_aside(box: Box) -> None:
    await receive(box, "killer")
    for _ in range(3):
        await _claim_and_die(box)
    assert states(box) == {"killer": "quarantined"}
    assert box.rows("SELECT reason FROM quarantine") == [("apply_crashed",)]
    assert box.rows("SELECT state FROM outbox") == [("exhausted",)]


async def test_neighbours_of_a_killer_do_not_pay_for_it(box: Box) -> None:
    """After one crash the batch is tried one by one, so the next crashes hit the guilty alone."""
    await receive(box, "a", "killer", "b")
    await _claim_and_die(box)
    for _ in range(2):
        worker = box.worker()
        while True:
            claimed = await worker._turn(None)
            assert len(claimed.jobs) == 1
            if claimed.events[0].key == "killer":
                break
            settlement = await worker._work_on(claimed)
            await worker._turn(settlement)
            break
        box.instance = await box.writer.write(sources.next_instance)
        await box.writer.write(lambda t: take_back(t, box.instance, box.clock.now()))
    await until(box, lambda: "pending" not in states(box).values())
    assert states(box)["a"] == "applied"
    assert states(box)["b"] == "applied"


async def test_late_finisher_changes_nothing(box: Box) -> None:
    """A worker whose lease was taken back must not write over what the next one did."""
    await receive(box, "a")
    late = box.worker()
    claimed = await late._turn(None)
    settlement = await late._work_on(claimed)
    box.instance = await box.writer.write(sources.next_instance)
    await box.writer.write(lambda t: take_back(t, box.instance, box.clock.now()))
    await until(box, lambda: states(box) == {"a": "applied"})
    before = box.rows("SELECT * FROM job") + box.rows("SELECT * FROM notification")
    await late._turn(settlement)
    assert box.rows("SELECT * FROM job") + box.rows("SELECT * FROM notification") == before


async def test_clock_set_back_by_a_year_starves_no_job(box: Box) -> None:
    box.clock.step(365 * 86_400)
    await receive(box, "a")
    box.clock.step(-365 * 86_400)
    await until(box, lambda: states(box) == {"a": "applied"})


async def test_time_that_cannot_be_true_is_replaced_and_flagged(box: Box) -> None:
    for key, at in (
        ("old", "1999-12-31T00:00:00Z"),
        ("far", "2999-01-01T00:00:00Z"),
        ("odd", "soon"),
    ):
        body = {"type": "email.sent", "created_at": at, "data": {"to": ["a@example.com"]}}
        await box.receiver.receive(box.source, box.delivery(key, body))
    received_at = box.clock.now()
    await until(box, lambda: set(states(box).values()) == {"applied"})
    assert box.rows("SELECT DISTINCT occurred_at, time_source FROM notification") == [
        (received_at, "received")
    ]


async def test_event_of_a_source_that_is_gone_waits_until_it_comes_back(box: Box) -> None:
    await receive(box, "a", "b")
    live = {"std": box.source}
    box.sources.replace({})
    await until(box, lambda: held(box) == 2)
    assert states(box) == {"a": "pending", "b": "pending"}
    box.sources.replace(live)
    now = box.clock.now()
    await box.writer.write(lambda t: jobs.release(t, work.TARGET, ["std"], now))
    await until(box, lambda: set(states(box).values()) == {"applied"})
    assert box.rows("SELECT kind FROM events") == [("bounced",), ("bounced",)]


async def test_event_whose_source_comes_back_while_it_is_set_aside_is_applied(box: Box) -> None:
    """The reload released what was held, and this was not yet."""
    await receive(box, "a")
    live, worker = {"std": box.source}, box.worker()
    box.sources.replace({})
    batch = await worker._work_on(await worker._turn(None))
    box.sources.replace(live)
    await worker._turn(await worker._work_on(await worker._turn(batch)))
    assert states(box) == {"a": "applied"}


def held(box: Box) -> object:
    return box.rows("SELECT count(*) FROM outbox WHERE state = 'held'")[0][0]


async def test_damaged_row_keeps_nobody_from_being_applied(box: Box) -> None:
    await receive(box, "a", "b")
    await box.writer.write(
        lambda t: t.execute("UPDATE delivery SET headers = '{' WHERE id = 1") and None
    )
    await until(box, lambda: set(states(box).values()) == {"applied"})


async def test_claim_that_is_refused_is_waited_out(box: Box) -> None:
    """Nothing of the worker's own is to blame, so it neither dies nor turns in circles."""
    worker = box.worker()
    refusal = asyncio.create_task(worker._single_out(None, StoreRejected("no")))
    await asyncio.sleep(0)
    worker.stop()
    assert await asyncio.wait_for(refusal, 5) is None
