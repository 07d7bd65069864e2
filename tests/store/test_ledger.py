"""Out-of-order, repeated, contradictory reports become one true answer per recipient."""

import itertools
import random
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hookbox.model import BounceClass, Kind, Notification, RejectReason
from hookbox.rules.lifecycle import Status, joined, reported
from hookbox.rules.suppression import Budget, cause_of
from hookbox.store.ledger import Applied
from tests.store.facts import DAY, HOUR, NOW, Ledger, said

HARD, SOFT = BounceClass.HARD, BounceClass.SOFT


def test_late_delivered_leaves_complaint_standing() -> None:
    ledger = Ledger()
    ledger.tell(said(Kind.COMPLAINED, at=NOW))
    ledger.tell(said(Kind.DELIVERED, at=NOW - 12 * 60_000))
    ledger.tell(said(Kind.OPENED, at=NOW + 10_000))
    assert ledger.status() == [(1, "m1", "ann@example.com", "complained", None, NOW)]
    assert ledger.suppressed() == [("ann@example.com", "", "complaint", NOW)]
    assert ledger.effects() == [
        "status complained; suppressed (complaint)",
        "late delivered ignored: already complained",
        "",
    ]


def test_older_complaint_arriving_after_a_newer_delivered_still_suppresses() -> None:
    ledger = Ledger()
    ledger.tell(said(Kind.DELIVERED, at=NOW, message="m2"))
    ledger.tell(said(Kind.COMPLAINED, at=NOW - 9 * DAY, message="m1"))
    assert ledger.suppressed() == [("ann@example.com", "", "complaint", NOW - 9 * DAY)]


def test_accepted_is_not_delivered() -> None:
    ledger = Ledger()
    ledger.tell(said(Kind.QUEUED))
    ledger.tell(said(Kind.SENT))
    assert [row[3] for row in ledger.status()] == ["sent"]


def test_bounce_after_delivery_counts() -> None:
    ledger = Ledger()
    ledger.tell(said(Kind.DELIVERED))
    ledger.tell(said(Kind.BOUNCED, at=NOW + HOUR, bounce=HARD))
    assert [row[3] for row in ledger.status()] == ["bounced"]
    assert ledger.suppressed() == [("ann@example.com", "", "hard_bounce", NOW + HOUR)]


def test_five_recipients_of_one_message_end_in_five_states() -> None:
    ledger = Ledger()
    states = [
        said(Kind.SENT, "a@example.com"),
        said(Kind.DEFERRED, "b@example.com"),
        said(Kind.DELIVERED, "c@example.com"),
        said(Kind.BOUNCED, "d@example.com", bounce=HARD),
        said(Kind.COMPLAINED, "e@example.com"),
    ]
    ledger.tell(*states)
    assert [row[3] for row in ledger.status()] == [
        "sent", "deferred", "delivered", "bounced", "complained",
    ]  # fmt: skip
    assert [row[0] for row in ledger.suppressed()] == ["d@example.com", "e@example.com"]


def test_spellings_of_one_address_are_one_recipient_shown_as_first_seen() -> None:
    ledger = Ledger()
    ledger.tell(said(Kind.DELIVERED, "Buyer@Example.COM"))
    ledger.tell(said(Kind.BOUNCED, "buyer@example.com", bounce=HARD))
    assert ledger.rows("SELECT recipient, status FROM recipients") == [
        ("Buyer@Example.COM", "bounced")
    ]
    assert ledger.rows("SELECT address FROM suppressions") == [("buyer@example.com",)]


@pytest.mark.parametrize(
    "notification",
    [
        said(Kind.BOUNCED, bounce=BounceClass.BLOCK),
        said(Kind.BOUNCED, bounce=SOFT),
        said(Kind.BOUNCED, bounce=BounceClass.UNDETERMINED),
        said(Kind.BOUNCED),
        said(Kind.DEFERRED),
        said(Kind.AUTORESPONDED),
        said(Kind.FAILED),
        said(Kind.REJECTED, reject_reason=RejectReason.BLOCKED),
        said(Kind.UNSUBSCRIBED, scope="group:7"),
        said(Kind.SUBSCRIBED),
        said(Kind.COMPLAINED, ambiguous=True),
        said(Kind.BOUNCED, None, bounce=HARD, ambiguous=True, candidates=("a@x.org", "b@x.org")),
        said(Kind.UNKNOWN),
    ],
    ids=lambda n: f"{n.kind}-{n.bounce_class}-{n.scope}-{n.ambiguous}",
)
def test_what_is_not_about_the_address_never_suppresses(notification: Notification) -> None:
    ledger = Ledger()
    ledger.tell(notification)
    assert ledger.suppressed() == []


def test_ambiguous_complaint_moves_nobody_unless_the_operator_says_so() -> None:
    both = said(Kind.COMPLAINED, None, ambiguous=True, candidates=("a@x.org", "b@x.org"))
    careful, strict = Ledger(), Ledger()
    careful.tell(both)
    strict.tell(both, suppress_ambiguous=True)
    assert (careful.status(), careful.suppressed()) == ([], [])
    assert [row[0] for row in strict.suppressed()] == ["a@x.org", "b@x.org"]


def test_provider_side_suppression_suppresses_with_its_own_reason() -> None:
    ledger = Ledger()
    refused = said(Kind.REJECTED, reject_reason=RejectReason.BOUNCED, suppress=True)
    left = said(Kind.REJECTED, "b@x.org", reject_reason=RejectReason.UNSUBSCRIBED, suppress=True)
    ledger.tell(refused)
    ledger.tell(left)
    assert [row[2] for row in ledger.suppressed()] == ["provider_suppression", "unsubscribed"]


def test_reactivation_by_the_provider_lifts_nothing() -> None:
    ledger = Ledger()
    ledger.tell(said(Kind.BOUNCED, bounce=HARD))
    ledger.tell(said(Kind.SUBSCRIBED, at=NOW + HOUR))
    assert [row[2] for row in ledger.suppressed()] == ["hard_bounce"]


def test_first_cause_stays_and_later_ones_are_listed() -> None:
    ledger = Ledger()
    ledger.tell(said(Kind.COMPLAINED, at=NOW + HOUR, message="m2"))
    ledger.tell(said(Kind.BOUNCED, at=NOW, bounce=HARD))
    ledger.tell(said(Kind.UNSUBSCRIBED, at=NOW + DAY, message="m3"))
    assert [row[2:] for row in ledger.suppressed()] == [("hard_bounce", NOW)]
    assert ledger.rows("SELECT reason FROM suppression_cause ORDER BY since") == [
        ("hard_bounce",), ("complaint",), ("unsubscribed",),
    ]  # fmt: skip


def test_lift_holds_against_what_happened_before_it_only() -> None:
    ledger = Ledger()
    ledger.tell(said(Kind.COMPLAINED, at=NOW))
    ledger.lift(at=NOW + HOUR)
    ledger.tell(said(Kind.BOUNCED, at=NOW - DAY, bounce=HARD, message="m0"))
    assert ledger.suppressed() == []
    ledger.tell(said(Kind.BOUNCED, at=NOW + 2 * HOUR, bounce=HARD, message="m2"))
    assert [row[2] for row in ledger.suppressed()] == ["hard_bounce"]
    assert ledger.rows("SELECT count(*) FROM suppression") == [(2,)]


def test_what_a_person_lifted_does_not_come_back_by_replay() -> None:
    """However far ahead the sender's clock was: the person has seen this very event."""
    ledger = Ledger()
    ahead = said(Kind.COMPLAINED, at=NOW + 5 * HOUR)
    event_id = ledger.tell(ahead)
    ledger.lift(at=NOW + HOUR)
    ledger.apply([Applied(event_id=event_id, source_id=1, notifications=(ahead,))])
    assert ledger.suppressed() == []
    assert ledger.effects() == ["still complained; complaint ignored: lifted by a person"]


# --- the transient budget


def test_one_greylisted_message_is_charged_once() -> None:
    ledger = Ledger()
    for n in range(10):
        ledger.tell(said(Kind.BOUNCED, at=NOW + n * 60_000, bounce=SOFT))
    assert ledger.suppressed() == []


def test_budget_is_spent_by_distinct_messages_and_then_holds() -> None:
    ledger = Ledger()
    for n in range(5):
        assert ledger.suppressed() == []
        ledger.tell(said(Kind.BOUNCED, at=NOW + n * HOUR, bounce=SOFT, message=f"m{n}"))
    spent = ("ann@example.com", "", "transient_budget", NOW + 4 * HOUR)
    assert ledger.suppressed() == [spent]
    ledger.tell(said(Kind.DELIVERED, at=NOW + 9 * HOUR, message="m9"))
    assert ledger.suppressed() == [spent]


def test_delivery_in_between_starts_the_count_anew() -> None:
    ledger = Ledger()
    for n in range(4):
        ledger.tell(said(Kind.BOUNCED, at=NOW + n * HOUR, bounce=SOFT, message=f"m{n}"))
    ledger.tell(said(Kind.DELIVERED, at=NOW + 5 * HOUR, message="ok"))
    for n in range(4):
        ledger.tell(said(Kind.BOUNCED, at=NOW + (9 + n) * HOUR, bounce=SOFT, message=f"n{n}"))
    assert ledger.suppressed() == []


def test_message_that_was_delivered_after_all_is_not_charged() -> None:
    ledger = Ledger()
    for n in range(4):
        ledger.tell(said(Kind.BOUNCED, at=NOW + n * HOUR, bounce=SOFT, message=f"m{n}"))
    ledger.tell(said(Kind.BOUNCED, at=NOW + 10 * HOUR, bounce=SOFT, message="m8"), said(
        Kind.DELIVERED, at=NOW - HOUR, message="m8"
    ))  # fmt: skip
    assert ledger.suppressed() == []


def test_bounces_spread_wider_than_the_window_do_not_add_up() -> None:
    ledger = Ledger(Budget(messages=3, window_ms=10 * DAY))
    for n in range(6):
        ledger.tell(said(Kind.BOUNCED, at=NOW + n * 6 * DAY, bounce=SOFT, message=f"m{n}"))
    assert ledger.suppressed() == []


def test_replay_of_a_soft_bounce_is_not_charged_again() -> None:
    ledger = Ledger()
    for n in range(4):
        event_id = ledger.tell(said(Kind.BOUNCED, at=NOW + n, bounce=SOFT, message=f"m{n}"))
    again = Applied(
        event_id=event_id,
        source_id=1,
        notifications=(said(Kind.BOUNCED, at=NOW + 3, bounce=SOFT, message="m3"),),
    )
    for _ in range(6):
        ledger.apply([again])
    assert ledger.suppressed() == []
    assert ledger.rows("SELECT count(*) FROM notification") == [(4,)]


# --- one fact under two keys


def test_one_fact_under_two_keys_counts_once_and_says_so() -> None:
    ledger = Ledger()
    first = ledger.tell(said(Kind.BOUNCED, bounce=HARD, meaning="f1#ann@example.com"))
    ledger.tell(said(Kind.BOUNCED, bounce=HARD, meaning="f1#ann@example.com"))
    assert ledger.effects() == [
        "status bounced (hard); suppressed (hard_bounce)",
        f"same fact as event {first}",
    ]


def test_one_fact_under_two_keys_in_one_batch_counts_once() -> None:
    ledger = Ledger()
    twice = [[said(Kind.DELIVERED, meaning="x")], [said(Kind.DELIVERED, meaning="x")]]
    ledger.tell_all(twice)
    assert ledger.effects() == ["status delivered", "same fact as event 1"]


def test_meaning_of_another_source_is_another_fact() -> None:
    ledger = Ledger()
    ledger.tell(said(Kind.DELIVERED, meaning="x"))
    ledger.tell(said(Kind.DELIVERED, meaning="x"), source_id=2)
    assert ledger.effects() == ["status delivered", "status delivered"]


def test_replay_of_a_fact_told_twice_still_counts_as_the_first() -> None:
    ledger = Ledger()
    fact = said(Kind.DELIVERED, meaning="x")
    first = ledger.tell(fact)
    ledger.tell(fact)
    ledger.apply([Applied(event_id=first, source_id=1, notifications=(fact,))])
    assert ledger.rows("SELECT event_id, claims FROM notification ORDER BY 1") == [(1, 1), (2, 0)]


# --- every order

kinds = st.sampled_from(list(Kind))
classes = st.none() | st.sampled_from(list(BounceClass))
notifications = st.builds(
    said,
    kinds,
    st.sampled_from(["ann@example.com", "Ann@EXAMPLE.com", "bob@example.com", None]),
    at=st.integers(0, 40).map(lambda n: NOW + n * DAY),
    message=st.sampled_from(["m1", "m2", "m3", None]),
    bounce=classes,
    ambiguous=st.booleans(),
    suppress=st.booleans(),
    scope=st.sampled_from(["", "group"]),
)
no_budget = Budget(messages=10_000)


@settings(max_examples=120)
@given(st.lists(notifications, max_size=10), st.randoms(use_true_random=False), st.data())
def test_any_order_and_repetition_ends_in_the_same_state(
    told: list[Notification], rng: random.Random, data: st.DataObject
) -> None:
    repeated = told + [rng.choice(told) for _ in range(5) if told]
    rng.shuffle(repeated)
    straight, shuffled = Ledger(no_budget), Ledger(no_budget)
    for each in told:
        straight.tell(each)
    cut = data.draw(st.integers(0, len(repeated)))
    shuffled.tell_all([[each] for each in repeated[:cut]])
    shuffled.tell_all([[each] for each in repeated[cut:]])
    assert shuffled.status() == straight.status()
    assert shuffled.suppressed() == straight.suppressed()


@settings(max_examples=120)
@given(st.lists(notifications, max_size=14), st.data())
def test_many_events_in_one_transaction_come_to_the_same_as_one_each(
    told: list[Notification], data: st.DataObject
) -> None:
    alone, together = Ledger(Budget(messages=2)), Ledger(Budget(messages=2))
    for each in told:
        alone.tell(each)
    cut = data.draw(st.integers(0, len(told)))
    together.tell_all([[each] for each in told[:cut]])
    together.tell_all([[each] for each in told[cut:]])
    for table in ("status", "suppression", "suppression_cause", "notification"):
        assert together.rows(f"SELECT * FROM {table}") == alone.rows(f"SELECT * FROM {table}")


@settings(max_examples=80)
@given(st.lists(notifications, max_size=25))
def test_nothing_but_a_person_ever_loosens(told: list[Notification]) -> None:
    ledger = Ledger(Budget(messages=2))
    before: set[object] = set()
    for each in told:
        ledger.tell(each)
        now = {row[0] for row in ledger.suppressed()}
        assert before <= now
        before = now


def test_all_orders_of_seven_reports_end_in_one_state() -> None:
    """Fifty random sets: all 5,040 orders by the rule alone, some through the database."""
    rng = random.Random(11)
    for _ in range(50):
        told = [_random_report(rng) for _ in range(7)]
        expected = _state(told)
        reports = [(each.message_id, reported(each, 1)) for each in told]
        orders = list(itertools.permutations(reports))
        assert len(orders) == 5_040
        assert all(_joined(order) == expected[0] for order in orders)
        for order in (rng.sample(told, 7) for _ in range(3)):
            ledger = Ledger(no_budget)
            for each in order:
                ledger.tell(each)
            assert _from_rows(ledger) == expected


def _random_report(rng: random.Random) -> Notification:
    kind = rng.choice(list(Kind))
    bounce = rng.choice(list(BounceClass)) if kind is Kind.BOUNCED else None
    return said(
        kind, at=NOW + rng.randrange(20) * HOUR, message=rng.choice(["m1", "m2"]), bounce=bounce
    )


Statuses = dict[str | None, tuple[object, ...]]


def _state(told: Sequence[Notification]) -> tuple[Statuses, bool]:
    suppressed = any(cause_of(each) is not None for each in told)
    return _joined([(each.message_id, reported(each, 1)) for each in told]), suppressed


def _joined(reports: Iterable[tuple[str | None, Status | None]]) -> Statuses:
    known: dict[str | None, Status] = {}
    for message, status in reports:
        if status is not None:
            known[message] = joined(known.get(message), status)
    return {m: (s.kind, s.bounce_class, s.at) for m, s in known.items()}


def _from_rows(ledger: Ledger) -> tuple[Statuses, bool]:
    found = {str(row[1]): tuple(row[3:]) for row in ledger.status()}
    return dict(found), bool(ledger.suppressed())
