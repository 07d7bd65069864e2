"""The ledger: what events say is written down, and moves statuses and suppressions.

One call takes many events: notifications appended, statuses advanced, suppressions ratcheted,
events marked applied. Everything in it may be done again without harm: statuses are joins, causes
are a set, and the transient budget counts messages, not reports.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hookbox.model import Notification
from hookbox.rules.folding import folded
from hookbox.rules.lifecycle import SOFT_RANK, Status, joined, reported
from hookbox.rules.suppression import (
    Budget,
    Cause,
    Suppression,
    budget_spent,
    cause_of,
    first,
    holds,
)
from hookbox.store import statuses
from hookbox.store.connections import Transaction
from hookbox.store.statuses import Standing, StatusKey

FORGET_NOTIFICATIONS = """
DELETE FROM notification WHERE event_id IN (SELECT value FROM json_each(:ids))
"""
INSERT_NOTIFICATIONS = """
INSERT INTO notification
  (event_id, source_id, message_id, recipient, kind, bounce_class, reject_reason, occurred_at,
   time_source, ambiguous, suppress, scope, meaning, effect)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
MEANINGS = """
SELECT n.meaning, n.source_id, n.event_id
FROM json_each(:wanted) AS wanted
CROSS JOIN notification AS n
  ON n.source_id = json_extract(wanted.value, '$[0]')
  AND n.meaning = json_extract(wanted.value, '$[1]')
"""
MARK_APPLIED = """
UPDATE event SET state = 'applied', kind = ?, recipient = ?, message_id = ?, occurred_at = ?
WHERE id = ?
"""
REMEMBER_PLACE = """
INSERT INTO message_place (source_id, message_id, inbox_id, thread_id) VALUES (?, ?, ?, ?)
ON CONFLICT (source_id, message_id) DO UPDATE
SET inbox_id = excluded.inbox_id, thread_id = coalesce(excluded.thread_id, thread_id)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """One event and what it says; at least one notification, each with its time settled.

    `scope`: which list the source's suppressions go to. `suppress_ambiguous`: the operator's word
    that events of this source may suppress everybody they may concern.
    """

    event_id: int
    source_id: int
    notifications: tuple[Notification, ...]
    scope: str = ""
    suppress_ambiguous: bool = False


@dataclass(slots=True)
class _Line:
    """One notification on its way into the ledger."""

    applied: Applied
    notification: Notification
    meaning: str | None
    effects: list[str] = field(default_factory=list)
    counts: bool = True  # not a second report of a fact that counted already


def append(transaction: Transaction, applied: Sequence[Applied], budget: Budget) -> None:
    """Write down what the events say, with all its consequences."""
    ids = json.dumps([entry.event_id for entry in applied])
    transaction.execute(FORGET_NOTIFICATIONS, {"ids": ids})
    lines = [_Line(entry, n, n.meaning) for entry in applied for n in entry.notifications]
    _find_repeats(transaction, lines)
    softened = _advance(transaction, lines)
    _suppress(transaction, lines)
    _charge(transaction, softened, budget)
    _write(transaction, lines)
    transaction.executemany(MARK_APPLIED, [_summary(entry) for entry in applied])


def _find_repeats(transaction: Transaction, lines: Sequence[_Line]) -> None:
    """Facts that were reported under another key before: written down, but counted once."""
    told = [line for line in lines if line.meaning is not None]
    if not told:
        return
    wanted = json.dumps([[line.applied.source_id, line.meaning] for line in told])
    known = {
        (row["source_id"], row["meaning"]): row["event_id"]
        for row in transaction.execute(MEANINGS, {"wanted": wanted})
    }
    for line in told:
        place = (line.applied.source_id, line.meaning)
        if place not in known:
            known[place] = line.applied.event_id
            continue
        line.counts = False
        line.meaning = None
        line.effects.append(f"same fact as event {known[place]}")


# --- statuses


def _advance(transaction: Transaction, lines: Sequence[_Line]) -> dict[tuple[str, str], _Line]:
    """Join every report into its status; (address, scope) that a soft bounce was news for."""
    reports = [
        (line, shown, status)
        for line in lines
        if line.counts and (status := reported(line.notification, line.applied.event_id))
        for shown in _concerned(line)
    ]
    keys = [_status_key(line, shown) for line, shown, _ in reports]
    known = statuses.statuses(transaction, dict.fromkeys(keys)) if keys else {}
    changed: dict[StatusKey, tuple[str, Status]] = {}
    softened: dict[tuple[str, str], _Line] = {}
    for key, (line, shown, status) in zip(keys, reports, strict=True):
        before = known.get(key)
        after = joined(before, status)
        line.effects.append(_told(before, status, after))
        if after is not before:
            known[key] = after
            changed[key] = (changed[key][0] if key in changed else shown, after)
            if after.rank == SOFT_RANK:
                softened[key.recipient, line.applied.scope] = line
    statuses.save(transaction, changed)
    return softened


def _concerned(line: _Line) -> tuple[str, ...]:
    """Whom a notification is about: nobody when that is ambiguous, unless the operator said so."""
    notification = line.notification
    if notification.ambiguous:
        if not line.applied.suppress_ambiguous:
            return ()
        return notification.candidates or _named(notification)
    return _named(notification)


def _named(notification: Notification) -> tuple[str, ...]:
    return () if notification.recipient is None else (notification.recipient,)


def _status_key(line: _Line, shown: str) -> StatusKey:
    return StatusKey(line.applied.source_id, line.notification.message_id or "", folded(shown))


def _told(before: Status | None, status: Status, after: Status) -> str:
    """What happened to the status, for the person who reads the timeline."""
    if after is status:
        return f"status {status.word}"
    assert before is not None, "a join without a known status is the new one"
    if before.rank == status.rank:
        return f"still {before.word}"
    return f"late {status.word} ignored: already {before.word}"


# --- suppressions


def _suppress(transaction: Transaction, lines: Sequence[_Line]) -> None:
    causes = [
        (line, shown, cause)
        for line in lines
        if line.counts
        and (
            cause := cause_of(line.notification, suppress_ambiguous=line.applied.suppress_ambiguous)
        )
        for shown in _concerned(line)
    ]
    if not causes:
        return
    known = statuses.standings(transaction, [folded(shown) for _, shown, _ in causes])
    for line, shown, cause in causes:
        assert line.notification.occurred_at is not None, "settled before it is applied"
        new = _suppression(line, cause, line.notification.occurred_at)
        line.effects.append(ratchet(transaction, known, shown, line.applied.scope, new))


def _suppression(line: _Line, cause: Cause, at: int) -> Suppression:
    applied = line.applied
    return Suppression(cause=cause, at=at, event_id=applied.event_id, source_id=applied.source_id)


def ratchet(
    transaction: Transaction,
    known: dict[tuple[str, str], Standing],
    shown: str,
    scope: str,
    new: Suppression,
) -> str:
    """Let one cause count against one address; what came of it, in words. Updates `known`."""
    address = folded(shown)
    standing = known.setdefault((address, scope), Standing())
    if not holds(new.at, standing.lifted_at):
        return f"{new.cause} ignored: lifted later by a person"
    if standing.id is None:
        standing.id = statuses.open_suppression(transaction, address, scope, shown, new)
        standing.suppression = new
        return f"suppressed ({new.cause})"
    kept = first(standing.suppression, new)
    statuses.add_cause(transaction, standing.id, new, earlier=kept is new)
    standing.suppression = kept
    return f"already suppressed ({kept.cause})"


def _charge(
    transaction: Transaction, softened: Mapping[tuple[str, str], _Line], budget: Budget
) -> None:
    """Addresses for which one more message has ended in a soft bounce."""
    if not softened:
        return
    addresses = [address for address, _ in softened]
    times = statuses.delivered(transaction, addresses)
    known = statuses.standings(transaction, addresses)
    for (address, scope), line in softened.items():
        standing = known.get((address, scope), Standing())
        counted = [at for at in times[address].soft_at if holds(at, standing.lifted_at)]
        spent_at = budget_spent(counted, times[address].delivered_at, budget)
        if spent_at is not None:
            new = _suppression(line, Cause.TRANSIENT_BUDGET, spent_at)
            shown = line.notification.recipient or address
            line.effects.append(ratchet(transaction, known, shown, scope, new))


# --- rows


def _write(transaction: Transaction, lines: Sequence[_Line]) -> None:
    transaction.executemany(INSERT_NOTIFICATIONS, [_row(line) for line in lines])
    places = [
        (line.applied.source_id, line.notification.message_id, inbox, thread)
        for line in lines
        if line.notification.extras
        and line.notification.message_id
        and isinstance(inbox := line.notification.extras.get("inbox_id"), str)
        and isinstance(thread := line.notification.extras.get("thread_id"), str | None)
    ]
    transaction.executemany(REMEMBER_PLACE, places)


def _row(line: _Line) -> tuple[object, ...]:
    n = line.notification
    return (
        line.applied.event_id, line.applied.source_id, n.message_id, n.recipient, n.kind,
        n.bounce_class, n.reject_reason, n.occurred_at, n.time_source, n.ambiguous, n.suppress,
        n.scope, line.meaning, "; ".join(line.effects),
    )  # fmt: skip


def _summary(entry: Applied) -> tuple[str, str | None, str | None, int | None, int]:
    """What the `events` view shows of an event: its recipients joined, the rest from the first."""
    first_told = entry.notifications[0]
    named = dict.fromkeys(n.recipient for n in entry.notifications if n.recipient is not None)
    recipients = ", ".join(named) or None
    return (
        first_told.kind,
        recipients,
        first_told.message_id,
        first_told.occurred_at,
        entry.event_id,
    )
