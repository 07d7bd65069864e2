"""Retention: what was kept for long enough goes, a bounded step at a time.

Content goes first, with the attempts at its jobs; the event's identity later, with all that hangs
on it. Suppressions, their causes, persons' decisions and statuses stay, and go on naming events
that are gone. What somebody still needs is passed by and looked at again each time: content that
was not applied, not brought to its destinations, or waits for a person.

Deliveries and events are walked in the order of their ids, which is that of arrival; so no index on
times is needed, and a clock that was wrong for a while takes nothing too early.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile

from hookbox.store import settled
from hookbox.store.connections import Row, Transaction

NEWEST = "SELECT received_at FROM delivery ORDER BY id DESC LIMIT 1"
UNFINISHED = "('available', 'running', 'held')"

NEXT_DELIVERIES = """
SELECT id, received_at, coalesce(length(body), 0) AS bytes FROM delivery
WHERE id > :after ORDER BY id LIMIT :limit
"""
FREE_DELIVERIES = f"""
SELECT d.id, coalesce(length(d.body), 0) AS bytes
FROM json_each(:ids) AS wanted CROSS JOIN delivery AS d ON d.id = wanted.value
WHERE d.received_at < :before
  AND NOT EXISTS (
    SELECT 1 FROM event AS e CROSS JOIN job AS j ON j.event_id = e.id
    WHERE e.delivery_id = d.id AND j.state IN {UNFINISHED}
  )
  AND NOT EXISTS (
    SELECT 1 FROM quarantine_entry AS q
    WHERE q.delivery_id = d.id AND (q.resolved_at IS NULL OR q.resolved_at >= :before)
  )
"""
# Nothing is left that could be no text; so the views show null.
DROP_BODIES = """
UPDATE delivery SET body = NULL, is_text = 1
WHERE id IN (SELECT value FROM json_each(:ids)) AND body IS NOT NULL
"""
DROP_OWN_CONTENT = """
UPDATE event SET content = NULL
WHERE delivery_id IN (SELECT value FROM json_each(:ids)) AND content IS NOT NULL
"""
DROP_CONTENT_ASIDE = """
UPDATE quarantine_entry SET content = NULL
WHERE delivery_id IN (SELECT value FROM json_each(:ids)) AND content IS NOT NULL
"""
DROP_ATTEMPTS = """
DELETE FROM attempt WHERE job_id IN (
  SELECT j.id FROM json_each(:ids) AS wanted
  CROSS JOIN event AS e ON e.delivery_id = wanted.value
  CROSS JOIN job AS j ON j.event_id = e.id
)
"""

NEXT_EVENTS = """
SELECT e.id, d.received_at, 0 AS bytes
FROM event AS e CROSS JOIN delivery AS d ON d.id = e.delivery_id
WHERE e.id > :after ORDER BY e.id LIMIT :limit
"""
# The newest stays, so that its id is not given again after a restart. What told a fact first stays
# while another tells it too: else a rebuild would take that one for the first.
FREE_EVENTS = f"""
SELECT e.id, 0 AS bytes
FROM json_each(:ids) AS wanted
CROSS JOIN event AS e ON e.id = wanted.value
CROSS JOIN delivery AS d ON d.id = e.delivery_id
WHERE d.received_at < :before AND coalesce(e.last_duplicate_at, 0) < :before
  AND e.id < (SELECT max(id) FROM event)
  AND NOT EXISTS (
    SELECT 1 FROM job AS j WHERE j.event_id = e.id AND j.state IN {UNFINISHED}
  )
  AND NOT EXISTS (SELECT 1 FROM quarantine_entry AS q WHERE q.event_id = e.id)
  AND NOT EXISTS (
    SELECT 1 FROM notification AS n CROSS JOIN notification AS again
      ON again.source_id = n.source_id AND again.meaning = n.meaning AND again.claims = 0
    WHERE n.event_id = e.id AND n.claims IS NOT 0 AND again.event_id <> e.id
  )
"""
DELIVERIES_OF = """
SELECT max(d.received_at) AS received_at, json_group_array(DISTINCT d.id) AS ids
FROM json_each(:ids) AS wanted
CROSS JOIN event AS e ON e.id = wanted.value
CROSS JOIN delivery AS d ON d.id = e.delivery_id
"""
JOBS_OF = "SELECT id FROM job WHERE event_id IN (SELECT value FROM json_each(:ids))"
# In the order that foreign keys ask for.
DROP_EVENTS = {
    "attempts": f"DELETE FROM attempt WHERE job_id IN ({JOBS_OF})",
    "turns": f"DELETE FROM job_turn WHERE job_id IN ({JOBS_OF})",
    "jobs": "DELETE FROM job WHERE event_id IN (SELECT value FROM json_each(:ids))",
    "notifications": """
        DELETE FROM notification WHERE event_id IN (SELECT value FROM json_each(:ids))
    """,
    "events": "DELETE FROM event WHERE id IN (SELECT value FROM json_each(:ids))",
}
DROP_UNUSED_DELIVERIES = """
DELETE FROM delivery
WHERE id IN (SELECT value FROM json_each(:ids)) AND id < (SELECT max(id) FROM delivery)
  AND NOT EXISTS (SELECT 1 FROM event WHERE delivery_id = delivery.id)
  AND NOT EXISTS (SELECT 1 FROM quarantine_entry WHERE delivery_id = delivery.id)
RETURNING id
"""

PLACE = "SELECT value FROM meta WHERE name = :name"
SAVE_PLACE = """
INSERT INTO meta (name, value) VALUES (:name, :value)
ON CONFLICT (name) DO UPDATE SET value = excluded.value
"""
KEPT = """
SELECT id FROM kept_longer WHERE stage = :stage AND id > :after ORDER BY id LIMIT :limit
"""
KEEP = "INSERT OR IGNORE INTO kept_longer (stage, id) VALUES (?, ?)"
LET_GO = """
DELETE FROM kept_longer WHERE stage = :stage AND id IN (SELECT value FROM json_each(:ids))
"""

# Between two looks at the clock: about a millisecond, two where pages must be read first.
CHUNK = 20
BYTES_MAX = 1 << 20  # of content: its pages are overwritten, each of them written to the WAL

Enough = Callable[[], bool]
Counts = Counter[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """What is walked, and what becomes of it. `take` drops what `free` lets go."""

    name: str
    next: str
    free: str
    take: Callable[[Transaction, Sequence[int], Counts], None]


@dataclass(slots=True, kw_only=True)
class Walk:
    """From where the last walk ended to what is not old enough; then once more over what was left
    before. `before`: what came before this instant is old enough.
    """

    stage: Stage
    before: int
    now: int
    _walked: bool = False
    _looked_at: int = 0

    def step(self, transaction: Transaction, enough: Enough, counts: Counts) -> bool:
        """Go on until enough; whether that was the end."""
        while not self._ended(transaction, counts):
            if enough():
                return False
        return True

    def _ended(self, transaction: Transaction, counts: Counts) -> bool:
        if not self._walked:
            self._walked = self._walk(transaction, counts)
            return False
        return self._look_again(transaction, counts)

    def _walk(self, transaction: Transaction, counts: Counts) -> bool:
        asked = {"after": place(transaction, self.stage), "limit": CHUNK}
        rows = transaction.execute(self.stage.next, asked).fetchall()
        ids = bounded(takewhile(self._passed, rows))
        left = set(ids) - self._take(transaction, ids, counts)
        transaction.executemany(KEEP, [(self.stage.name, row_id) for row_id in left])
        if ids:
            transaction.execute(SAVE_PLACE, {"name": _name(self.stage), "value": ids[-1]})
        return not ids

    def _passed(self, row: Row) -> bool:
        """What is too young ends the walk; but not what seems to come from the future, which came
        while the clock was wrong.
        """
        return not self.before <= row["received_at"] <= self.now

    def _look_again(self, transaction: Transaction, counts: Counts) -> bool:
        ids = kept(transaction, self.stage, self._looked_at)
        gone = self._take(transaction, ids, counts)
        if gone:
            transaction.execute(LET_GO, {"stage": self.stage.name, "ids": json.dumps(list(gone))})
        self._looked_at = ids[-1] if ids else 0
        return not ids

    def _take(self, transaction: Transaction, ids: Sequence[int], counts: Counts) -> set[int]:
        gone = free(transaction, self.stage, ids, self.before)
        if gone:
            self.stage.take(transaction, gone, counts)
        return set(gone)


def newest(transaction: Transaction) -> int | None:
    """When the delivery came that was stored last."""
    row = transaction.execute(NEWEST).fetchone()
    return None if row is None else int(row["received_at"])


def place(transaction: Transaction, stage: Stage) -> int:
    """The id up to which a stage was walked."""
    row = transaction.execute(PLACE, {"name": _name(stage)}).fetchone()
    return 0 if row is None else int(row["value"])


def _name(stage: Stage) -> str:
    return f"retention.{stage.name}"


def kept(transaction: Transaction, stage: Stage, after: int, limit: int = CHUNK) -> list[int]:
    """What was left, the next ones after this."""
    asked = {"stage": stage.name, "after": after, "limit": limit}
    return [row["id"] for row in transaction.execute(KEPT, asked)]


def free(transaction: Transaction, stage: Stage, ids: Sequence[int], before: int) -> list[int]:
    """Those that are old enough and that nothing needs any more."""
    if not ids:
        return []
    rows = transaction.execute(stage.free, {"ids": json.dumps(ids), "before": before})
    return [row["id"] for row in rows]


def bounded(rows: Iterable[Row]) -> list[int]:
    """As many as have a bounded amount of content together; one may have more."""
    ids: list[int] = []
    held_bytes = 0
    for row in rows:
        held_bytes += row["bytes"]
        if ids and held_bytes > BYTES_MAX:
            break
        ids.append(row["id"])
    return ids


def _take_bodies(transaction: Transaction, ids: Sequence[int], counts: Counts) -> None:
    asked = {"ids": json.dumps(ids)}
    counts["bodies"] += transaction.execute(DROP_BODIES, asked).rowcount
    transaction.execute(DROP_OWN_CONTENT, asked)
    transaction.execute(DROP_CONTENT_ASIDE, asked)
    counts["attempts"] += transaction.execute(DROP_ATTEMPTS, asked).rowcount


def _take_events(transaction: Transaction, ids: Sequence[int], counts: Counts) -> None:
    asked = {"ids": json.dumps(ids)}
    deliveries = transaction.execute(DELIVERIES_OF, asked).fetchone()
    settled.settle(transaction, ids, deliveries["received_at"])
    for kind, statement in DROP_EVENTS.items():
        counts[kind] += transaction.execute(statement, asked).rowcount
    drop_unused(transaction, json.loads(deliveries["ids"]), counts)


def drop_unused(transaction: Transaction, delivery_ids: Iterable[int], counts: Counts) -> None:
    """Deliveries that nothing came with any more go."""
    asked = {"ids": json.dumps(list(delivery_ids))}
    gone = [row["id"] for row in transaction.execute(DROP_UNUSED_DELIVERIES, asked).fetchall()]
    counts["deliveries"] += len(gone)
    transaction.execute(LET_GO, {"stage": BODIES.name, "ids": json.dumps(gone)})


BODIES = Stage(name="bodies", next=NEXT_DELIVERIES, free=FREE_DELIVERIES, take=_take_bodies)
KEYS = Stage(name="keys", next=NEXT_EVENTS, free=FREE_EVENTS, take=_take_events)
