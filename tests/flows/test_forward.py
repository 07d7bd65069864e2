"""Forwarding: what was applied is brought to each destination, at least once and never twice in
effect, whatever happens in between.
"""

import asyncio
import itertools
import json
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import pytest

from hookbox.errors import OperatorError
from hookbox.flows.forward import Outlet, lane
from hookbox.flows.outbox import Outbox
from hookbox.flows.routes import Route
from hookbox.flows.settlement import take_back
from hookbox.flows.work import Worker
from hookbox.model import Attempt, Kind, Order, Parcel, Verdict
from hookbox.rules.breaker import PROBES_S
from hookbox.rules.suppression import Budget
from hookbox.store import forwarding, outbox, reprocess, sources
from hookbox.store.connections import Transaction
from hookbox.store.decisions import Word
from tests.flows.conftest import Box

DONE = Attempt(verdict=Verdict.DONE, outcome="taken", status=200)
LATER = Attempt(verdict=Verdict.LATER, outcome="refused", status=500)
SCHEDULE_S = (10.0, 60.0)


@dataclass
class Program:
    """A destination that says what it is told to, and remembers what it was brought."""

    says: Callable[[Parcel], Attempt] = lambda parcel: DONE
    parcels: list[Parcel] = field(default_factory=list)
    hanging: bool = False
    closed: int = 0

    @property
    def keys(self) -> list[str]:
        return [parcel.idempotency_key for parcel in self.parcels]

    async def deliver(self, parcel: Parcel) -> Attempt:
        self.parcels.append(parcel)
        if self.hanging:
            await asyncio.Event().wait()
        return self.says(parcel)

    async def close(self) -> None:
        self.closed += 1


def outlet(name: str, program: Program, route: Route | None = None) -> Outlet:
    return Outlet(
        name=name,
        route=route or Route(destination=name),
        destination=program,
        schedule_s=SCHEDULE_S,
        failures_max=3,
    )


@dataclass
class Running:
    """A box whose worker and lanes run."""

    box: Box
    worker: Worker
    outbox: Outbox

    async def until(self, done: Callable[[], bool], *, advance_s: float = 0.0) -> None:
        """Let them work, and time pass, until `done`; bounded."""
        for _ in range(2_000):
            if done():
                return
            self.box.clock.advance(advance_s)
            await self.turns(1)
        assert done(), self.jobs()

    async def turns(self, count: int = 30) -> None:
        """Enough turns for whatever could happen to happen."""
        for _ in range(count):
            self.worker.wake()
            self.outbox.wake()
            await self.box.writer.write(lambda t: None)  # behind whatever they have asked for

    def jobs(self, target: str = "forward:%") -> list[tuple[object, ...]]:
        return self.box.rows(
            "SELECT event_id, target, replay, state, attempts, last_outcome FROM outbox"
            f" WHERE target LIKE '{target}' ORDER BY id"
        )

    def states(self) -> list[object]:
        return [job[3] for job in self.jobs()]


@asynccontextmanager
async def running(box: Box, *outlets: Outlet) -> AsyncIterator[Running]:
    lanes = Outbox(box.writer, box.clock, box.instance)
    worker = Worker(box.writer, box.sources, box.clock, box.instance, Budget(), lanes.wake)
    worker.routes = [each.route for each in outlets]
    lanes.adopt([lane(each, box.clock) for each in outlets])
    working = asyncio.create_task(worker.run())
    try:
        yield Running(box, worker, lanes)
    finally:
        worker.stop()
        box.clock.advance(5)
        await asyncio.wait_for(working, 5)
        await lanes.stop(0.2)


def event(to: str = "ann@example.com", kind: str = "bounced") -> dict[str, object]:
    return {"type": f"email.{kind}", "data": {"to": [to], "bounce": {"type": "Permanent"}}}


async def receive(box: Box, *keys: str, **told: str) -> None:
    for key in keys:
        await box.receiver.receive(box.source, box.delivery(key, event(**told)))


def word() -> Word:
    return Word(who="ann", reason="because", at=1_700_000_000_000)


async def test_applied_event_is_brought_once_to_each_destination(box: Box) -> None:
    one, two = Program(), Program()
    await receive(box, "a")
    async with running(box, outlet("one", one), outlet("two", two)) as run:
        await run.until(lambda: run.states() == ["completed", "completed"])
        await receive(box, "a")  # the sender's own redelivery
        await run.turns()
    assert one.keys == two.keys == ["1"]
    parcel = one.parcels[0]
    told = json.loads(parcel.body)
    assert (told["id"], told["kind"], told["recipient"]) == (1, "bounced", "ann@example.com")
    assert json.loads(told["content"]) == event()
    assert told["notifications"][0]["effect"].startswith("status bounced (hard)")
    assert one.closed == two.closed == 1


@pytest.mark.parametrize(
    ("route", "wanted"),
    [
        (Route(destination="app", kinds=frozenset({Kind.DELIVERED})), ["2"]),
        (Route(destination="app", domains=frozenset({"example.org"})), ["2"]),
        (Route(destination="app", sources=frozenset({"std"})), ["1", "2"]),
        (Route(destination="app", sources=frozenset({"other"})), []),
        (
            Route(
                destination="app",
                kinds=frozenset({Kind.BOUNCED}),
                domains=frozenset({"example.org"}),
            ),
            [],
        ),
    ],
)
async def test_destination_gets_only_what_it_wants(
    box: Box, route: Route, wanted: Sequence[str]
) -> None:
    program = Program()
    await receive(box, "a")
    await receive(box, "b", to="Bob@Example.ORG", kind="delivered")
    async with running(box, outlet("app", program, route)) as run:
        await run.until(
            lambda: (
                len(run.jobs("apply")) == 2 and "available" not in {job[3] for job in run.jobs("%")}
            )
        )
        await run.turns()
    assert sorted(program.keys) == wanted


async def test_failed_attempts_follow_the_schedule_and_end_visibly(box: Box) -> None:
    program = Program(says=lambda parcel: LATER)
    await receive(box, "a")
    async with running(box, outlet("app", program)) as run:
        await run.until(lambda: run.states() == ["exhausted"], advance_s=5.0)
    assert program.keys == ["1"] * 3
    assert [parcel.attempt for parcel in program.parcels] == [1, 2, 3]
    assert len({parcel.body for parcel in program.parcels}) == 1
    waits = [b.sent_at - a.sent_at for a, b in itertools.pairwise(program.parcels)]
    assert waits[0] >= 10_000
    assert waits[1] >= 60_000
    assert box.rows("SELECT number, outcome, status FROM attempts WHERE outcome = 'refused'") == [
        (number, "refused", 500) for number in (1, 2, 3)
    ]


async def test_destination_may_ask_for_a_longer_wait(box: Box) -> None:
    answers = iter([replace(LATER, retry_after_s=3_600.0), DONE])
    program = Program(says=lambda parcel: next(answers))
    await receive(box, "a")
    async with running(box, outlet("app", program)) as run:
        await run.until(lambda: run.states() == ["completed"], advance_s=60.0)
    first, second = program.parcels
    assert second.sent_at - first.sent_at >= 3_600_000


async def test_dead_destination_does_not_slow_another(box: Box) -> None:
    """Counted, not timed: everything reaches the one while the other hangs on its first."""
    dead, well = Program(hanging=True), Program()
    await receive(box, *"abcdefghijklmnopqrst")
    async with running(box, outlet("dead", dead), outlet("well", well)) as run:
        await run.until(lambda: len(well.keys) == 20)
        assert len(dead.keys) == 1
        await run.until(lambda: [job[3] for job in run.jobs("forward:well")] == ["completed"] * 20)


async def test_what_a_stop_interrupts_is_tried_again_and_is_no_crash(box: Box) -> None:
    program = Program(hanging=True)
    await receive(box, "a")
    for _ in range(5):
        async with running(box, outlet("app", program)) as run:
            await run.until(lambda: run.states() == ["running"])
        assert run.states() == ["available"]
    program.hanging = False
    async with running(box, outlet("app", program)) as run:
        await run.until(lambda: run.states() == ["completed"])
    assert program.keys == ["1"] * 6
    assert box.rows("SELECT DISTINCT crashes FROM job") == [(0,)]


async def test_crash_while_bringing_brings_it_again_under_the_same_key(box: Box) -> None:
    """The third one is suspected of killing the process, and is set aside visibly."""
    program = Program(hanging=True)
    await receive(box, "a")
    for crash in range(3):
        async with running(box, outlet("app", program)) as run:
            await run.until(lambda: run.states() == ["running"])
            box.instance = await box.writer.write(sources.next_instance)  # the process is dead
            await box.writer.write(lambda t: take_back(t, box.instance, box.clock.now()))
        assert run.states() == ["available" if crash < 2 else "exhausted"]
    assert program.keys == ["1"] * 3


async def test_late_finisher_changes_nothing(box: Box) -> None:
    program = Program()
    await receive(box, "a")
    taken = asyncio.Event()
    release = asyncio.Event()

    async def deliver(parcel: Parcel) -> Attempt:
        taken.set()
        await release.wait()
        return DONE

    program.deliver = deliver  # type: ignore[method-assign]
    async with running(box, outlet("app", program)) as run:
        await run.until(taken.is_set)
        instance = await box.writer.write(sources.next_instance)
        await box.writer.write(lambda t: take_back(t, instance, box.clock.now()))
        release.set()
        await asyncio.sleep(0)
    assert box.rows("SELECT count(*) FROM attempts WHERE outcome = 'taken'") == [(0,)]


# --- order


async def test_order_is_kept_for_each_recipient(box: Box) -> None:
    """A failing first holds back its followers, and nobody else's."""
    failing = {"1"}
    program = Program(says=lambda p: LATER if p.idempotency_key in failing else DONE)
    route = Route(destination="app", order=Order.RECIPIENT)
    for key, to in (("a", "ann"), ("b", "ann"), ("c", "bob"), ("d", "ann")):
        await receive(box, key, to=f"{to}@example.com")
    async with running(box, outlet("app", program, route)) as run:
        await run.until(lambda: "3" in program.keys)
        await run.turns()
        assert set(program.keys) == {"1", "3"}
        assert [(job[0], job[3], job[5]) for job in run.jobs()][1:2] == [
            (2, "held", "waits for its turn")
        ]
        failing.clear()
        await run.until(lambda: run.states() == ["completed"] * 4, advance_s=5.0)
    assert [key for key in program.keys if key in "124"][-3:] == ["1", "2", "4"]


async def test_exhausted_job_lets_its_followers_go(box: Box) -> None:
    program = Program(says=lambda p: LATER if p.idempotency_key == "1" else DONE)
    route = Route(destination="app", order=Order.SOURCE)
    await receive(box, "a", "b")
    async with running(box, outlet("app", program, route)) as run:
        await run.until(lambda: run.states() == ["exhausted", "completed"], advance_s=5.0)
    assert program.keys == ["1"] * 3 + ["2"]


# --- the circuit breaker


async def test_failing_destination_is_left_alone_and_probed(box: Box) -> None:
    up: list[bool] = []
    program = Program(says=lambda p: DONE if up else LATER)
    await receive(box, *"abcdefgh")
    async with running(box, outlet("app", program)) as run:
        await run.until(lambda: len(program.keys) == 3)
        await run.until(lambda: "running" not in run.states())
        await run.turns()
        assert len(program.keys) == 3
        assert box.rows("SELECT failures, last_failure FROM lane WHERE broken_at > 0") == [
            (3, "refused")
        ]
        since = box.rows("SELECT broken_at FROM lane")
        box.clock.advance(PROBES_S[0])
        await run.until(lambda: len(program.keys) == 4)
        await run.turns()
        assert len(program.keys) == 4
        assert box.rows("SELECT broken_at FROM lane") == since
        up.append(True)
        await run.until(lambda: run.states() == ["completed"] * 8, advance_s=5.0)
    assert box.rows("SELECT count(*) FROM lane WHERE broken_at IS NOT NULL") == [(0,)]


async def test_try_later_does_not_blame_the_destination(box: Box) -> None:
    program = Program(says=lambda p: replace(LATER, blames_target=False))
    await receive(box, *"abcdefgh")
    async with running(box, outlet("app", program)) as run:
        await run.until(lambda: len(program.keys) == 8)


# --- a person's say


async def test_paused_destination_gets_nothing_until_it_is_resumed(box: Box) -> None:
    program = Program()
    async with running(box, outlet("app", program)) as run:
        await box.writer.write(lambda t: outbox.pause(t, "app", word()))
        await receive(box, "a", "b")
        await run.until(lambda: run.states() == ["held", "held"])
        assert {job[5] for job in run.jobs()} == {"paused"}
        await box.writer.write(lambda t: outbox.resume(t, "app"))
        assert await box.writer.write(lambda t: outbox.release(t, "app")) == 2
        await run.until(lambda: run.states() == ["completed", "completed"])
    assert sorted(program.keys) == ["1", "2"]


async def test_pause_outlives_a_restart(box: Box) -> None:
    program = Program()
    await box.writer.write(lambda t: outbox.pause(t, "app", word()))
    await receive(box, "a")
    for _ in range(2):
        async with running(box, outlet("app", program)) as run:
            await run.until(lambda: run.states() == ["held"])
            await box.writer.write(lambda t: forwarding.adopt(t, ["forward:app"]))
            await run.turns()
    assert program.keys == []


async def test_thousand_held_jobs_are_released_and_brought_once(box: Box) -> None:
    program = Program()
    await box.writer.write(lambda t: outbox.pause(t, "app", word()))
    await receive(box, *(f"k{number}" for number in range(1_000)))
    async with running(box, replace(outlet("app", program), concurrency=16)) as run:
        await run.until(lambda: run.states() == ["held"] * 1_000)
        await box.writer.write(lambda t: outbox.resume(t, "app"))
        while await box.writer.write(lambda t: outbox.release(t, "app")):
            pass
        await run.until(lambda: run.states() == ["completed"] * 1_000)
    assert sorted(map(int, program.keys)) == list(range(1, 1_001))


async def test_jobs_of_a_destination_that_is_gone_are_held_until_it_is_back(box: Box) -> None:
    program = Program(says=lambda p: LATER)
    await receive(box, "a")
    async with running(box, outlet("app", program)) as run:
        await run.until(lambda: len(program.keys) == 1)
    await box.writer.write(lambda t: forwarding.adopt(t, []))
    assert [(job[3], job[5]) for job in run.jobs()] == [("held", "destination not configured")]
    program.says = lambda p: DONE
    await box.writer.write(lambda t: forwarding.adopt(t, ["forward:app"]))
    async with running(box, outlet("app", program)) as run:
        await run.until(lambda: run.states() == ["completed"], advance_s=5.0)


async def test_destination_that_comes_back_while_its_lane_ends_is_not_held(box: Box) -> None:
    """The old lane's last word is written behind the reload's, and must not outlive it."""
    program = Program(says=lambda parcel: LATER)
    way = outlet("app", program)
    await receive(box, "a")
    async with running(box, way) as run:
        await run.until(lambda: len(program.parcels) == 1 and run.states() == ["available"])
        reached, go_on = threading.Event(), threading.Event()

        def reload(transaction: Transaction) -> None:
            forwarding.adopt(transaction, ["forward:app"])
            reached.set()
            go_on.wait(5)

        reloading = asyncio.create_task(box.writer.write(reload))
        await asyncio.to_thread(reached.wait, 5)
        run.outbox.adopt([])
        for _ in range(10):  # the lane ends, and has its rest held
            await asyncio.sleep(0)
        go_on.set()
        await reloading
        run.outbox.adopt([lane(way, box.clock)])
        await run.turns()
        assert run.states() == ["available"]
        program.says = lambda parcel: DONE
        await run.until(lambda: run.states() == ["completed"], advance_s=1)


async def test_exhausted_job_is_retried_with_its_whole_schedule(box: Box) -> None:
    program = Program(says=lambda parcel: LATER)
    await receive(box, "a")
    async with running(box, outlet("app", program)) as run:
        await run.until(lambda: run.states() == ["exhausted"], advance_s=5.0)
        await box.writer.write(lambda t: outbox.retry(t, [job(box)], box.clock.now()))
        await run.until(lambda: run.states() == ["exhausted"], advance_s=5.0)
    assert [parcel.attempt for parcel in program.parcels] == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("state", ["running", "completed", "cancelled"])
async def test_what_is_under_way_or_over_is_not_retried(box: Box, state: str) -> None:
    program = Program(hanging=state == "running")
    await receive(box, "a")
    async with running(box, outlet("app", program)) as run:
        if state == "cancelled":
            await box.writer.write(lambda t: outbox.pause(t, "app", word()))
            await run.until(lambda: run.states() == ["held"])
            await box.writer.write(lambda t: outbox.cancel(t, [job(box)], word()))
        await run.until(lambda: run.states() == [state])
        with pytest.raises(OperatorError):
            await box.writer.write(lambda t: outbox.retry(t, [job(box)], box.clock.now()))


async def test_cancelled_job_is_never_brought(box: Box) -> None:
    program = Program()
    await box.writer.write(lambda t: outbox.pause(t, "app", word()))
    await receive(box, "a")
    async with running(box, outlet("app", program)) as run:
        await run.until(lambda: run.states() == ["held"])
        await box.writer.write(lambda t: outbox.cancel(t, [job(box)], word()))
        await box.writer.write(lambda t: outbox.resume(t, "app"))
        await box.writer.write(lambda t: outbox.release(t, "app"))
        await run.turns()
    assert program.keys == []
    assert [(row[3], row[5]) for row in run.jobs()] == [("cancelled", "cancelled by ann: because")]


def job(box: Box) -> int:
    ((found,),) = box.rows("SELECT max(id) FROM outbox WHERE target LIKE 'forward:%'")
    assert isinstance(found, int)
    return found


async def test_replay_is_brought_again_under_its_own_key(box: Box) -> None:
    """Applied again, and from there on to where it goes; or to one destination alone."""
    app, other = Program(), Program()
    await receive(box, "a")
    async with running(box, outlet("app", app), outlet("other", other)) as run:
        await run.until(lambda: run.states() == ["completed"] * 2)
        for to in ([], ["app"], ["apply"], []):
            told = await box.writer.write(
                lambda t, to=to: reprocess.replay_each(t, [1], to, word())
            )
            assert told.queued
            assert not told.refused
            await run.until(lambda: {job[3] for job in run.jobs("%")} == {"completed"})
    assert app.keys == ["1", "1:r1", "1:r2", "1:r3"]
    assert other.keys == ["1", "1:r1", "1:r2"]


async def test_queued_event_cannot_be_replayed_and_says_so(box: Box) -> None:
    await box.writer.write(lambda t: outbox.pause(t, "app", word()))
    await receive(box, "a")
    before = await box.writer.write(lambda t: reprocess.replay_each(t, [1, 99], ["app"], word()))
    async with running(box, outlet("app", Program())) as run:
        await run.until(lambda: run.states() == ["held"])
    after = await box.writer.write(lambda t: reprocess.replay_each(t, [1], ["app"], word()))
    told = [each["why"] for each in (*before.refused, *after.refused)]
    assert not before.queued
    assert not after.queued
    assert "event 1 is pending" in told[0]
    assert "no event 99" in told[1]
    assert "still to be brought to app" in told[2]
