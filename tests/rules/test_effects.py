"""What a claim is answered, and when a lease counts as over."""

from dataclasses import replace

import pytest

from hookbox.rules import effects
from hookbox.rules.effects import Claim, Effect, IfUnknown, Outcome, Verdict

NOW = 1_700_000_000_000
LEASE_MS = 300_000
HELD = Effect(
    key="reply:7",
    token="first",
    claimed_by="ann",
    claimed_at=NOW - 1_000,
    renewed_at=NOW,
    lease_ms=LEASE_MS,
)


def claim(if_unknown: IfUnknown = IfUnknown.STOP, token: str = "second", **other: object) -> Claim:
    facts = {"key": "reply:7", "token": token, "who": "bob", "lease_ms": LEASE_MS, **other}
    return Claim(if_unknown=if_unknown, **facts)  # type: ignore[arg-type]


@pytest.mark.parametrize("policy", IfUnknown)
@pytest.mark.parametrize("later_ms", [0, 1, LEASE_MS - 1])
def test_live_lease_is_nobody_elses(policy: IfUnknown, later_ms: int) -> None:
    answer = effects.claimed(HELD, claim(policy), NOW + later_ms)
    assert (answer.outcome, answer.effect) == (Outcome.IN_PROGRESS, HELD)


def test_lease_that_is_over_is_unknown_and_stays_so_under_stop() -> None:
    for later_ms in (LEASE_MS, LEASE_MS + 1, 10**11):
        answer = effects.claimed(HELD, claim(), NOW + later_ms)
        assert (answer.outcome, answer.effect) == (Outcome.UNKNOWN, HELD)


def test_retry_takes_the_place_of_the_unknown_claim_and_is_told_of_it() -> None:
    answer = effects.claimed(HELD, claim(IfUnknown.RETRY), NOW + LEASE_MS)
    assert (answer.outcome, answer.before) == (Outcome.WON, HELD)
    assert answer.effect is not None
    assert answer.effect.token == "second"


@pytest.mark.parametrize(
    ("back_ms", "outcome"),
    [
        (1, Outcome.IN_PROGRESS),
        (LEASE_MS, Outcome.IN_PROGRESS),
        (LEASE_MS + 1, Outcome.UNKNOWN),
        (10**11, Outcome.UNKNOWN),
    ],
)
def test_clock_set_back_prolongs_a_lease_by_its_own_length_at_most(
    back_ms: int, outcome: Outcome
) -> None:
    """A clock that once was years ahead must not keep an effect in progress for years."""
    assert effects.looked(HELD, NOW - back_ms).outcome is outcome


@pytest.mark.parametrize("stepped_ms", [-(10**11), 10**11])
def test_renewal_mends_a_lease_after_the_clock_was_set(stepped_ms: int) -> None:
    now = NOW + stepped_ms
    assert effects.looked(HELD, now).outcome is Outcome.UNKNOWN
    answer = effects.renewed(HELD, "first", now)
    assert answer.outcome is Outcome.RENEWED
    assert effects.looked(answer.effect, now).outcome is Outcome.IN_PROGRESS


def test_claim_whose_answer_was_lost_is_won_when_asked_again() -> None:
    again = effects.claimed(HELD, claim(token="first"), NOW + 10)
    assert again.outcome is Outcome.WON
    assert again.before is None


def test_completion_said_twice_keeps_the_first_result() -> None:
    done = effects.completed(HELD, "first", "sent", NOW)
    again = effects.completed(done.effect, "first", "sent twice", NOW + 5)
    assert again == done
    assert effects.claimed(done.effect, claim(IfUnknown.RETRY), NOW + 10**11).outcome is (
        Outcome.DONE
    )


@pytest.mark.parametrize("effect", [HELD, replace(HELD, completed_at=NOW, result="sent")])
def test_other_token_changes_nothing_and_is_told_so(effect: Effect) -> None:
    for answer in (
        effects.completed(effect, "late", "sent", NOW),
        effects.renewed(effect, "late", NOW),
        effects.abandoned(effect, "late"),
    ):
        assert (answer.outcome, answer.effect) == (Outcome.FENCED, effect)


def test_holder_that_completed_can_neither_renew_nor_abandon() -> None:
    done = effects.completed(HELD, "first", "sent", NOW).effect
    assert effects.renewed(done, "first", NOW).outcome is Outcome.FENCED
    assert effects.abandoned(done, "first").outcome is Outcome.FENCED


def test_only_the_unknown_can_be_settled_and_its_holder_is_fenced_then() -> None:
    late = NOW + LEASE_MS
    assert effects.settled(None, Verdict.DONE, late).before is None
    assert effects.settled(HELD, Verdict.DONE, NOW).before is None
    done = effects.settled(HELD, Verdict.DONE, late)
    assert done.before == HELD
    assert effects.completed(done.effect, "first", "sent", late).outcome is Outcome.FENCED
    undone = effects.settled(HELD, Verdict.UNDONE, late)
    assert (undone.before, undone.effect) == (HELD, None)


@pytest.mark.parametrize("key", ["", "k" * 201, "a\nb", "a\0b", "\x7f", "\ud800", "\u202e"])
def test_key_is_short_and_printable(key: str) -> None:
    with pytest.raises(ValueError, match="a key"):
        claim(key=key)


@pytest.mark.parametrize("key", ["k", "k" * 200, "reply: 7/é", " ", "../.."])
def test_any_printable_key_is_taken_as_it_is(key: str) -> None:
    assert claim(key=key).key == key


@pytest.mark.parametrize("lease_ms", [0, -1, 24 * 3_600_000 + 1])
def test_lease_is_bounded(lease_ms: int) -> None:
    with pytest.raises(ValueError, match="lease"):
        claim(lease_ms=lease_ms)


@pytest.mark.parametrize(
    "output", [b"", b"sent\n", b"\xff" * 70_000, "é".encode() * 40_000, b"x" * 65_535 + b"\xc3\xa9"]
)
def test_output_of_any_kind_becomes_a_result_that_fits(output: bytes) -> None:
    result = effects.fitting(output)
    assert effects.check_result(result) == result
    if len(output) <= effects.RESULT_BYTES_MAX and output.isascii():
        assert result.encode() == output


def test_result_that_is_too_long_or_no_text_is_refused() -> None:
    for result in ("x" * 65_537, "é" * 32_769, "\ud800"):
        with pytest.raises(ValueError, match=r"65536|surrogates"):
            effects.check_result(result)
