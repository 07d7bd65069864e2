"""The rows of the ledger: what each event says, recipient by recipient, and what came of it."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hookbox.model import BounceClass, Kind, Notification, RejectReason, TimeSource
from hookbox.rules.folding import folded
from hookbox.store.connections import Row, Transaction

FORGET = "DELETE FROM notification WHERE event_id IN (SELECT value FROM json_each(:ids))"
INSERT = """
INSERT INTO notification
  (event_id, source_id, message_id, recipient, address, candidates, kind, bounce_class,
   reject_reason, occurred_at, time_source, ambiguous, suppress, scope, meaning, claims, effect)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
MEANINGS = """
SELECT n.meaning, n.source_id, n.event_id
FROM json_each(:wanted) AS wanted
CROSS JOIN notification AS n
  ON n.source_id = json_extract(wanted.value, '$[0]')
  AND n.meaning = json_extract(wanted.value, '$[1]')
  AND n.claims = 1
"""
REPEATS = """
SELECT event_id, meaning FROM notification
WHERE event_id IN (SELECT value FROM json_each(:ids)) AND meaning IS NOT NULL
GROUP BY event_id, meaning HAVING count(*) = sum(claims IS 0)
"""
DISCLAIM = "UPDATE notification SET claims = NULL WHERE event_id = :event_id AND claims = 1"
WRITTEN = """
SELECT
  event_id, message_id, recipient, candidates, kind, bounce_class, reject_reason, occurred_at,
  time_source, ambiguous, suppress, scope, meaning
FROM notification WHERE event_id IN (SELECT value FROM json_each(:ids))
ORDER BY id
"""
REMEMBER_PLACE = """
INSERT INTO message_place (source_id, message_id, inbox_id, thread_id) VALUES (?, ?, ?, ?)
ON CONFLICT (source_id, message_id) DO UPDATE
SET inbox_id = excluded.inbox_id, thread_id = coalesce(excluded.thread_id, thread_id)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """One notification as the ledger takes it. `claims`: whether it is the first to tell its fact,
    where others could. `effect`: what came of it, in words.
    """

    event_id: int
    source_id: int
    notification: Notification
    claims: bool | None
    effect: str


def known_meanings(
    transaction: Transaction, wanted: Iterable[tuple[int, str]]
) -> dict[tuple[int, str], int]:
    """(source id, meaning) -> the event that claims it; those that nobody claims are missing."""
    rows = transaction.execute(MEANINGS, {"wanted": json.dumps(list(wanted))})
    return {(row["source_id"], row["meaning"]): row["event_id"] for row in rows}


def known_repeats(transaction: Transaction, event_ids: Iterable[int]) -> set[tuple[int, str]]:
    """(event id, meaning) of what these events told when others had told it before."""
    rows = transaction.execute(REPEATS, {"ids": json.dumps(list(event_ids))})
    return {(row["event_id"], row["meaning"]) for row in rows}


def disclaim(transaction: Transaction, event_id: int) -> None:
    """Let what this event told be news when it is told again."""
    transaction.execute(DISCLAIM, {"event_id": event_id})


def write(transaction: Transaction, event_ids: Iterable[int], told: Sequence[Told]) -> None:
    """Put these notifications in the place of what the events said before."""
    transaction.execute(FORGET, {"ids": json.dumps(list(event_ids))})
    transaction.executemany(INSERT, [_row(each) for each in told])
    transaction.executemany(REMEMBER_PLACE, [place for each in told for place in _place(each)])


def written(transaction: Transaction, event_ids: Iterable[int]) -> dict[int, list[Notification]]:
    """What these events say, as it was written down."""
    found: dict[int, list[Notification]] = {}
    for row in transaction.execute(WRITTEN, {"ids": json.dumps(list(event_ids))}):
        found.setdefault(row["event_id"], []).append(_notification(row))
    return found


def _row(told: Told) -> tuple[object, ...]:
    n = told.notification
    address = None if n.recipient is None else folded(n.recipient)
    candidates = json.dumps(n.candidates) if n.candidates else None
    return (
        told.event_id, told.source_id, n.message_id, n.recipient, address, candidates, n.kind,
        n.bounce_class, n.reject_reason, n.occurred_at, n.time_source, n.ambiguous, n.suppress,
        n.scope, n.meaning, told.claims, told.effect,
    )  # fmt: skip


def _place(told: Told) -> Iterable[tuple[int, str, str, str | None]]:
    n = told.notification
    if not n.extras or not n.message_id:
        return
    inbox_id, thread_id = n.extras.get("inbox_id"), n.extras.get("thread_id")
    if isinstance(inbox_id, str) and isinstance(thread_id, str | None):
        yield told.source_id, n.message_id, inbox_id, thread_id


def _notification(row: Row) -> Notification:
    bounce_class, reject_reason = row["bounce_class"], row["reject_reason"]
    return Notification(
        kind=Kind(row["kind"]),
        recipient=row["recipient"],
        bounce_class=None if bounce_class is None else BounceClass(bounce_class),
        reject_reason=None if reject_reason is None else RejectReason(reject_reason),
        occurred_at=row["occurred_at"],
        time_source=TimeSource(row["time_source"]),
        message_id=row["message_id"],
        ambiguous=bool(row["ambiguous"]),
        candidates=tuple(json.loads(row["candidates"] or "[]")),
        suppress=bool(row["suppress"]),
        scope=row["scope"],
        meaning=row["meaning"],
    )
