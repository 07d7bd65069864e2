"""Refusals and the use of secrets, counted in memory by the flow and written here once a minute."""

from collections.abc import Sequence
from dataclasses import dataclass

from hookbox.model import Slot
from hookbox.store.connections import Transaction

ADD_REFUSALS = """
INSERT INTO refusal (source_id, reason, minute, count, last_skew_s, last_remote)
VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (source_id, reason, minute) DO UPDATE
SET count = count + excluded.count, last_remote = excluded.last_remote,
  last_skew_s = coalesce(excluded.last_skew_s, last_skew_s)
"""
ADD_SECRET_USE = """
INSERT INTO secret_use (source_id, slot, accepted, last_used_at) VALUES (?, ?, ?, ?)
ON CONFLICT (source_id, slot) DO UPDATE
SET accepted = accepted + excluded.accepted, last_used_at = max(last_used_at, excluded.last_used_at)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusalCount:
    """How often one source refused for one reason in one minute (minutes since 1970)."""

    source_id: int
    reason: str
    minute: int
    count: int
    last_skew_s: float | None
    last_remote: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretUse:
    """How many deliveries one slot of one source proved, and when the last."""

    source_id: int
    slot: Slot
    accepted: int
    last_used_at: int


def add(
    transaction: Transaction, refusals: Sequence[RefusalCount], uses: Sequence[SecretUse]
) -> None:
    """Add the counts to what is stored."""
    transaction.executemany(
        ADD_REFUSALS,
        [
            (r.source_id, r.reason, r.minute, r.count, r.last_skew_s, r.last_remote)
            for r in refusals
        ],
    )
    transaction.executemany(
        ADD_SECRET_USE, [(u.source_id, u.slot, u.accepted, u.last_used_at) for u in uses]
    )
