"""The rows behind recipient statuses: read many, write those that changed.

Read-modify-write is safe here: only the writer's transaction comes this way, and there is one.
"""

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from hookbox.model import BounceClass, Kind
from hookbox.rules.lifecycle import DELIVERED_RANK, SOFT_RANK, Status
from hookbox.store.connections import Transaction

STATUSES = """
SELECT wanted.key AS position, t.rank, t.kind, t.bounce_class, t.status_at, t.event_id
FROM json_each(:wanted) AS wanted
CROSS JOIN status AS t
  ON t.source_id = json_extract(wanted.value, '$[0]')
  AND t.message_id = json_extract(wanted.value, '$[1]')
  AND t.recipient = json_extract(wanted.value, '$[2]')
"""
# What rested on an event that is gone is kept as far as it had come.
SAVE_STATUS = """
INSERT INTO status
  (source_id, message_id, recipient, shown, rank, kind, bounce_class, status_at, event_id)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (source_id, message_id, recipient) DO UPDATE
SET rank = excluded.rank, kind = excluded.kind, bounce_class = excluded.bounce_class,
  status_at = excluded.status_at, event_id = excluded.event_id, settled = CASE
    WHEN EXISTS (SELECT 1 FROM event WHERE id = status.event_id) THEN settled
    ELSE json_array(rank, kind, bounce_class, status_at, event_id)
  END
"""
SOFT_TIMES = f"""
SELECT recipient, status_at FROM status
WHERE recipient IN (SELECT value FROM json_each(:addresses)) AND rank = {SOFT_RANK}
"""
# The end of the index for each address, however many messages were delivered to it.
LAST_DELIVERED = f"""
SELECT value AS recipient, (
  SELECT max(status_at) FROM status WHERE recipient = value AND rank = {DELIVERED_RANK}
) AS last
FROM json_each(:addresses)
"""


class StatusKey(NamedTuple):
    """Of which message, for which folded address. A tuple: thousands a second are looked up."""

    source_id: int
    message_id: str
    recipient: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """The times that the transient budget is reckoned with, for one address."""

    soft_at: tuple[int, ...]
    delivered_at: tuple[int, ...]


def statuses(transaction: Transaction, keys: Collection[StatusKey]) -> dict[StatusKey, Status]:
    """The stored statuses of these keys; those without one are missing."""
    ordered = list(keys)
    wanted = json.dumps(ordered)
    return {
        ordered[row["position"]]: Status(
            rank=row["rank"],
            kind=Kind(row["kind"]),
            bounce_class=BounceClass(row["bounce_class"]) if row["bounce_class"] else None,
            at=row["status_at"],
            event_id=row["event_id"],
        )
        for row in transaction.execute(STATUSES, {"wanted": wanted})
    }


def save(transaction: Transaction, changed: Mapping[StatusKey, tuple[str, Status]]) -> None:
    """Store statuses with the spelling of their address; the first spelling stays."""
    transaction.executemany(
        SAVE_STATUS,
        [
            (*key, shown, status.rank, status.kind, status.bounce_class, status.at,
             status.event_id)
            for key, (shown, status) in changed.items()
        ],
    )  # fmt: skip


def delivered(transaction: Transaction, addresses: Iterable[str]) -> dict[str, Delivered]:
    """What the budget is reckoned with, for each of these folded addresses."""
    place = {"addresses": json.dumps(sorted(set(addresses)))}
    soft: dict[str, list[int]] = {}
    for row in transaction.execute(SOFT_TIMES, place):
        soft.setdefault(row["recipient"], []).append(row["status_at"])
    last = {row["recipient"]: row["last"] for row in transaction.execute(LAST_DELIVERED, place)}
    return {
        address: Delivered(
            soft_at=tuple(times),
            delivered_at=() if last[address] is None else (last[address],),
        )
        for address, times in soft.items()
    }
