"""Where the live ledger and one worked out anew do not say the same."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from hookbox.store import history
from hookbox.store.connections import Row, Transaction

# `shown` is the spelling that came first; where its event is gone, another one would seem to be.
STATUS_KEY = ("source_id", "message_id", "recipient")
STATUS_FIELDS = ("rank", "kind", "bounce_class", "status_at", "event_id")
SUPPRESSION_KEY = ("address", "scope")
SUPPRESSION_FIELDS = ("reason", "since", "event_id", "source_id", "causes")

STATUSES_OF = """
SELECT
  source_id, message_id, recipient, rank, kind, bounce_class, status_at, event_id,
  NOT EXISTS (SELECT 1 FROM event WHERE id = status.event_id) AS gone
FROM status WHERE recipient IN (SELECT value FROM json_each(:addresses))
ORDER BY source_id, message_id, recipient
"""
STANDING = """
SELECT
  p.address, p.scope, p.reason, p.since, p.event_id, p.source_id,
  (SELECT json_group_array(json_array(reason, since, event_id, source_id, decision_id)) FROM (
     SELECT reason, since, event_id, source_id, decision_id FROM suppression_cause
     WHERE suppression_id = p.id ORDER BY reason, event_id
   )) AS causes
FROM suppression AS p
"""
SUPPRESSIONS = f"""
{STANDING}
WHERE p.lift_id IS NULL AND (p.address, p.scope) > (:address, :scope)
ORDER BY p.address, p.scope LIMIT :limit
"""
SUPPRESSIONS_OF = f"""
{STANDING}
WHERE p.lift_id IS NULL AND p.address IN (SELECT value FROM json_each(:addresses))
ORDER BY p.address, p.scope
"""
SAID = """
SELECT
  event_id, source_id, message_id, recipient, address, candidates, kind, bounce_class,
  reject_reason, occurred_at, time_source, ambiguous, suppress, scope, meaning, claims
FROM notification WHERE event_id IN (SELECT value FROM json_each(:ids)) ORDER BY event_id, id
"""
EFFECTS = """
SELECT event_id, address, kind, effect FROM notification
WHERE address IN (SELECT value FROM json_each(:addresses))
"""

PAGE = 2_000
Fields = Mapping[str, object]


class What(StrEnum):
    """Which part of the ledger differs."""

    STATUS = "status"
    SUPPRESSION = "suppression"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One row that is not the same. None: it is not there. `key` names it by column."""

    what: What
    key: Fields
    before: Fields | None
    after: Fields | None

    @property
    def address(self) -> str:
        """The folded address that it is about."""
        return str(self.key["recipient" if self.what is What.STATUS else "address"])

    @property
    def loosens(self) -> bool:
        """Whether somebody could be mailed again who may not be now."""
        return self.what is What.SUPPRESSION and self.after is None


def everywhere(
    live: Transaction, fresh: Transaction, source_ids: Collection[int]
) -> Iterator[Difference]:
    """Compare the whole ledgers, however long, by short reads."""
    yield from _of_statuses(history.statuses(live), history.statuses(fresh), source_ids)
    yield from _of_suppressions(_suppressions(live), _suppressions(fresh))


def about(
    live: Transaction, fresh: Transaction, addresses: Collection[str], source_ids: Collection[int]
) -> Iterator[Difference]:
    """Compare what the ledgers say about these folded addresses."""
    ordered = sorted(addresses)
    for at in range(0, len(ordered), PAGE):
        asked = {"addresses": json.dumps(ordered[at : at + PAGE])}
        yield from _of_statuses(
            live.execute(STATUSES_OF, asked), fresh.execute(STATUSES_OF, asked), source_ids
        )
        yield from _of_suppressions(
            live.execute(SUPPRESSIONS_OF, asked), fresh.execute(SUPPRESSIONS_OF, asked)
        )


def said_otherwise(live: Transaction, fresh: Transaction, event_ids: Sequence[int]) -> set[int]:
    """Those of these events whose notifications are not the same; what came of them aside."""
    asked = {"ids": json.dumps(event_ids)}
    before, after = _said(live, asked), _said(fresh, asked)
    return {event_id for event_id in after if before.get(event_id) != after[event_id]}


def reworded(live: Transaction, fresh: Transaction, addresses: Collection[str]) -> set[int]:
    """The events about these folded addresses whose effects are told otherwise."""
    ordered = sorted(addresses)
    found: set[int] = set()
    for at in range(0, len(ordered), PAGE):
        asked = {"addresses": json.dumps(ordered[at : at + PAGE])}
        before = {tuple(row) for row in live.execute(EFFECTS, asked)}
        found |= {
            row["event_id"] for row in fresh.execute(EFFECTS, asked) if tuple(row) not in before
        }
    return found


def _said(ledger: Transaction, asked: Fields) -> dict[int, list[tuple[object, ...]]]:
    found: dict[int, list[tuple[object, ...]]] = {}
    for row in ledger.execute(SAID, asked):
        found.setdefault(row["event_id"], []).append(tuple(row))
    return found


def _suppressions(ledger: Transaction) -> Iterator[Row]:
    """Every suppression that stands, in the order of its key."""
    place: dict[str, object] = {"address": "", "scope": ""}
    while rows := ledger.execute(SUPPRESSIONS, {**place, "limit": PAGE}).fetchall():
        yield from rows
        place = {name: rows[-1][name] for name in SUPPRESSION_KEY}


def _of_statuses(
    live: Iterable[Row], fresh: Iterable[Row], source_ids: Collection[int]
) -> Iterator[Difference]:
    """Leaves out what no event can tell again."""
    for before, after in _unequal(live, fresh, STATUS_KEY, STATUS_FIELDS):
        if before is None or not (before["gone"] or before["source_id"] not in source_ids):
            yield _difference(What.STATUS, before, after, STATUS_KEY, STATUS_FIELDS)


def _of_suppressions(live: Iterable[Row], fresh: Iterable[Row]) -> Iterator[Difference]:
    for before, after in _unequal(live, fresh, SUPPRESSION_KEY, SUPPRESSION_FIELDS):
        yield _difference(What.SUPPRESSION, before, after, SUPPRESSION_KEY, SUPPRESSION_FIELDS)


def _unequal(
    live: Iterable[Row], fresh: Iterable[Row], key: Sequence[str], fields: Sequence[str]
) -> Iterator[tuple[Row | None, Row | None]]:
    """Walk two lists in the order of one key; what is in one alone, or not the same in both."""
    left, right = iter(live), iter(fresh)
    before, after = next(left, None), next(right, None)
    while before is not None or after is not None:
        if after is None or (before is not None and _key(before, key) < _key(after, key)):
            yield before, None
            before = next(left, None)
        elif before is None or _key(after, key) < _key(before, key):
            yield None, after
            after = next(right, None)
        else:
            if any(before[name] != after[name] for name in fields):
                yield before, after
            before, after = next(left, None), next(right, None)


def _key(row: Row, names: Sequence[str]) -> tuple[Any, ...]:
    return tuple(row[name] for name in names)


def _difference(
    what: What, before: Row | None, after: Row | None, key: Sequence[str], fields: Sequence[str]
) -> Difference:
    either = before if before is not None else after
    assert either is not None, "a difference between nothing and nothing"
    return Difference(
        what=what,
        key={name: either[name] for name in key},
        before=None if before is None else {name: before[name] for name in fields},
        after=None if after is None else {name: after[name] for name in fields},
    )
