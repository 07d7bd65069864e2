"""The ratchet's rows: which addresses are suppressed, by what, and what a person lifted.

A `Ratchet` reads the standing of some addresses once, lets causes count against them, and writes
what came of it at once. Only the writer's transaction comes this way, and there is one.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field

from hookbox.rules.folding import folded
from hookbox.rules.suppression import Cause, Suppression, first, holds
from hookbox.store.connections import Row, Transaction

SUPPRESSIONS = """
SELECT
  p.id, p.address, p.scope, p.reason, p.since, p.event_id, p.source_id, p.lift_id,
  d.at AS lifted_at
FROM suppression AS p
LEFT JOIN decision AS d ON d.id = p.lift_id
WHERE p.address IN (SELECT value FROM json_each(:addresses))
"""
LIFTED_EVENTS = """
SELECT suppression_id, event_id FROM suppression_cause
WHERE suppression_id IN (SELECT value FROM json_each(:ids)) AND event_id IS NOT NULL
"""
NEXT_ID = "SELECT coalesce(max(id), 0) + 1 FROM suppression"
OPEN = """
INSERT INTO suppression (id, address, scope, shown, reason, since, event_id, source_id)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
EARLIER_REASON = """
UPDATE suppression SET reason = ?, since = ?, event_id = ?, source_id = ? WHERE id = ?
"""
ADD_CAUSE = """
INSERT INTO suppression_cause (suppression_id, reason, since, event_id, source_id, decision_id)
VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (suppression_id, reason, coalesce(event_id, 0)) DO UPDATE
SET since = excluded.since, source_id = excluded.source_id, decision_id = excluded.decision_id
WHERE excluded.since < since
"""


@dataclass(slots=True, kw_only=True)
class Standing:
    """Where one (address, scope) stands: the open suppression if there is one, the latest lift, and
    the events that were lifted: they are settled, however late their own time.
    """

    id: int | None = None
    shown: str = ""
    suppression: Suppression | None = None
    lifted_at: int | None = None
    lifted_events: set[int] = field(default_factory=set)

    def settled(self, new: Suppression) -> bool:
        """Whether a person lifted this cause already, or later than it happened."""
        return new.event_id in self.lifted_events or not holds(new.at, self.lifted_at)


class Ratchet:
    """The standing of some addresses, inside one transaction: read, counted against, saved."""

    def __init__(self, transaction: Transaction, addresses: Iterable[str]) -> None:
        self._transaction = transaction
        self._standings = _standings(transaction, addresses)
        self._opened: dict[int, tuple[str, str]] = {}  # id -> (address, scope)
        self._moved: set[tuple[str, str]] = set()
        self._causes: list[tuple[int, Suppression, int | None]] = []
        self._free_id: int | None = None

    def standing(self, address: str, scope: str) -> Standing:
        """Where a folded address stands."""
        return self._standings.get((address, scope)) or Standing()

    def count(
        self, shown: str, scope: str, new: Suppression, *, decision_id: int | None = None
    ) -> str:
        """Let one cause count against one address; what came of it, in words.

        No older lift undoes what a person decides now.
        """
        place = folded(shown), scope
        standing = self._standings.setdefault(place, Standing())
        if decision_id is None and standing.settled(new):
            return f"{new.cause} ignored: lifted by a person"
        if standing.id is None:
            standing.id = self._next_id()
            standing.shown = shown
            self._opened[standing.id] = place
            told = f"suppressed ({new.cause})"
        else:
            told = ""
        kept = first(standing.suppression, new)
        if standing.id not in self._opened and kept is new:
            self._moved.add(place)
        standing.suppression = kept
        self._causes.append((standing.id, new, decision_id))
        return told or f"already suppressed ({kept.cause})"

    def save(self) -> None:
        """Write down what came of all that counted."""
        opened = [
            (row_id, *place, self._standings[place].shown, *_fields(self._standings[place]))
            for row_id, place in self._opened.items()
        ]
        moved = [
            (*_fields(self._standings[place]), self._standings[place].id) for place in self._moved
        ]
        causes = [
            (row_id, new.cause, new.at, new.event_id, new.source_id, decision_id)
            for row_id, new, decision_id in self._causes
        ]
        self._transaction.executemany(OPEN, opened)
        self._transaction.executemany(EARLIER_REASON, moved)
        self._transaction.executemany(ADD_CAUSE, causes)

    def _next_id(self) -> int:
        if self._free_id is None:
            (free_id,) = self._transaction.execute(NEXT_ID).fetchone()
            self._free_id = int(free_id)
        self._free_id += 1
        return self._free_id - 1


def _fields(standing: Standing) -> tuple[object, ...]:
    suppression = standing.suppression
    assert suppression is not None, "what is open has a cause"
    return suppression.cause, suppression.at, suppression.event_id, suppression.source_id


def _standings(
    transaction: Transaction, addresses: Iterable[str]
) -> dict[tuple[str, str], Standing]:
    """(folded address, scope) -> where it stands; those never suppressed are missing."""
    found: dict[tuple[str, str], Standing] = {}
    lifted: dict[int, Standing] = {}
    place = {"addresses": json.dumps(sorted(set(addresses)))}
    for row in transaction.execute(SUPPRESSIONS, place):
        standing = found.setdefault((row["address"], row["scope"]), Standing())
        if row["lift_id"] is None:
            standing.id = row["id"]
            standing.suppression = _suppression(row)
        else:
            standing.lifted_at = max(row["lifted_at"], standing.lifted_at or 0)
            lifted[row["id"]] = standing
    if lifted:
        for row in transaction.execute(LIFTED_EVENTS, {"ids": json.dumps(list(lifted))}):
            lifted[row["suppression_id"]].lifted_events.add(row["event_id"])
    return found


def _suppression(row: Row) -> Suppression:
    return Suppression(
        cause=Cause(row["reason"]),
        at=row["since"],
        event_id=row["event_id"],
        source_id=row["source_id"],
    )
