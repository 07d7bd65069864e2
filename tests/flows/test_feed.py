"""The feed: whatever becomes of events meanwhile, a reader sees each of them once, in order."""

import asyncio
import itertools
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hookbox.flows import settlement
from hookbox.flows.feed import Feed
from hookbox.flows.settlement import Done, Failure, Settlement
from hookbox.flows.signal import Signal
from hookbox.model import Kind, Notification, StoredEvent
from hookbox.rules.suppression import Budget
from hookbox.store import admissions, feed, jobs, quarantine, reprocess
from hookbox.store.admissions import Ids
from hookbox.store.connections import Transaction
from hookbox.store.decisions import Word
from hookbox.store.feed import FeedPage, Wanted
from hookbox.store.jobs import Job, Lease
from hookbox.store.ledger import Applied
from hookbox.store.reader import Reader
from tests.flows.conftest import Box
from tests.store.facts import NOW, opened
from tests.store.offers import event, proposal

T = TypeVar("T")
PATIENCE_S = 30  # only a broken feed needs it
EVENTS = "SELECT id FROM event ORDER BY id"
OPEN_ENTRIES = "SELECT id FROM quarantine_entry WHERE resolved_at IS NULL"
IDLE = "SELECT id FROM event WHERE state = 'applied'"
ABOUT_TO_BE_APPLIED = """
SELECT e.id FROM event AS e JOIN job AS j ON j.event_id = e.id
WHERE e.place IS NULL AND j.state IN ('available', 'running')
"""


class Stream:
    """A store in memory, a worker whose luck the test decides, and readers of the feed."""

    def __init__(self, readers: int) -> None:
        self.connection = opened()
        self.cursors = [0] * readers
        self.seen: list[list[int]] = [[] for _ in range(readers)]
        self._keys = itertools.count()
        self._tokens = itertools.count(1)
        self._instance = 1
        self._now = NOW

    def store(self, count: int) -> None:
        events = [event(f"k{next(self._keys)}") for _ in range(count)]
        admissions.admit(self.connection, [proposal(*events)], Ids(), self._now)

    def work(self, luck: str) -> None:
        """Claim a few jobs; each is applied, fails, is held, or is left to the next process."""
        lease = Lease(instance=self._instance, token=next(self._tokens))
        self._now += 100_000  # whatever waits for another try is due
        far = self._now + 10**9
        outcome = Settlement(lease)
        found = jobs.claim(
            self.connection, "apply", lease, now=self._now, horizon=far, limit=len(luck)
        )
        for job, fate in zip(found, luck, strict=False):
            if fate == "+":
                outcome.applied.append(Done(job=job, applied=_applied(job), onward=()))
            elif fate == "-":
                failure = Failure(job=job, started_at=self._now, took_ms=0, error="E")
                outcome.failed.append(failure)
            elif fate == "h":
                outcome.held.append(job)
        settlement.settle(self.connection, outcome, self._now, Budget())

    def crash(self) -> None:
        """The next process begins with what this one left."""
        self._instance += 1
        settlement.take_back(self.connection, self._instance, self._now)

    def release(self) -> None:
        jobs.release(self.connection, "apply", ["a"], self._now)

    def accept(self) -> None:
        for entry in self.ids(OPEN_ENTRIES):
            quarantine.accept(self.connection, entry, self._now)

    def replay(self) -> None:
        for event_id in self.ids(IDLE):
            reprocess.replay(self.connection, event_id, Word(who="e", reason="r", at=self._now))

    def read(self, reader: int, limit: int) -> FeedPage:
        after = self.cursors[reader]
        page = feed.page(self.connection, Wanted(after=after, limit=limit))
        ids = [document["id"] for document in page.documents]
        assert len(ids) <= limit
        assert not set(ids) & set(self.ids(ABOUT_TO_BE_APPLIED))
        assert page.next_cursor == (ids[-1] if ids else after)
        self.cursors[reader] = page.next_cursor
        self.seen[reader] += ids
        return page

    def ids(self, sql: str) -> list[int]:
        return [row[0] for row in self.connection.execute(sql)]


def _applied(job: Job) -> Applied:
    told = Notification(
        kind=Kind.DELIVERED, recipient="ann@example.com", occurred_at=NOW, message_id="m"
    )
    return Applied(event_id=job.event_id, source_id=1, notifications=(told,))


READERS = 3
luck = st.text("+++-hc", min_size=1, max_size=6)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("store"), st.integers(1, 5)),
        st.tuples(st.just("work"), luck),
        st.tuples(st.just("read"), st.integers(0, READERS - 1), st.integers(1, 4)),
        st.tuples(st.sampled_from(["crash", "release", "accept", "replay"])),
    ),
    max_size=40,
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps)
def test_reader_sees_every_event_once_and_in_order_whatever_becomes_of_it(
    story: list[tuple[object, ...]],
) -> None:
    stream = Stream(READERS)
    for name, *values in story:
        getattr(stream, str(name))(*values)
    stream.crash()
    while stream.ids("SELECT id FROM job WHERE state = 'available'"):
        stream.work("+++++")
    for reader in range(READERS):
        while stream.read(reader, 3).has_more:
            pass
        assert stream.seen[reader] == stream.ids(EVENTS)


def test_page_that_holds_the_last_event_has_no_more() -> None:
    stream = Stream(1)
    stream.store(4)
    stream.work("+++c")
    assert [stream.read(0, 2).has_more for _ in range(2)] == [True, False]
    assert stream.seen == [[1, 2, 3]]


def test_event_that_waits_for_another_try_stops_readers_until_it_is_decided() -> None:
    stream = Stream(1)
    stream.store(2)
    stream.work("-+")
    for _ in range(settlement.TRIES_MAX - 1):
        assert stream.read(0, 9).documents == []
        stream.work("-")
    states = [(each["id"], each["state"]) for each in stream.read(0, 9).documents]
    assert states == [(1, "quarantined"), (2, "applied")]


def test_event_of_a_source_that_is_gone_passes_with_its_state() -> None:
    stream = Stream(1)
    stream.store(2)
    stream.work("h+")
    [gone, read] = stream.read(0, 9).documents
    assert (gone["state"], gone["kind"], gone["notifications"]) == ("pending", None, [])
    assert (read["state"], read["kind"]) == ("applied", "delivered")
    assert [each["effect"] for each in read["notifications"]] == ["status delivered"]


def test_replayed_event_neither_stops_readers_nor_comes_again() -> None:
    stream = Stream(2)
    stream.store(2)
    stream.work("++")
    stream.read(0, 1)
    stream.replay()
    stream.read(1, 9)
    stream.work("++")
    stream.read(0, 9)
    assert stream.seen == [[1, 2], [1, 2]]


def test_event_let_out_of_quarantine_comes_to_those_who_have_not_passed_it() -> None:
    stream = Stream(2)
    stream.store(1)
    for _ in range(settlement.TRIES_MAX):
        stream.work("-")
    stream.read(0, 9)
    stream.accept()
    assert stream.read(1, 9).documents == []
    stream.work("+")
    assert [each["state"] for each in stream.read(1, 9).documents] == ["applied"]
    assert stream.read(0, 9).documents == []


def test_cursor_goes_past_other_kinds() -> None:
    stream = Stream(1)
    stream.store(5)
    stream.work("++-++")
    stream.connection.execute("UPDATE event SET kind = 'bounced' WHERE id = 2")
    wanted = Wanted(kinds=frozenset({"bounced", "opened"}))
    page = feed.page(stream.connection, wanted)
    assert [each["id"] for each in page.documents] == [2]
    assert (page.next_cursor, page.has_more) == (2, False)  # the third waits for another try
    stream.work("-")
    stream.work("-")
    page = feed.page(stream.connection, wanted)
    assert (page.next_cursor, page.has_more) == (5, False)


def test_rare_kind_costs_a_bounded_look_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "LOOKED_AT_MAX", 3)
    stream = Stream(1)
    stream.store(7)
    stream.work("+" * 7)
    wanted = Wanted(kinds=frozenset({"bounced"}))
    page = feed.page(stream.connection, wanted)
    assert (page.documents, page.next_cursor, page.has_more) == ([], 3, True)


def test_page_fits_into_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inbound mail brings its attachments; the page ends before it has too many of them."""
    monkeypatch.setattr(feed, "BYTES_MAX", 5)  # the content of each is two bytes long
    stream = Stream(1)
    stream.store(3)
    stream.work("+++")
    assert [len(stream.read(0, 9).documents) for _ in range(2)] == [2, 1]
    monkeypatch.setattr(feed, "BYTES_MAX", 1)
    assert len(feed.page(stream.connection, Wanted()).documents) == 1


def test_cursor_beyond_the_end_stays_where_it_is() -> None:
    stream = Stream(1)
    stream.store(1)
    stream.work("+")
    page = feed.page(stream.connection, Wanted(after=99))
    assert (page.documents, page.next_cursor, page.has_more) == ([], 99, False)
    assert feed.end(stream.connection) == 1


# --- waiting


class CountedReader(Reader):
    """Counts how often the database is looked at."""

    looks = 0

    async def read(self, work: Callable[[Transaction], T]) -> T:
        self.looks += 1
        return await super().read(work)


async def _followed(box: Box, reader: Feed, total: int, chance: random.Random) -> list[int]:
    """Everything up to `total` events, in pages and waits of random length."""
    cursor, seen = 0, list[int]()
    while len(seen) < total:
        wanted = Wanted(after=cursor, limit=chance.randint(1, 7))
        page = await reader.page(wanted, chance.choice([0.001, PATIENCE_S]))
        seen += [document["id"] for document in page.documents]
        cursor = page.next_cursor
    return seen


async def test_readers_wait_beside_a_worker_that_stumbles(box: Box) -> None:
    """Long polls are woken for everything: nobody of them is left waiting, nothing is skipped."""
    total, normalize = 40, box.source.provider.normalize
    tries: Counter[str] = Counter()

    def stumble(stored: StoredEvent) -> tuple[Notification, ...]:
        tries[stored.key] += 1
        if int(stored.key) % 7 == 3 and tries[stored.key] < int(stored.key) % 5:
            raise RuntimeError("not now")
        return normalize(stored)

    box.change(normalize=stumble)
    followed = Feed(Reader(box.path))
    await followed.start()
    worker = box.worker()
    worker.applied = followed.applied
    working = asyncio.create_task(worker.run())
    chances = [random.Random(seed) for seed in range(8)]
    async with asyncio.timeout(PATIENCE_S):
        reading = [asyncio.create_task(_followed(box, followed, total, each)) for each in chances]
        for number in range(total):
            delivery = box.delivery(str(number), {"type": "email.delivered"})
            await box.receiver.receive(box.source, delivery)
            worker.wake()
        while not all(task.done() for task in reading):
            box.clock.advance(30)
            worker.wake()
            await asyncio.wait(reading, timeout=0.01)
    assert [await task for task in reading] == [list(range(1, total + 1))] * len(reading)
    worker.stop()
    box.clock.advance(5)
    await working
    await followed.stop()


async def test_nobody_looks_again_while_nothing_happens(box: Box) -> None:
    reader = CountedReader(box.path)
    followed = Feed(reader)
    await followed.start()
    waiting = [asyncio.create_task(followed.page(Wanted(), PATIENCE_S)) for _ in range(5)]
    await asyncio.wait(waiting, timeout=0.2)
    assert reader.looks == 5
    followed.end()
    pages = [await task for task in waiting]
    assert [(page.documents, page.next_cursor) for page in pages] == [([], 0)] * 5
    assert not (await followed.page(Wanted(), PATIENCE_S)).documents  # nor does anybody wait now
    await followed.stop()


async def test_ring_between_a_look_and_the_wait_is_heard() -> None:
    signal = Signal()
    ring = signal.next()
    signal.ring()
    assert ring.is_set()
    assert not signal.next().is_set()


async def test_ring_wakes_everybody_who_waits() -> None:
    signal = Signal()
    waiting = [asyncio.create_task(signal.next().wait()) for _ in range(3)]
    await asyncio.sleep(0)
    signal.ring()
    async with asyncio.timeout(PATIENCE_S):
        assert await asyncio.gather(*waiting) == [True] * 3


async def test_feed_that_is_not_started_says_so(tmp_path: Path) -> None:
    from hookbox.errors import StoreError

    with pytest.raises(StoreError, match="not running"):
        await Feed(Reader(tmp_path / "none.db")).page(Wanted())
