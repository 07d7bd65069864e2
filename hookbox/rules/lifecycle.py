"""The status of one message for one recipient, as a join on ranks.

Reports come late, twice, in any order and by several ways. The status is the highest rank that
anybody ever reported, so order and repetition cannot matter. Accepted is not delivered, and
delivered is not final: an out-of-band bounce or a complaint comes hours later and is true.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from hookbox.model import BounceClass, Kind, Notification

RANKS: Mapping[tuple[Kind, BounceClass | None], int] = {
    (Kind.QUEUED, None): 10,
    (Kind.SENT, None): 20,
    (Kind.DEFERRED, None): 30,
    (Kind.BOUNCED, BounceClass.SOFT): 40,
    (Kind.BOUNCED, BounceClass.UNDETERMINED): 40,
    (Kind.DELIVERED, None): 50,
    (Kind.REJECTED, None): 60,
    (Kind.FAILED, None): 60,
    (Kind.BOUNCED, BounceClass.BLOCK): 70,
    (Kind.BOUNCED, BounceClass.HARD): 80,
    (Kind.COMPLAINED, None): 90,
}
SOFT_RANK = RANKS[Kind.BOUNCED, BounceClass.SOFT]
DELIVERED_RANK = RANKS[Kind.DELIVERED, None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """How far one message got with one recipient. `at`: when that was reached first."""

    rank: int
    kind: Kind
    bounce_class: BounceClass | None
    at: int
    event_id: int

    @property
    def word(self) -> str:
        """For people: `bounced (hard)`."""
        return f"{self.kind} ({self.bounce_class})" if self.bounce_class else str(self.kind)


def reported(notification: Notification, event_id: int) -> Status | None:
    """The status that one notification speaks for; None for those that move nothing (opened,
    clicked, unsubscribed, account, unknown, …). Its time has been settled.
    """
    bounce_class = notification.bounce_class
    if notification.kind is Kind.BOUNCED:
        bounce_class = bounce_class or BounceClass.UNDETERMINED
    else:
        bounce_class = None
    rank = RANKS.get((notification.kind, bounce_class))
    if rank is None:
        return None
    assert notification.occurred_at is not None, "settled before it is reported"
    return Status(
        rank=rank,
        kind=notification.kind,
        bounce_class=bounce_class,
        at=notification.occurred_at,
        event_id=event_id,
    )


def joined(known: Status | None, new: Status) -> Status:
    """The higher rank; of equals the one that happened first, then by word, so that every order of
    the same reports ends in the same status.
    """
    if known is None:
        return new
    return min(known, new, key=_order)


def _order(status: Status) -> tuple[int, int, str, str]:
    return -status.rank, status.at, status.kind, status.bounce_class or ""
