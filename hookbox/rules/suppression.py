"""Whether an address may still be mailed: a ratchet that only tightens.

A cause suppresses whenever it arrives, however old it is: dominance before time. Only a named
person's lift loosens, and only for what happened before it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from hookbox.model import BounceClass, Kind, Notification, RejectReason

DAY_MS = 86_400_000


class Cause(StrEnum):
    """Why an address is suppressed."""

    HARD_BOUNCE = "hard_bounce"
    COMPLAINT = "complaint"
    UNSUBSCRIBED = "unsubscribed"
    PROVIDER_SUPPRESSION = "provider_suppression"  # the sender itself will not mail it any more
    TRANSIENT_BUDGET = "transient_budget"
    MANUAL = "manual"
    IMPORTED = "imported"


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How many messages may end in a soft bounce within the window before the address goes."""

    messages: int = 5
    window_ms: int = 30 * DAY_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class Suppression:
    """Why, and since when. `at` is when the cause happened, not when it was heard of."""

    cause: Cause
    at: int
    event_id: int | None = None
    source_id: int | None = None


def cause_of(notification: Notification, *, suppress_ambiguous: bool = False) -> Cause | None:
    """What one notification alone does to its address; None for nothing.

    Never: blocks, soft bounces and deferrals (those count against the budget), auto-replies, an
    unsubscribe from one list or group, and what does not say whom it is about.
    """
    if notification.ambiguous and not suppress_ambiguous:
        return None
    kind = notification.kind
    if kind is Kind.COMPLAINED:
        return Cause.COMPLAINT
    if kind is Kind.BOUNCED and notification.bounce_class is BounceClass.HARD:
        return Cause.HARD_BOUNCE
    if kind is Kind.UNSUBSCRIBED:
        return None if notification.scope else Cause.UNSUBSCRIBED
    if notification.suppress:
        unsubscribed = notification.reject_reason is RejectReason.UNSUBSCRIBED
        return Cause.UNSUBSCRIBED if unsubscribed else Cause.PROVIDER_SUPPRESSION
    return None


def first(known: Suppression | None, new: Suppression) -> Suppression:
    """The reason that stays: what happened first, then by word; every order ends in the same."""
    if known is None:
        return new
    return min(known, new, key=lambda each: (each.at, each.cause))


def holds(at: int, lifted_at: int | None) -> bool:
    """Whether a cause that happened at `at` counts, when a person lifted the address last then."""
    return lifted_at is None or at > lifted_at


def budget_spent(soft_at: Iterable[int], delivered_at: Iterable[int], budget: Budget) -> int | None:
    """When the budget was spent: the time of the bounce that was one too many; None if it is not.

    `soft_at`: one time for each message that ended in a soft or undetermined bounce.
    `delivered_at`: deliveries of any message to the same address; each starts the count anew.
    """
    last_delivered = max(delivered_at, default=0)
    counted: Sequence[int] = sorted(at for at in soft_at if at > last_delivered)
    size = budget.messages
    for last in range(size - 1, len(counted)):
        if counted[last] - counted[last - size + 1] <= budget.window_ms:
            return counted[last]
    return None
