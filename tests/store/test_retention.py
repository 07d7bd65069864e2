"""What is old enough goes, what somebody still needs stays, and every step is a small one."""

import json
from collections.abc import Awaitable, Callable
from itertools import pairwise
from pathlib import Path

import pytest

from hookbox.clock import ManualClock
from hookbox.model import Rotten
from hookbox.store import database, jobs, old, quarantine, retention, sweeps
from hookbox.store.connections import Transaction
from hookbox.store.jobs import Lease
from hookbox.store.retention import Counts
from hookbox.store.sweeps import Horizons
from hookbox.store.writer import Writer
from tests.store.conftest import Rows
from tests.store.facts import DAY
from tests.store.offers import event, proposal
from tests.store.passes import swept

BODIES, KEYS = 30 * DAY, 90 * DAY
NOW = 1_700_000_000_000  # when `proposal` says that it came


Purge = Callable[[int], Awaitable[Counts]]


@pytest.fixture
def purge(writer: Writer) -> Purge:
    """A pass so many days later, in steps as short as can be."""

    async def after(days: int) -> Counts:
        now = NOW + days * DAY
        return await writer.write(
            lambda t: swept(t, bodies=now - BODIES, keys=now - KEYS, now=now, in_steps=True)
        )

    return after


async def applied(writer: Writer) -> None:
    """Everything that waits is done."""
    await writer.write(
        lambda t: t.execute(
            "UPDATE job SET state = 'completed', finished_at = 1, instance = NULL, token = NULL"
        )
    )
    await writer.write(lambda t: t.execute("UPDATE event SET state = 'applied', kind = 'unknown'"))


async def test_content_goes_and_a_repeat_is_still_known(
    writer: Writer, purge: Purge, rows: Rows
) -> None:
    await writer.admit([proposal(event("a"), body=b'{"a":1}')])
    await applied(writer)
    await purge(31)
    assert rows("SELECT key, content FROM events") == [("a", None)]
    assert (await writer.admit([proposal(event("a"))])).duplicate == 1


@pytest.mark.parametrize("body", [b"{}", b"\xff\xfe"])
async def test_views_show_null_where_content_is_gone(
    writer: Writer, purge: Purge, rows: Rows, body: bytes
) -> None:
    offered = proposal(event("a"), body=body)
    offered.delivery.is_text = body == b"{}"
    await writer.admit([offered])
    await applied(writer)
    await purge(31)
    assert rows("SELECT content FROM events") == [(None,)]


async def test_content_of_its_own_goes_with_the_body(
    writer: Writer, purge: Purge, rows: Rows
) -> None:
    await writer.admit([proposal(event("a", content=b"inflated"), body=b"packed")])
    await applied(writer)
    await purge(31)
    assert rows("SELECT content FROM event") == [(None,)]


async def test_event_goes_with_all_that_hangs_on_it(
    writer: Writer, purge: Purge, rows: Rows
) -> None:
    await writer.admit([proposal(event("a"), event("b"), event("c"))])
    await writer.admit([proposal(event("newest"))])
    await applied(writer)
    await writer.write(
        lambda t: t.execute("INSERT INTO attempt SELECT id, 1, 0, 0, 'done', 200, '' FROM job")
    )
    gone = await purge(91)
    assert (gone["events"], gone["deliveries"]) == (3, 1)
    assert rows("SELECT key FROM event") == [("newest",)]
    assert rows("SELECT event_id FROM job") == [(4,)]
    assert rows("SELECT count(*) FROM delivery") == [(1,)]
    assert (await writer.admit([proposal(event("a"))])).new == 1, "it is news by now"


@pytest.mark.parametrize("state", ["available", "running", "held"])
async def test_unfinished_work_keeps_content_and_identity_whatever_the_age(
    writer: Writer, purge: Purge, rows: Rows, state: str
) -> None:
    await writer.admit([proposal(event("a"))])
    await writer.admit([proposal(event("newest"))])
    await applied(writer)
    await writer.write(
        lambda t: t.execute(
            "INSERT INTO job (event_id, target, run_at, state, instance, token)"
            " VALUES (1, 'forward:app', 0, ?1, iif(?1 = 'running', 1, NULL),"
            " iif(?1 = 'running', 1, NULL))",
            (state,),
        )
    )
    await purge(400)
    assert rows("SELECT key, content FROM events WHERE id = 1") == [("a", "{}")]
    await applied(writer)
    await purge(400)
    assert rows("SELECT key FROM events") == [("newest",)]
    assert rows("SELECT * FROM kept_longer WHERE stage = 'bodies'") == []


async def test_what_a_person_must_decide_keeps_its_content(
    writer: Writer, purge: Purge, rows: Rows
) -> None:
    rotten = Rotten(reason="unreadable", content=b"?")
    await writer.admit([proposal(event("a"), body=b"[{},?]", rotten=(rotten,))])
    await writer.admit(
        [proposal(event("newest"), rotten=(rotten, Rotten(reason="x", content=b"y")))]
    )
    await applied(writer)
    await purge(400)
    assert rows("SELECT content FROM quarantine WHERE id = 1") == [("?",)]
    await writer.write(lambda t: quarantine.discard(t, 1, "spam", NOW + 390 * DAY))
    await purge(400)
    assert rows("SELECT content FROM quarantine WHERE id = 1") == [("?",)], "decided 10 days ago"
    await purge(421)
    assert rows("SELECT content FROM quarantine WHERE id = 1") == [(None,)]
    await purge(481)
    assert rows("SELECT id FROM quarantine WHERE id = 1") == []
    assert rows("SELECT count(*) FROM delivery WHERE id = 1") == [(0,)]


async def test_event_that_is_still_repeated_is_still_known(
    writer: Writer, clock: ManualClock, purge: Purge, rows: Rows
) -> None:
    await writer.admit([proposal(event("a"))])
    await writer.admit([proposal(event("newest"))])
    await applied(writer)
    clock.advance(80 * DAY / 1000)
    await writer.admit([proposal(event("a"))])
    await purge(91)
    assert rows("SELECT key FROM event") == [("a",), ("newest",)]
    await purge(171)
    assert rows("SELECT key FROM event") == [("newest",)]


async def test_clock_that_was_wrong_takes_nothing_early_and_keeps_nothing_for_ever(
    writer: Writer, purge: Purge, rows: Rows
) -> None:
    for key, received_at in (("a", NOW), ("ahead", NOW + 9000 * DAY), ("behind", 0), ("b", NOW)):
        offered = proposal(event(key))
        offered.delivery.received_at = received_at
        await writer.admit([offered])
    await applied(writer)
    await purge(1)
    assert rows("SELECT count(*) FROM events WHERE content IS NOT NULL") == [(4,)]
    await purge(31)
    assert rows("SELECT key FROM events WHERE content IS NOT NULL") == [("ahead",)]
    await purge(9031)
    assert rows("SELECT key FROM events WHERE content IS NOT NULL") == []


async def test_single_rows_go_by_their_own_age(writer: Writer, purge: Purge, rows: Rows) -> None:
    def fill(t: Transaction) -> None:
        for days in (0, 100):
            at = NOW + days * DAY
            t.execute("INSERT INTO token VALUES (1, ?, zeroblob(32), ?)", (str(days), at))
            t.execute("INSERT INTO refusal VALUES (1, 'stale', ?, 1, NULL, '')", (at // 60_000,))
            t.execute("INSERT INTO probe VALUES (?, 1, 0, 0, 1, ?, 'done')", (days + 1, at))
            t.execute(
                "INSERT INTO probe_request VALUES (?, 1, 'k', 0, NULL, 'ok', '[]', x'')",
                (days + 1,),
            )

    await writer.write(fill)
    gone = await purge(120)
    assert (gone["tokens"], gone["refusals"], gone["probed"]) == (1, 1, 1)
    assert rows("SELECT token FROM token") == [("100",)]
    assert rows("SELECT probe_id FROM probe_request") == [(101,)]


async def test_dry_run_counts_what_then_goes(writer: Writer, purge: Purge, path: Path) -> None:
    for n in range(30):
        rotten = (Rotten(reason="bad", content=b"%d" % n),)
        await writer.admit([proposal(event(f"a{n}"), event(f"b{n}"), rotten=rotten)])
    await applied(writer)
    await writer.write(
        lambda t: t.execute("UPDATE quarantine_entry SET resolved_at = ?, resolution = 'x'", (NOW,))
    )
    await writer.write(
        lambda t: t.execute("INSERT INTO attempt SELECT id, 1, 0, 0, 'done', 200, '' FROM job")
    )
    for days in (31, 91):
        now = NOW + days * DAY
        horizons = Horizons(bodies=now - BODIES, keys=now - KEYS, now=now)
        with database.reading(path.parent) as reading:
            told = old.old(reading, horizons)
        gone = await purge(days)
        kinds = ("bodies", "events", "jobs", "notifications", "quarantine")
        assert {kind: told[kind] for kind in kinds} == {kind: gone[kind] for kind in kinds}
        assert told["bytes"] > 0


async def test_step_ends_when_its_time_is_up_and_the_next_goes_on(writer: Writer) -> None:
    for n in range(10):
        await writer.admit([proposal(*(event(f"{n}-{m}") for m in range(20)))])
    await applied(writer)
    now = NOW + 91 * DAY
    walk = retention.Walk(stage=retention.KEYS, before=now - KEYS, now=now)
    counts: Counts = Counts()
    seen = [0]
    while not await writer.write(lambda t: walk.step(t, lambda: True, counts)):
        seen.append(counts["events"])
    assert max(after - before for before, after in pairwise(seen)) == retention.CHUNK
    assert seen[-1] == 199


def size(path: Path) -> int:
    return path.stat().st_size


async def test_file_becomes_shorter(writer: Writer, purge: Purge, path: Path) -> None:
    for n in range(40):
        await writer.admit([proposal(event(f"{n}"), body=b"x" * 50_000)])
    await applied(writer)
    await writer.fold()
    before = size(path)
    await purge(31)
    assert await writer.fold()
    assert size(path) < before / 5
    assert size(path.with_name(path.name + "-wal")) == 0


async def test_room_is_left_for_what_comes_next(
    writer: Writer, path: Path, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeps, "SPARE_PAGES", 100)
    for n in range(40):
        await writer.admit([proposal(event(f"{n}"), body=b"x" * 50_000)])
    await applied(writer)
    now = NOW + 31 * DAY
    horizons = Horizons(bodies=now - BODIES, keys=now - KEYS, now=now, spare=True)

    def run(t: Transaction) -> None:
        for sweep in sweeps.all_of_a_pass(horizons):
            assert sweep.step(t, lambda: False, Counts())

    await writer.write(run)
    assert rows("PRAGMA freelist_count") == [(100,)]


async def test_claimed_work_is_not_overtaken(writer: Writer, purge: Purge, rows: Rows) -> None:
    """Whoever holds a job will read its event."""
    await writer.admit([proposal(event("a"))])
    lease = Lease(instance=1, token=1)
    await writer.write(lambda t: jobs.claim(t, "apply", lease, now=NOW, horizon=NOW + DAY, limit=1))
    await purge(400)
    assert rows("SELECT content FROM events") == [("{}",)]


STATEMENTS = {
    "next deliveries": retention.NEXT_DELIVERIES,
    "free deliveries": retention.FREE_DELIVERIES,
    "next events": retention.NEXT_EVENTS,
    "free events": retention.FREE_EVENTS,
    "deliveries of": retention.DELIVERIES_OF,
    "bodies": retention.DROP_BODIES,
    "own content": retention.DROP_OWN_CONTENT,
    "content aside": retention.DROP_CONTENT_ASIDE,
    "attempts": retention.DROP_ATTEMPTS,
    **retention.DROP_EVENTS,
    "unused deliveries": retention.DROP_UNUSED_DELIVERIES,
    "kept": retention.KEPT,
    "entries": sweeps.DROP_ENTRIES,
    "tokens": sweeps.DROP_TOKENS,
}
ASKED = {
    "after": 0,
    "before": NOW,
    "limit": 10,
    "ids": json.dumps([1]),
    "stage": "keys",
    "reasons": sweeps.REASONS,
}


@pytest.mark.parametrize("statement", STATEMENTS.values(), ids=STATEMENTS.keys())
def test_step_finds_its_rows_by_an_index(path: Path, statement: str) -> None:
    with database.reading(path.parent) as transaction:
        plan = [
            row["detail"] for row in transaction.execute(f"EXPLAIN QUERY PLAN {statement}", ASKED)
        ]
    walked = ("SCAN wanted", "SCAN json_each", "SCAN constant")
    assert [step for step in plan if step.startswith("SCAN ") and not step.startswith(walked)] == []


@pytest.mark.parametrize("table", ["event", "delivery", "job"])
def test_foreign_keys_are_checked_by_an_index(path: Path, table: str) -> None:
    """Dropping one row looks for those that hang on it: it must not read whole tables."""
    with database.reading(path.parent) as transaction:
        transaction.execute("PRAGMA query_only = OFF")
        program = transaction.execute(f"EXPLAIN DELETE FROM {table} WHERE id = 1").fetchall()
    assert [row["opcode"] for row in program if row["opcode"] == "Rewind"] == []
