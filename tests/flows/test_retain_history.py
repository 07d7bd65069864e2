"""Whatever happened, and whenever retention took what: no suppression, status or repeat is lost."""

import contextlib
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from hookbox.errors import OperatorError
from hookbox.model import BounceClass, Kind, Notification
from hookbox.rules.suppression import Budget, Cause
from hookbox.store.suppressions import Wanted
from tests.flows.past import Box
from tests.store.facts import DAY, HOUR, NOW, said
from tests.store.passes import swept

HARD, SOFT = BounceClass.HARD, BounceClass.SOFT
ANN = "ann@example.com"
BODIES, KEYS_KEPT = 10 * DAY, 20 * DAY
BUDGET = Budget(messages=2, window_ms=5 * DAY)


class AgingBox(Box):
    """Time passes, work is left undone and done later, and retention takes what is old."""

    def __init__(self, state: Path, budget: Budget = BUDGET) -> None:
        super().__init__(state, budget)
        self.received_at = NOW
        self.arrived: dict[int, int] = {}

    def hear(self, *batch: Sequence[Notification], source: str = "a") -> list[int]:
        """What is told happened about now."""
        moved = self.received_at - NOW
        shifted = [
            [replace(n, occurred_at=(n.occurred_at or NOW) + moved) for n in told] for told in batch
        ]
        ids = self.tell(*shifted, source=source)
        self.arrived |= dict.fromkeys(ids, self.received_at)
        return ids

    def leave_undone(self, event_id: int) -> None:
        add = (
            "INSERT INTO job (event_id, target, run_at) SELECT id, 'forward:x', 0 FROM event"
            " WHERE id = ? ON CONFLICT DO NOTHING"
        )
        self.run(lambda t: t.execute(add, (event_id,)))

    def finish(self) -> None:
        done = "UPDATE job SET state = 'completed', finished_at = 0 WHERE state = 'available'"
        self.run(lambda t: t.execute(done))

    def purge(self, *, in_steps: bool = False) -> dict[str, int]:
        now = self.received_at
        return self.run(
            lambda t: swept(
                t, bodies=now - BODIES, keys=now - KEYS_KEPT, now=now, in_steps=in_steps
            )
        )

    def known(self) -> set[int]:
        return self.run(lambda t: {row["id"] for row in t.execute("SELECT id FROM event")})


# --- property

NO_SHRINK = (Phase.explicit, Phase.reuse, Phase.generate)
addresses = st.sampled_from([ANN, "Ann@EXAMPLE.com", "bob@example.com"])
notifications = st.builds(
    said,
    st.sampled_from([*Kind, *[Kind.BOUNCED] * 6, *[Kind.DELIVERED] * 3]),
    addresses,
    at=st.integers(-30, 20).map(lambda n: NOW + n * HOUR),
    message=st.sampled_from(["m1", "m2", "m3", "m4", None]),
    bounce=st.sampled_from([None, HARD, SOFT, SOFT, SOFT, BounceClass.BLOCK]),
    scope=st.sampled_from(["", "group"]),
    meaning=st.sampled_from([None, None, None, "x", "y"]),
)
event = st.lists(notifications, min_size=1, max_size=2)
wanted = st.builds(
    Wanted,
    address=addresses,
    cause=st.sampled_from([Cause.MANUAL, Cause.IMPORTED]),
    since=st.just(NOW),
)
steps = st.one_of(
    st.tuples(st.just("hear"), st.lists(event, min_size=1, max_size=4), st.sampled_from("aab")),
    st.tuples(st.just("hear"), st.lists(event, min_size=1, max_size=4), st.sampled_from("aab")),
    st.tuples(st.just("wait"), st.integers(1, 30)),
    st.tuples(st.just("wait"), st.integers(1, 9)),
    st.tuples(st.just("purge"), st.booleans()),
    st.tuples(st.just("purge"), st.booleans()),
    st.tuples(st.just("leave_undone"), st.integers(0, 30)),
    st.tuples(st.just("finish")),
    st.tuples(st.just("replay"), st.integers(0, 30)),
    st.tuples(st.just("forget"), st.integers(0, 30)),
    st.tuples(st.just("suppress"), wanted),
    st.tuples(st.just("lift"), addresses),
)  # fmt: skip


def play(box: AgingBox, told: Sequence[tuple[object, ...]]) -> None:
    """Let all of this happen; what cannot be done is not."""
    ids: list[int] = []
    for verb, *rest in told:
        with contextlib.suppress(OperatorError):
            match verb, *rest:
                case "hear", batch, source:
                    ids += box.hear(*batch, source=source)  # type: ignore[misc]
                case "wait", days:
                    box.received_at += int(str(days)) * DAY
                case "purge", in_steps:
                    purge(box, in_steps=bool(in_steps))
                case "lift", address:
                    box.lift(str(address), at=box.received_at)
                case "leave_undone" | "replay" | "forget" as name, number:
                    if ids:
                        getattr(box, name)(ids[int(str(number)) % len(ids)])
                case name, *asked:
                    getattr(box, str(name))(*asked)


def purge(box: AgingBox, *, in_steps: bool) -> None:
    """Nothing that counts changes by it."""
    before = sorted(box.suppressed()), sorted(box.statuses())
    box.purge(in_steps=in_steps)
    assert (sorted(box.suppressed()), sorted(box.statuses())) == before


@settings(max_examples=80, deadline=None, phases=NO_SHRINK)
@given(st.lists(steps, max_size=14))
def test_rebuild_after_any_history_of_purges_finds_no_difference(
    told: list[tuple[object, ...]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        box = AgingBox(Path(folder))
        play(box, told)
        young = {n for n, at in box.arrived.items() if at >= box.received_at - KEYS_KEPT}
        assert young <= box.known(), "a repeat of these would be news"
        outcome = box.rebuild()
        assert (outcome.differences, outcome.retold, outcome.unread) == ([], set(), 0)


# --- what only the order in which things happened tells


@pytest.fixture
def box(tmp_path: Path) -> AgingBox:
    return AgingBox(tmp_path)


def soft(message: str, address: str = ANN) -> list[Notification]:
    return [said(Kind.BOUNCED, address, bounce=SOFT, message=message)]


def test_spent_budget_stands_when_what_spent_it_is_gone(box: AgingBox) -> None:
    box.hear(soft("m1"))
    box.received_at += 3 * DAY
    [second] = box.hear(soft("m2"))
    assert box.suppressed() == [(ANN, "", "transient_budget")]
    box.received_at += KEYS_KEPT - DAY
    box.purge()
    assert box.known() == {second}
    assert box.rebuild().empty


def test_status_that_was_delivered_once_is_not_soft_in_a_rebuild(box: AgingBox) -> None:
    """m1 was delivered by an event that is gone; the soft bounce after it never counted."""
    box.hear([said(Kind.DELIVERED, message="m1")])
    box.received_at += 15 * DAY
    box.hear(soft("m1"))
    box.received_at += DAY
    box.hear(soft("m2"))
    if_delivered = box.suppressed()
    box.received_at += 8 * DAY
    box.purge()
    box.hear([said(Kind.BOUNCED, bounce=BounceClass.BLOCK, message="m1")])
    assert (len(box.known()), if_delivered) == (3, [])
    assert box.rebuild().empty


def test_what_a_later_event_had_superseded_is_kept_with_the_status(box: AgingBox) -> None:
    box.hear([said(Kind.DELIVERED, message="m1")])
    box.received_at += 15 * DAY
    box.hear(soft("m1"))
    box.hear(soft("m2"))
    box.hear([said(Kind.BOUNCED, bounce=BounceClass.BLOCK, message="m1")])
    box.received_at += 8 * DAY
    box.purge()
    assert (len(box.known()), box.suppressed()) == (3, [])
    assert box.rebuild().empty


def test_who_told_a_fact_first_stays_until_those_who_told_it_again_are_gone(box: AgingBox) -> None:
    told = [said(Kind.COMPLAINED, meaning="x")]
    [first] = box.hear(told)
    box.received_at += 10 * DAY
    [again] = box.hear(told)
    [other] = box.hear([said(Kind.OPENED)])
    box.received_at += 15 * DAY
    box.purge()
    assert box.known() == {first, again, other}
    box.received_at += 10 * DAY
    box.purge()
    box.purge()
    assert box.known() == {other}, "the newest stays"
    assert box.rebuild().empty
    assert box.suppressed() == [(ANN, "", "complaint")]


def test_budget_is_counted_anew_for_the_time_of_which_everything_is_there(box: AgingBox) -> None:
    box.hear([said(Kind.OPENED)])
    box.received_at += 40 * DAY
    box.hear(soft("m1"), soft("m2"))
    box.purge()
    assert len(box.known()) == 2
    box.budget = replace(BUDGET, messages=3)
    assert [each.address for each in box.rebuild().loosening] == [ANN]


def test_rebuild_that_retention_took_events_from_changes_nothing(box: AgingBox) -> None:
    box.hear([said(Kind.COMPLAINED)], [said(Kind.OPENED)])
    box.received_at += 40 * DAY
    with box.rebuilding() as (rebuild, fresh, name):
        box.purge()
        with pytest.raises(OperatorError, match="run it again"):
            rebuild.compare_again()
        with pytest.raises(OperatorError, match="run it again"):
            box.take(rebuild, fresh, name)


def test_ids_are_not_given_again_when_everything_was_old(box: AgingBox) -> None:
    last = box.hear([said(Kind.COMPLAINED)], [said(Kind.OPENED)])[-1]
    box.received_at += 400 * DAY
    box.purge()
    assert box.known() == {last}
