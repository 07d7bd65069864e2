"""The rows behind recipient statuses and suppressions: read many, write those that changed.

Read-modify-write is safe here: only the writer's transaction comes this way, and there is one.
"""

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from hookbox.model import BounceClass, Kind
from hookbox.rules.lifecycle import DELIVERED_RANK, SOFT_RANK, Status
from hookbox.rules.suppression import Cause, Suppression
from hookbox.store.connections import Transaction

STATUSES = """
SELECT wanted.key AS position, t.rank, t.kind, t.bounce_class, t.status_at, t.event_id
FROM json_each(:wanted) AS wanted
CROSS JOIN status AS t
  ON t.source_id = json_extract(wanted.value, '$[0]')
  AND t.message_id = json_extract(wanted.value, '$[1]')
  AND t.recipient = json_extract(wanted.value, '$[2]')
"""
SAVE_STATUS = """
INSERT INTO status
  (source_id, message_id, recipient, shown, rank, kind, bounce_class, status_at, event_id)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (source_id, message_id, recipient) DO UPDATE
SET rank = excluded.rank, kind = excluded.kind, bounce_class = excluded.bounce_class,
  status_at = excluded.status_at, event_id = excluded.event_id
"""
SUPPRESSIONS = """
SELECT id, address, scope, reason, since, event_id, source_id, lifted_at
FROM suppression
WHERE address IN (SELECT value FROM json_each(:addresses))
ORDER BY id
"""
OPEN_SUPPRESSION = """
INSERT INTO suppression (address, scope, shown, reason, since, event_id, source_id)
VALUES (:address, :scope, :shown, :reason, :since, :event_id, :source_id)
RETURNING id
"""
EARLIER_REASON = """
UPDATE suppression
SET reason = :reason, since = :since, event_id = :event_id, source_id = :source_id
WHERE id = :id
"""
ADD_CAUSE = """
INSERT INTO suppression_cause (suppression_id, reason, since, event_id, source_id)
VALUES (:id, :reason, :since, :event_id, :source_id)
ON CONFLICT DO NOTHING
"""
SOFT_TIMES = f"""
SELECT recipient, status_at FROM status
WHERE recipient IN (SELECT value FROM json_each(:addresses)) AND rank = {SOFT_RANK}
"""
LAST_DELIVERED = f"""
SELECT recipient, max(status_at) AS last FROM status
WHERE recipient IN (SELECT value FROM json_each(:addresses)) AND rank = {DELIVERED_RANK}
GROUP BY recipient
"""


@dataclass(frozen=True, slots=True)
class StatusKey:
    """Of which message, for which folded address."""

    source_id: int
    message_id: str
    recipient: str


@dataclass(slots=True, kw_only=True)
class Standing:
    """Where one (address, scope) stands: the open suppression if there is one, the latest lift."""

    id: int | None = None
    suppression: Suppression | None = None
    lifted_at: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """The times that the transient budget is reckoned with, for one address."""

    soft_at: tuple[int, ...]
    delivered_at: tuple[int, ...]


def statuses(transaction: Transaction, keys: Collection[StatusKey]) -> dict[StatusKey, Status]:
    """The stored statuses of these keys; those without one are missing."""
    ordered = list(keys)
    wanted = json.dumps([[key.source_id, key.message_id, key.recipient] for key in ordered])
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
            (key.source_id, key.message_id, key.recipient, shown, status.rank, status.kind,
             status.bounce_class, status.at, status.event_id)
            for key, (shown, status) in changed.items()
        ],
    )  # fmt: skip


def standings(
    transaction: Transaction, addresses: Iterable[str]
) -> dict[tuple[str, str], Standing]:
    """(folded address, scope) -> where it stands; those never suppressed are missing."""
    found: dict[tuple[str, str], Standing] = {}
    place = {"addresses": json.dumps(sorted(set(addresses)))}
    for row in transaction.execute(SUPPRESSIONS, place):
        standing = found.setdefault((row["address"], row["scope"]), Standing())
        if row["lifted_at"] is not None:
            standing.lifted_at = max(row["lifted_at"], standing.lifted_at or 0)
            continue
        standing.id = row["id"]
        standing.suppression = Suppression(
            cause=Cause(row["reason"]),
            at=row["since"],
            event_id=row["event_id"],
            source_id=row["source_id"],
        )
    return found


def open_suppression(
    transaction: Transaction, address: str, scope: str, shown: str, new: Suppression
) -> int:
    """Suppress; the row's id."""
    place = {"address": address, "scope": scope, "shown": shown, **_fields(new)}
    (row_id,) = transaction.execute(OPEN_SUPPRESSION, place).fetchone()
    transaction.execute(ADD_CAUSE, {"id": row_id, **_fields(new)})
    return int(row_id)


def add_cause(transaction: Transaction, row_id: int, new: Suppression, *, earlier: bool) -> None:
    """A further cause of an open suppression; `earlier`: it happened before the known one."""
    place = {"id": row_id, **_fields(new)}
    transaction.execute(ADD_CAUSE, place)
    if earlier:
        transaction.execute(EARLIER_REASON, place)


def _fields(suppression: Suppression) -> dict[str, object]:
    return {
        "reason": suppression.cause,
        "since": suppression.at,
        "event_id": suppression.event_id,
        "source_id": suppression.source_id,
    }


def delivered(transaction: Transaction, addresses: Iterable[str]) -> dict[str, Delivered]:
    """What the budget is reckoned with, for each of these folded addresses."""
    place = {"addresses": json.dumps(sorted(set(addresses)))}
    soft: dict[str, list[int]] = {}
    for row in transaction.execute(SOFT_TIMES, place):
        soft.setdefault(row["recipient"], []).append(row["status_at"])
    last = {row["recipient"]: row["last"] for row in transaction.execute(LAST_DELIVERED, place)}
    return {
        address: Delivered(
            soft_at=tuple(times), delivered_at=(last[address],) if address in last else ()
        )
        for address, times in soft.items()
    }
