"""Did we lose anything? One sender's events over one outage of ours.

A sender that goes on trying for its whole horizon brings whatever it first tried during a shorter
outage. What an outage swallowed longer than that comes back by the sender's own list, where the
box reads it to its end, or not at all by itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Loss(StrEnum):
    """From best to worst."""

    SAFE = "safe"
    RECOVERED = "recovered by poll"
    AT_RISK = "at risk"
    LOST = "lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """What is declared of a sender: how long it tries, None where nobody knows, and the gaps
    between its attempts where they are known.
    """

    horizon_s: float | None
    schedule_s: Sequence[float] = ()

    @property
    def last_gap_s(self) -> float:
        return self.schedule_s[-1] if self.schedule_s else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """How a source's list is read: when its end was last reached, and whether the sender has
    dropped a part of it before it was read.
    """

    caught_up_at: int | None
    expired: bool


def loss(from_at: int, to_at: int, patience: Patience, followed: Followed | None, now: int) -> Loss:
    """What became of the events that were first tried in that time."""
    outage_s = (to_at - from_at) / 1000
    if _tried_after(outage_s, (now - to_at) / 1000, patience):
        return Loss.SAFE
    readable = followed is not None and not followed.expired
    if followed is not None and readable and (followed.caught_up_at or 0) >= to_at:
        return Loss.RECOVERED
    may_come = patience.horizon_s is None or outage_s < patience.horizon_s
    return Loss.AT_RISK if may_come or readable else Loss.LOST


def _tried_after(outage_s: float, passed_s: float, patience: Patience) -> bool:
    """Whether the sender tries everything again after the outage, and has room for bad luck. What
    was tried first when it began may have one attempt left: if that is refused, it was the last.
    Once its time has passed, it was made.
    """
    horizon_s = patience.horizon_s
    if horizon_s is None or outage_s >= horizon_s:
        return False
    return outage_s <= horizon_s - patience.last_gap_s or passed_s > horizon_s
