"""One pass of retention: the sweeps in their order, and the file made shorter at the end."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from hookbox.errors import Reason
from hookbox.store import retention
from hookbox.store.connections import Transaction
from hookbox.store.retention import BODIES, CHUNK, KEYS, Counts, Enough, Walk

# The newest stays, so that its id is not given again after a restart.
OLD_ENTRIES = """
SELECT id FROM quarantine_entry
WHERE resolved_at < :before AND coalesce(last_repeat_at, 0) < :before
  AND id < (SELECT max(id) FROM quarantine_entry)
ORDER BY resolved_at LIMIT :limit
"""
DROP_ENTRIES = f"DELETE FROM quarantine_entry WHERE id IN ({OLD_ENTRIES}) RETURNING delivery_id"
DROP_TOKENS = """
DELETE FROM token WHERE (source_id, token) IN (
  SELECT source_id, token FROM token WHERE seen_at < :before ORDER BY seen_at LIMIT :limit
)
"""
OLD_REFUSALS = """
SELECT source_id, reason, minute FROM refusal
WHERE source_id IN (SELECT id FROM source)
  AND reason IN (SELECT value FROM json_each(:reasons))
  AND minute < :before / 60000
"""
DROP_REFUSALS = f"""
DELETE FROM refusal WHERE (source_id, reason, minute) IN ({OLD_REFUSALS} LIMIT :limit)
"""
# One at a time: each may be as large as a body.
DROP_PROBED = """
DELETE FROM probe_request WHERE (probe_id, number) IN (
  SELECT r.probe_id, r.number FROM probe AS p JOIN probe_request AS r ON r.probe_id = p.id
  WHERE p.ended_at < :before LIMIT 1
)
"""
REASONS = json.dumps([reason.value for reason in Reason])

VACUUM_PAGES = 16  # between two looks at the clock: each is read, written elsewhere, and pointed to
# What is written next finds room without the file growing again: a twentieth, and 4 MB at least.
SPARE_PART = 20
SPARE_PAGES = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Horizons:
    """What came before these instants is old enough. `spare`: free pages stay in the file for what
    comes next.
    """

    bodies: int
    keys: int
    now: int
    spare: bool = True


class Sweep(Protocol):
    """One kind of work of a pass."""

    def step(self, transaction: Transaction, enough: Enough, counts: Counts) -> bool:
        """Do some of it, until enough; whether nothing is left."""
        ...


@dataclass(frozen=True, slots=True)
class _Delete:
    """Rows that nothing else hangs on."""

    kind: str
    statement: str
    before: int

    def step(self, transaction: Transaction, enough: Enough, counts: Counts) -> bool:
        asked = {"before": self.before, "limit": CHUNK, "reasons": REASONS}
        while gone := transaction.execute(self.statement, asked).rowcount:
            counts[self.kind] += gone
            if enough():
                return False
        return True


@dataclass(frozen=True, slots=True)
class _Entries:
    """What a person has decided about in quarantine, long ago."""

    before: int

    def step(self, transaction: Transaction, enough: Enough, counts: Counts) -> bool:
        asked = {"before": self.before, "limit": CHUNK}
        while gone := transaction.execute(DROP_ENTRIES, asked).fetchall():
            counts["quarantine"] += len(gone)
            retention.drop_unused(transaction, {row["delivery_id"] for row in gone}, counts)
            if enough():
                return False
        return True


@dataclass(frozen=True, slots=True)
class _Vacuum:
    """Free pages go to the end of the file, which becomes shorter with the next checkpoint."""

    spare: bool

    def step(self, transaction: Transaction, enough: Enough, counts: Counts) -> bool:
        while (excess := _free_pages(transaction) - self._spared(transaction)) > 0:
            for _ in range(min(excess, VACUUM_PAGES)):
                # One a call: the sqlite3 module takes one step of a statement without columns.
                transaction.execute("PRAGMA incremental_vacuum(1)")
                counts["pages"] += 1
            if enough():
                return False
        return True

    def _spared(self, transaction: Transaction) -> int:
        if not self.spare:
            return 0
        (pages,) = transaction.execute("PRAGMA page_count").fetchone()
        return max(SPARE_PAGES, int(pages) // SPARE_PART)


def _free_pages(transaction: Transaction) -> int:
    (pages,) = transaction.execute("PRAGMA freelist_count").fetchone()
    return int(pages)


def all_of_a_pass(horizons: Horizons) -> Sequence[Sweep]:
    """Everything, in order: entries before the events and deliveries that they name."""
    return (
        _Entries(horizons.keys),
        Walk(stage=KEYS, before=horizons.keys, now=horizons.now),
        Walk(stage=BODIES, before=horizons.bodies, now=horizons.now),
        _Delete("tokens", DROP_TOKENS, horizons.keys),
        _Delete("refusals", DROP_REFUSALS, horizons.keys),
        _Delete("probed", DROP_PROBED, horizons.bodies),
        _Vacuum(horizons.spare),
    )
