"""How a lane spends its time, on virtual time over the real SQL: nothing is left behind when it is
told to end, and nobody is busy with nothing.
"""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path

from hookbox.flows.lane import Lane, LaneRunner
from hookbox.flows.outbox import Outbox
from hookbox.flows.settlement import Done, Settlement
from hookbox.model import Attempt, Kind, Notification, Verdict
from hookbox.store import lanes, sources
from hookbox.store.admissions import Ids, admit
from hookbox.store.connections import Transaction
from hookbox.store.decisions import Word
from hookbox.store.forwarding import UNCONFIGURED, Onward, enqueue
from hookbox.store.jobs import Job, Lease
from hookbox.store.ledger import Applied
from hookbox.store.writer import Writer
from tests.sim.disk import Disk, DiskChannel
from tests.sim.timeline import VirtualClock, VirtualLoop
from tests.store.offers import event, proposal

TARGET = "forward:a"
TAKEN = Attempt(verdict=Verdict.DONE, outcome="taken")
FAILED = Attempt(verdict=Verdict.LATER, outcome="failed")


class Box:
    """A writer over a virtual disk, with events that are to be brought to one destination."""

    def __init__(self, clock: VirtualClock, disk: Disk) -> None:
        self.clock, self.disk = clock, disk
        self.writer = Writer(Path(), clock, DiskChannel(disk, clock))
        self.began: list[int] = []

    async def start(self, jobs: int) -> None:
        await self.writer.start()

        def work(transaction: Transaction) -> None:
            sources.remember(transaction, {"one": "standardwebhooks"})
            offered = proposal(*(event(f"e{number}") for number in range(jobs)))
            admit(transaction, [offered], Ids(), self.clock.now())
            onward = [Onward(event_id=number + 1, target=TARGET) for number in range(jobs)]
            enqueue(transaction, onward, self.clock.now())

        await self.writer.write(work)

    def lane(self, attempts: Sequence[Attempt], *, failures_max: int = 0) -> Lane[int]:
        """Its attempts take five seconds each, and end as told, the last way for ever."""

        def read(_: Transaction, ids: Sequence[int]) -> dict[int, int]:
            return {each: each for each in ids}

        async def attempt(subject: int, _: Job) -> Attempt:
            self.began.append(subject)
            told = attempts[min(len(self.began), len(attempts)) - 1]
            await self.clock.sleep(5)
            return told

        return Lane(
            target=TARGET, read=read, attempt=attempt, schedule_s=(60.0,), failures_max=failures_max
        )

    def runner(self, attempts: Sequence[Attempt], *, failures_max: int = 0) -> LaneRunner[int]:
        lane = self.lane(attempts, failures_max=failures_max)
        return LaneRunner(lane, self.writer, self.clock, 1, itertools.count(1))

    def states(self) -> list[str]:
        sql = f"SELECT state FROM job WHERE target = '{TARGET}' ORDER BY id"
        return [row["state"] for row in self.disk.connection.execute(sql)]


def told(story: Callable[[Box], Awaitable[None]], jobs: int) -> None:
    """Tell a story about so many jobs on virtual time."""
    clock = VirtualClock()

    async def life() -> str:
        box = Box(clock, Disk(clock))
        await box.start(jobs)
        await story(box)
        return "told"

    VirtualLoop(clock).live(life())


def test_lane_whose_probe_has_nothing_to_try_waits_until_something_is_due() -> None:
    """A target asks for ten minutes, its breaker would look after ten seconds: no look is useful
    before there is a job for it.
    """

    async def story(box: Box) -> None:
        slow_down = replace(FAILED, retry_after_s=600.0)
        lane = box.runner([slow_down, TAKEN], failures_max=1)
        running = asyncio.create_task(lane.run())
        await box.clock.sleep(580)
        assert box.disk.seen["commits"] < 25
        await box.clock.sleep(40)
        assert box.states() == ["completed"]
        lane.stop()
        await running

    told(story, jobs=1)


def test_lane_that_ends_while_it_claims_gives_back() -> None:
    """What a commit brings to a lane that was told to end meanwhile is for its successor."""

    async def story(box: Box) -> None:
        box.disk.be_slow(1.0, until=10.0)
        lane = box.runner([TAKEN])
        running = asyncio.create_task(lane.run())
        await box.clock.sleep(0.5)
        assert box.states() == ["running", "running"]
        lane.stop()
        await running
        assert (box.states(), box.began) == (["available", "available"], [])

    told(story, jobs=2)


def test_lane_that_ends_while_the_store_fails_records_what_it_did() -> None:
    """Otherwise the job would be running, for nobody, until the next start, and then done again."""

    async def story(box: Box) -> None:
        lane = box.runner([TAKEN])
        running = asyncio.create_task(lane.run())
        await box.clock.sleep(1)
        box.disk.fail("full", until=30.0)
        lane.stop()
        await running
        assert (box.states(), box.began) == (["completed"], [1])

    told(story, jobs=1)


def test_lane_that_is_paused_begins_nothing_that_it_claimed_before() -> None:
    """Jobs are claimed ahead of those under way; a pause holds for those as well."""

    async def story(box: Box) -> None:
        outbox = Outbox(box.writer, box.clock, 1)
        outbox.adopt([box.lane([TAKEN])])
        await box.clock.sleep(1)
        assert box.states() == ["running", "running", "available"]
        word = Word(who="eve", reason="asked", at=box.clock.now())
        await box.writer.write(lambda t: lanes.pause(t, TARGET, word))
        outbox.recall(TARGET)
        await box.clock.sleep(60)
        assert (box.states(), box.began) == (["completed", "held", "held"], [1])
        await outbox.stop(1.0)

    told(story, jobs=3)


def test_destination_that_is_gone_holds_what_was_under_way() -> None:
    """Its last attempt fails after it went: nobody would try again what looks as if it were due."""

    async def story(box: Box) -> None:
        outbox = Outbox(box.writer, box.clock, 1)
        outbox.adopt([box.lane([FAILED])])
        await box.clock.sleep(1)
        outbox.adopt([])
        await box.clock.sleep(10)
        row = box.disk.connection.execute(
            "SELECT state, attempts, last_outcome FROM job WHERE target = ?", (TARGET,)
        ).fetchone()
        assert tuple(row) == ("held", 1, UNCONFIGURED)

    told(story, jobs=1)


def test_batch_goes_on_to_no_destination_that_is_gone() -> None:
    """Where events go on to is worked out before they are settled; a reload may come in between."""
    job = Job(id=1, event_id=1, attempts=0, replay=0)
    heard = Notification(kind=Kind.OPENED, occurred_at=0)
    ways = tuple(Onward(event_id=1, target=target) for target in (TARGET, "forward:b"))
    applied = Applied(event_id=1, source_id=1, notifications=(heard,))
    batch = Settlement(
        Lease(instance=1, token=1), applied=[Done(job=job, applied=applied, onward=ways)]
    )
    batch.keep_to({TARGET})
    assert batch.applied[0].onward == ways[:1]
