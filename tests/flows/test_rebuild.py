"""A rebuild comes to what was worked out bit by bit, and shows where that is not so."""

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from hookbox.errors import OperatorError
from hookbox.model import BounceClass, Kind, Notification, StoredEvent
from hookbox.rules.suppression import Budget, Cause
from hookbox.store import database, scratch
from hookbox.store.decisions import Verb
from hookbox.store.suppressions import Wanted
from tests.flows.past import Box, as_written
from tests.store.facts import DAY, HOUR, NOW, said

HARD, SOFT = BounceClass.HARD, BounceClass.SOFT
ANN = "ann@example.com"


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return Box(tmp_path)


# --- the same, whatever happened

NO_SHRINK = (Phase.explicit, Phase.reuse, Phase.generate)
addresses = st.sampled_from([ANN, "Ann@EXAMPLE.com", "bob@example.com"])
notifications = st.builds(
    said,
    st.sampled_from([*Kind, Kind.BOUNCED, Kind.BOUNCED, Kind.COMPLAINED]),
    addresses | st.none(),
    at=st.integers(-3, 3).map(lambda n: NOW + n * HOUR),
    message=st.sampled_from(["m1", "m2", "m3", "m4"]),
    bounce=st.sampled_from([None, HARD, SOFT, SOFT, BounceClass.BLOCK]),
    ambiguous=st.booleans(),
    candidates=st.lists(addresses, max_size=2).map(tuple),
    scope=st.sampled_from(["", "group"]),
    meaning=st.sampled_from([None, None, "x", "y"]),
)
event = st.lists(notifications, min_size=1, max_size=2)
wanted = st.builds(
    Wanted,
    address=addresses,
    cause=st.sampled_from([Cause.MANUAL, Cause.IMPORTED, Cause.COMPLAINT]),
    since=st.integers(-3, 1).map(lambda n: NOW + n * HOUR),
    scope=st.sampled_from(["", "news"]),
)
steps = st.one_of(
    st.tuples(st.just("tell"), st.lists(event, min_size=1, max_size=4), st.sampled_from("ab")),
    st.tuples(st.just("tell"), st.lists(event, min_size=1, max_size=4), st.sampled_from("ab")),
    st.tuples(st.just("replay"), st.integers(0, 30)),
    st.tuples(st.just("forget"), st.integers(0, 30)),
    st.tuples(st.just("drop_content"), st.integers(0, 30)),
    st.tuples(st.just("suppress"), st.lists(wanted, min_size=1, max_size=2)),
    st.tuples(
        st.just("lift"),
        addresses,
        st.sampled_from(["", "news"]),
        st.integers(-2, 2).map(lambda n: NOW + n * HOUR),
    ),
)


def play(box: Box, told: Sequence[tuple[object, ...]]) -> None:
    """Let all of this happen; what cannot be done is not."""
    ids: list[int] = []
    for verb, *rest in told:
        try:
            match verb, *rest:
                case "tell", batch, source:
                    ids += box.tell(*batch, source=source)
                case "suppress", asked:
                    box.suppress(*asked)
                case "lift", address, scope, at:
                    box.lift(address, scope, at)
                case name, number:
                    if ids:
                        getattr(box, str(name))(ids[int(number) % len(ids)])
        except OperatorError:
            continue


@settings(max_examples=60, deadline=None, phases=NO_SHRINK)
@given(st.lists(steps, max_size=10))
def test_rebuild_comes_to_what_was_worked_out_bit_by_bit(told: list[tuple[object, ...]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        box = Box(Path(folder), Budget(messages=2))
        play(box, told)
        outcome = box.rebuild()
        assert (outcome.differences, outcome.retold, outcome.unread) == ([], set(), 0)


@settings(max_examples=30, deadline=None, phases=NO_SHRINK)
@given(st.lists(steps, max_size=8), st.data())
def test_damaged_ledger_is_what_it_was_after_a_rebuild(
    told: list[tuple[object, ...]], data: st.DataObject
) -> None:
    """Statuses and causes are lost at random; all of them come back, whatever happened."""
    with tempfile.TemporaryDirectory() as folder:
        box = Box(Path(folder), Budget(messages=2))
        play(box, told)
        before = {"status": box.rows("status"), "suppressed": sorted(box.suppressed())}
        damage = data.draw(st.sampled_from([
            "DELETE FROM status WHERE event_id % 2 = 0",
            "UPDATE status SET rank = 10, kind = 'queued', bounce_class = NULL",
            "UPDATE suppression SET reason = 'manual', since = 1 WHERE lift_id IS NULL",
        ]))  # fmt: skip
        box.run(lambda t: t.execute(damage))
        box.rebuild(take=True)
        assert sorted(box.suppressed()) == before["suppressed"]
        assert box.rows("status") == before["status"]
        assert box.rebuild().empty


# --- what it is for


def gentler(event: StoredEvent) -> tuple[Notification, ...]:
    """A mended provider: what it took for hard bounces were soft ones."""
    return tuple(
        replace(each, bounce_class=SOFT) if each.bounce_class is HARD else each
        for each in as_written(event)
    )


def stricter(event: StoredEvent) -> tuple[Notification, ...]:
    """A mended provider: what it took for soft bounces were hard ones."""
    return tuple(
        replace(each, bounce_class=HARD) if each.bounce_class is SOFT else each
        for each in as_written(event)
    )


def test_what_a_mended_provider_reads_is_taken_over(box: Box) -> None:
    box.tell([said(Kind.BOUNCED, bounce=SOFT)], [said(Kind.DELIVERED, message="m2")])
    box.mended(stricter)
    found = box.rebuild()
    assert [(each.what, each.before is None) for each in found.differences] == [
        ("status", False), ("suppression", True),
    ]  # fmt: skip
    assert (found.retold, found.loosening) == ({1}, [])
    assert box.suppressed() == [], "only looked so far"
    box.rebuild(take=True)
    assert box.suppressed() == [(ANN, "", "hard_bounce")]
    assert box.statuses() == [(ANN, "bounced", "hard"), (ANN, "delivered", None)]
    assert {row[0]: row[3] for row in box.rows("notification")} == {1: "hard", 2: None}
    assert box.rebuild().empty


def test_suppression_that_nothing_asks_for_any_more_is_lifted_in_a_persons_name(box: Box) -> None:
    box.tell([said(Kind.BOUNCED, bounce=HARD)])
    box.mended(gentler)
    found = box.rebuild()
    assert [each.address for each in found.loosening] == [ANN]
    box.rebuild(take=True)
    assert box.suppressed() == []
    [(*_, lift_id)] = box.rows("suppression")
    lifts = [row for row in box.rows("decision") if row[0] == lift_id]
    assert [(verb, who) for _, verb, _, who, _ in lifts] == [("lift", "eve")]
    assert "rebuild" in str(lifts[0][-1])
    assert box.statuses() == [(ANN, "bounced", "soft")]
    assert box.rebuild().empty


def test_what_came_of_other_events_is_told_anew(box: Box) -> None:
    box.tell([said(Kind.BOUNCED, bounce=HARD)], [said(Kind.DELIVERED)])
    box.mended(gentler)
    assert box.rebuild(take=True).reworded == {2}
    with database.reading(box.state) as transaction:
        rows = transaction.execute("SELECT event_id, effect FROM notifications")
        effects = {row["event_id"]: row["effect"] for row in rows}
    assert effects == {1: "status bounced (soft)", 2: "status delivered"}


def test_smaller_budget_is_charged_for_what_came_before(tmp_path: Path) -> None:
    box = Box(tmp_path, Budget(messages=5))
    for number in range(3):
        box.tell([said(Kind.BOUNCED, bounce=SOFT, message=f"m{number}", at=NOW + number)])
    box.budget = Budget(messages=3)
    assert box.rebuild(take=True).loosening == []
    assert box.suppressed() == [(ANN, "", "transient_budget")]
    box.budget = Budget(messages=5)
    assert [each.address for each in box.rebuild().loosening] == [ANN]


def test_event_that_can_no_longer_be_read_stays_as_written(box: Box) -> None:
    box.tell(
        [said(Kind.COMPLAINED)],
        [said(Kind.COMPLAINED, None, ambiguous=True, candidates=("c@x.org", "d@x.org"))],
        source="b",
    )
    box.drop_content(1)
    box.drop_content(2)
    box.mended(lambda event: (said(Kind.UNKNOWN),))
    assert box.rebuild().empty
    assert {row[0] for row in box.suppressed()} == {ANN, "c@x.org", "d@x.org"}


def test_mistake_in_a_provider_loses_no_fact(box: Box) -> None:
    def broken(_: StoredEvent) -> tuple[Notification, ...]:
        raise ValueError("a mistake of ours")

    box.tell([said(Kind.COMPLAINED)])
    box.mended(broken)
    found = box.rebuild()
    assert (found.empty, found.unread) == (True, 1)


def test_what_is_known_from_events_that_are_gone_stays(box: Box) -> None:
    box.tell(
        [said(Kind.COMPLAINED)],
        [said(Kind.BOUNCED, "bob@x.org", bounce=HARD, message="m2")],
        [said(Kind.BOUNCED, "bob@x.org", bounce=HARD, message="m3", at=NOW + DAY)],
        [said(Kind.DELIVERED, "eve@x.org", message="m4")],
    )
    before = box.suppressed(), box.statuses()
    for event_id in (1, 2, 4):
        box.drop_event(event_id)
    assert box.rebuild(take=True).empty
    assert (box.suppressed(), box.statuses()) == before


def test_what_came_from_a_source_that_is_no_longer_configured_stays(box: Box) -> None:
    box.tell([said(Kind.COMPLAINED)])
    box.tell([said(Kind.BOUNCED, "bob@x.org", bounce=HARD)], source="b")
    before = box.suppressed(), box.statuses()
    del box.sources["b"]
    box.mended(gentler)
    assert box.rebuild(take=True).empty
    assert (box.suppressed(), box.statuses()) == before


def test_persons_words_stay_whatever_events_say(box: Box) -> None:
    box.suppress(Wanted(address="kept@x.org", cause=Cause.MANUAL, since=NOW))
    box.suppress(
        Wanted(address="old@x.org", cause=Cause.COMPLAINT, since=NOW - DAY, scope="news"),
        verb=Verb.IMPORT,
    )
    box.tell([said(Kind.COMPLAINED)])
    box.lift(ANN, at=NOW + HOUR)
    box.mended(lambda event: (said(Kind.UNKNOWN),))
    box.rebuild(take=True)
    assert sorted(box.suppressed()) == [
        ("kept@x.org", "", "manual"), ("old@x.org", "news", "complaint"),
    ]  # fmt: skip
    assert len(box.rows("suppression")) == 3, "the lifted one is not forgotten"


# --- beside a box that goes on


def test_what_is_applied_meanwhile_is_caught_up_with(box: Box) -> None:
    box.tell([said(Kind.BOUNCED, bounce=SOFT)])
    box.mended(stricter)
    with box.rebuilding() as (rebuild, fresh, name):
        box.tell([said(Kind.COMPLAINED, "late@x.org")])
        box.suppress(Wanted(address="hand@x.org", cause=Cause.MANUAL, since=NOW))
        box.tell([said(Kind.DELIVERED)])
        assert rebuild.follow() == 3
        rebuild.compare_again()
        assert {each.address for each in rebuild.outcome.differences} == {ANN}
        box.take(rebuild, fresh, name)
    assert {row[0] for row in box.suppressed()} == {ANN, "late@x.org", "hand@x.org"}
    assert box.rebuild().empty


def test_replay_meanwhile_is_looked_at_again(box: Box) -> None:
    [event_id] = box.tell([said(Kind.BOUNCED, bounce=SOFT)])
    box.mended(stricter)
    with box.rebuilding() as (rebuild, _, _):
        assert not rebuild.outcome.empty
        box.replay(event_id)
        rebuild.follow()
        rebuild.compare_again()
        assert rebuild.outcome.empty


@pytest.mark.parametrize("meanwhile", ["event", "decision"])
def test_box_that_moved_on_is_left_as_it_is(box: Box, meanwhile: str) -> None:
    box.tell([said(Kind.BOUNCED, bounce=SOFT)])
    box.mended(stricter)
    with box.rebuilding() as (rebuild, fresh, name):
        rebuild.compare_again()
        if meanwhile == "event":
            box.tell([said(Kind.OPENED)])
        else:
            box.suppress(Wanted(address="hand@x.org", cause=Cause.MANUAL, since=NOW))
        before = box.everything()
        with pytest.raises(OperatorError, match="run it again"):
            box.take(rebuild, fresh, name)
    assert box.everything() == before


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE status SET rank = 20, kind = 'sent', bounce_class = NULL",
        "UPDATE suppression SET since = 7",
    ],
)
def test_row_that_is_not_as_it_was_compared_stops_the_swap(box: Box, change: str) -> None:
    box.tell([said(Kind.BOUNCED, bounce=HARD)])
    box.mended(gentler)
    with box.rebuilding() as (rebuild, fresh, name):
        rebuild.compare_again()
        box.run(lambda t: t.execute(change))
        before = box.everything()
        with pytest.raises(OperatorError, match="run it again"):
            box.take(rebuild, fresh, name)
    assert box.everything() == before


def test_scratch_ledger_is_gone_afterwards_and_so_is_what_a_killed_one_left(box: Box) -> None:
    left = box.state / "rebuild-999999999.db"
    left.touch()
    running = box.state / "rebuild-1.db"
    running.touch()
    box.rebuild()
    assert [each.name for each in box.state.glob("rebuild-*")] == [running.name]


@pytest.mark.parametrize("name", ["hookbox.db", "../rebuild-1.db", "rebuild-/x.db"])
def test_swap_reads_nothing_but_scratch_ledgers(box: Box, name: str) -> None:
    with pytest.raises(OperatorError, match="nothing was changed"):
        scratch.named(box.state, name)


def test_history_longer_than_a_read_is_followed_to_its_end(box: Box) -> None:
    many = [[said(Kind.COMPLAINED, f"u{n}@x.org", message=f"m{n}")] for n in range(450)]
    box.tell(*many)
    with box.rebuilding() as (rebuild, _, _):
        assert rebuild.position == 450
        rebuild.compare_again()
        assert rebuild.outcome.empty
