"""Effects that must happen once: what a claim is answered, and who may still change what.

A holder claims an effect for the length of a lease, makes it happen, and completes it. The token is
random and the holder's alone; whoever shows another one changes nothing. A claim whose lease is
over is *unknown*: its holder died before the effect, or after it, or is only slow. Nothing here can
tell which, so the next one to ask has said what to do then, or a person finds out and settles it.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

KEY_MAX = 200
WHO_MAX = 200
# For an answer of the mail service or its message id, not for documents.
RESULT_BYTES_MAX = 64 * 1024
# A holder that needs longer renews its lease. A longer one would keep others from learning for
# longer that the holder is dead.
LEASE_MS_MAX = 24 * 3_600_000


class IfUnknown(StrEnum):
    """What a caller wants of an effect that may or may not have happened."""

    STOP = "stop"
    RETRY = "retry"


class Verdict(StrEnum):
    """What a person found out about an unknown effect."""

    DONE = "done"
    UNDONE = "undone"


class Outcome(StrEnum):
    """How the ledger answers."""

    WON = "won"
    DONE = "done"
    IN_PROGRESS = "in_progress"
    UNKNOWN = "unknown"
    RENEWED = "renewed"
    ABANDONED = "abandoned"
    FENCED = "fenced"  # another token holds it, or nobody's does any more
    ABSENT = "absent"  # never claimed, or given up


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """Somebody wants to make an effect happen. Raises ValueError for what cannot be taken.

    `token` was made for this claim and shown to nobody: a claim whose answer was lost is asked
    again with the same one, and won by it.
    """

    key: str
    token: str
    who: str
    lease_ms: int
    if_unknown: IfUnknown = IfUnknown.STOP

    def __post_init__(self) -> None:
        _check_text("a key", self.key, KEY_MAX)
        _check_text("who claims", self.who, WHO_MAX)
        if not 0 < self.lease_ms <= LEASE_MS_MAX:
            raise ValueError("a lease lasts a day at most; renew it before it is over")


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What the ledger knows of a claimed or completed effect.

    `token` is None where a person settled it.
    """

    key: str
    token: str | None
    claimed_by: str
    claimed_at: int
    renewed_at: int
    lease_ms: int
    completed_at: int | None = None
    result: str | None = None

    @property
    def lease_until(self) -> int:
        return self.renewed_at + self.lease_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the ledger says. `effect` is how it stands from now on, `before` the unknown claim whose
    place was taken.
    """

    outcome: Outcome
    effect: Effect | None = None
    before: Effect | None = None


def looked(effect: Effect | None, now: int) -> Answer:
    """How it stands.

    A lease is wall time, since it outlives the process that wrote it, and a clock can be set. Set
    forward, a lease is over too soon; the holder's next renewal, which is never later than the
    lease is long, brings it back. Set back, it would last until the clock has caught up, which may
    take years; so when it ends more than twice its length from now, it counts as over. That takes a
    step back of more than the lease's length: smaller ones (NTP's) only prolong it a little. Being
    wrong is cheap, since what is unknown is not done again unless the caller wants that.
    """
    if effect is None:
        return Answer(outcome=Outcome.ABSENT)
    if effect.completed_at is not None:
        return Answer(outcome=Outcome.DONE, effect=effect)
    is_live = effect.renewed_at - effect.lease_ms <= now < effect.lease_until
    return Answer(outcome=Outcome.IN_PROGRESS if is_live else Outcome.UNKNOWN, effect=effect)


def claimed(effect: Effect | None, claim: Claim, now: int) -> Answer:
    """Who claims gets it when nobody has it, or when its holder is unknown and the caller says
    "retry".
    """
    found = looked(effect, now)
    won = Effect(
        key=claim.key,
        token=claim.token,
        claimed_by=claim.who,
        claimed_at=now,
        renewed_at=now,
        lease_ms=claim.lease_ms,
    )
    if found.outcome is Outcome.ABSENT or _asked_again(effect, claim):
        return Answer(outcome=Outcome.WON, effect=won)
    if found.outcome is Outcome.UNKNOWN and claim.if_unknown is IfUnknown.RETRY:
        return Answer(outcome=Outcome.WON, effect=won, before=effect)
    return found


def renewed(effect: Effect | None, token: str, now: int) -> Answer:
    """The lease begins anew, also when it was over and nobody has taken it."""
    if effect is None or not _holds(effect, token):
        return _refused(effect)
    return Answer(outcome=Outcome.RENEWED, effect=replace(effect, renewed_at=now))


def completed(effect: Effect | None, token: str, result: str | None, now: int) -> Answer:
    """The effect has happened, for ever. Said again by the same holder, the first result stands."""
    if effect is not None and effect.token == token and effect.completed_at is not None:
        return Answer(outcome=Outcome.DONE, effect=effect)
    if effect is None or not _holds(effect, token):
        return _refused(effect)
    done = replace(effect, completed_at=now, result=result)
    return Answer(outcome=Outcome.DONE, effect=done)


def abandoned(effect: Effect | None, token: str) -> Answer:
    """Its holder knows that the effect did not happen: whoever comes next may try."""
    if effect is None or not _holds(effect, token):
        return _refused(effect)
    return Answer(outcome=Outcome.ABANDONED)


def settled(effect: Effect | None, verdict: Verdict, now: int) -> Answer:
    """A person found out about an unknown effect; anything else is answered as it stands."""
    found = looked(effect, now)
    if effect is None or found.outcome is not Outcome.UNKNOWN:
        return found
    if verdict is Verdict.UNDONE:
        return Answer(outcome=Outcome.ABANDONED, before=effect)
    done = replace(effect, completed_at=now, token=None)
    return Answer(outcome=Outcome.DONE, effect=done, before=effect)


def fitting(output: bytes) -> str:
    """As much of an output's beginning as a result holds, as text."""
    text = output[:RESULT_BYTES_MAX].decode("utf-8", "replace")
    return text.encode()[:RESULT_BYTES_MAX].decode("utf-8", "ignore")


def check_result(result: str) -> str:
    """Raises ValueError for a result that is too long or no text."""
    if len(result.encode()) > RESULT_BYTES_MAX:
        raise ValueError(f"a result has at most {RESULT_BYTES_MAX} bytes")
    return result


def _check_text(what: str, text: str, longest: int) -> None:
    if not 0 < len(text) <= longest or not text.isprintable():
        raise ValueError(f"{what} is a text of 1 to {longest} printable characters")


def _asked_again(effect: Effect | None, claim: Claim) -> bool:
    return effect is not None and _holds(effect, claim.token)


def _holds(effect: Effect, token: str) -> bool:
    return effect.completed_at is None and effect.token == token


def _refused(effect: Effect | None) -> Answer:
    outcome = Outcome.ABSENT if effect is None else Outcome.FENCED
    return Answer(outcome=outcome, effect=effect)
