"""The swap: what a rebuild found takes the place of what was there, in one transaction.

Everything is compared once more first. Where anything was applied or decided meanwhile, nothing is
changed.
"""

import json
from collections.abc import Collection, Iterable
from pathlib import Path

from hookbox.errors import OperatorError
from hookbox.store import decisions, order, scratch, settled
from hookbox.store.connections import Row, Transaction
from hookbox.store.decisions import Verb, Word
from hookbox.store.differences import Difference, What

NOTE = "INSERT INTO difference (what, key, before) VALUES (?, ?, ?)"
NOTED = "SELECT what, key, before FROM difference ORDER BY what, key"
FORGET_NOTES = "DELETE FROM difference"
EVENT = "event"

STATUS = """
SELECT rank, kind, bounce_class, status_at, event_id FROM status
WHERE source_id = :source_id AND message_id = :message_id AND recipient = :recipient
"""
FRESH_STATUS = """
SELECT source_id, message_id, recipient, shown, rank, kind, bounce_class, status_at, event_id
FROM status
WHERE source_id = :source_id AND message_id = :message_id AND recipient = :recipient
"""
DROP_STATUS = """
DELETE FROM status
WHERE source_id = :source_id AND message_id = :message_id AND recipient = :recipient
"""
PUT_STATUS = """
INSERT INTO status
  (source_id, message_id, recipient, shown, rank, kind, bounce_class, status_at, event_id)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (source_id, message_id, recipient) DO UPDATE
SET rank = excluded.rank, kind = excluded.kind, bounce_class = excluded.bounce_class,
  status_at = excluded.status_at, event_id = excluded.event_id
"""
SUPPRESSION = """
SELECT id, address, scope, shown, reason, since, event_id, source_id FROM suppression
WHERE address = :address AND scope = :scope AND lift_id IS NULL
"""
PUT_SUPPRESSION = """
INSERT INTO suppression (address, scope, shown, reason, since, event_id, source_id)
VALUES (:address, :scope, :shown, :reason, :since, :event_id, :source_id)
ON CONFLICT (address, scope) WHERE lift_id IS NULL DO UPDATE
SET reason = excluded.reason, since = excluded.since, event_id = excluded.event_id,
  source_id = excluded.source_id
RETURNING id
"""
LIFT = "UPDATE suppression SET lift_id = :lift_id WHERE id = :id"
CAUSES = """
SELECT reason, since, event_id, source_id, decision_id FROM suppression_cause
WHERE suppression_id = :id
"""
DROP_CAUSES = "DELETE FROM suppression_cause WHERE suppression_id = :id"
PUT_CAUSE = """
INSERT INTO suppression_cause
  (suppression_id, reason, since, event_id, source_id, decision_id)
VALUES (?, ?, ?, ?, ?, ?)
"""
DROP_SAID = "DELETE FROM notification WHERE event_id = :event_id"
SAID = """
SELECT
  event_id, source_id, message_id, recipient, address, candidates, kind, bounce_class,
  reject_reason, occurred_at, time_source, ambiguous, suppress, scope, meaning, claims, effect
FROM notification WHERE event_id = :event_id ORDER BY id
"""
PUT_SAID = """
INSERT INTO notification
  (event_id, source_id, message_id, recipient, address, candidates, kind, bounce_class,
   reject_reason, occurred_at, time_source, ambiguous, suppress, scope, meaning, claims, effect)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
SUMMARY = "SELECT kind, recipient, message_id, occurred_at, id FROM event WHERE id = :event_id"
PUT_SUMMARY = """
UPDATE event SET kind = ?, recipient = ?, message_id = ?, occurred_at = ? WHERE id = ?
"""

MOVED = "something was applied or decided meanwhile, so nothing was changed; run it again"
LIFTED_WHY = "rebuild: no stored event says so any more"


def note(fresh: Transaction, differences: Iterable[Difference], event_ids: Collection[int]) -> None:
    """Write into the scratch ledger what is to be swapped."""
    rows = [
        (each.what, json.dumps(each.key), each.before and json.dumps(each.before))
        for each in differences
    ]
    fresh.execute("BEGIN")
    fresh.execute(FORGET_NOTES)
    fresh.executemany(NOTE, rows)
    fresh.executemany(NOTE, [(EVENT, str(event_id), None) for event_id in event_ids])
    fresh.execute("COMMIT")


def swap(transaction: Transaction, path: Path, position: int, word: Word) -> int:
    """Take over what was noted in the scratch ledger at `path`; how many rows.

    Raises OperatorError where the live ledger has moved on since it was compared.
    """
    if order.last_place(transaction) != position:
        raise OperatorError(MOVED)
    decisions.record(transaction, Verb.REBUILD, word)
    with scratch.opened(path) as fresh:
        settled.check_same(transaction, fresh)
        noted = fresh.execute(NOTED).fetchall()
        # What events said first: two of them may have changed places in what counts as told first.
        event_ids = [int(row["key"]) for row in noted if row["what"] == EVENT]
        _retell(transaction, fresh, event_ids)
        for row in noted:
            if row["what"] == What.STATUS:
                _swap_status(transaction, fresh, row)
            elif row["what"] == What.SUPPRESSION:
                _swap_suppression(transaction, fresh, row, word)
    return len(noted)


def _retell(transaction: Transaction, fresh: Transaction, event_ids: Collection[int]) -> None:
    places = [{"event_id": event_id} for event_id in event_ids]
    transaction.executemany(DROP_SAID, places)
    for place in places:
        transaction.executemany(PUT_SAID, [tuple(row) for row in fresh.execute(SAID, place)])
        transaction.execute(PUT_SUMMARY, tuple(fresh.execute(SUMMARY, place).fetchone()))


def _swap_status(transaction: Transaction, fresh: Transaction, noted: Row) -> None:
    key = json.loads(noted["key"])
    before = transaction.execute(STATUS, key).fetchone()
    if (before and dict(before)) != json.loads(noted["before"] or "null"):
        raise OperatorError(MOVED)
    after = fresh.execute(FRESH_STATUS, key).fetchone()
    if after is None:
        transaction.execute(DROP_STATUS, key)
    else:
        transaction.execute(PUT_STATUS, tuple(after))


def _swap_suppression(transaction: Transaction, fresh: Transaction, noted: Row, word: Word) -> None:
    """What nothing says any more is lifted, not deleted: by whom and why stays to be seen."""
    key = json.loads(noted["key"])
    before = transaction.execute(SUPPRESSION, key).fetchone()
    expected = json.loads(noted["before"] or "null")
    if (before and before["since"]) != (expected and expected["since"]):
        raise OperatorError(MOVED)
    after = fresh.execute(SUPPRESSION, key).fetchone()
    if after is None:
        why = Word(who=word.who, reason=LIFTED_WHY, at=word.at)
        lift_id = decisions.record(transaction, Verb.LIFT, why, **key)
        transaction.execute(LIFT, {"id": before["id"], "lift_id": lift_id})
        return
    (row_id,) = transaction.execute(PUT_SUPPRESSION, dict(after)).fetchone()
    causes = fresh.execute(CAUSES, {"id": after["id"]}).fetchall()
    transaction.execute(DROP_CAUSES, {"id": row_id})
    transaction.executemany(PUT_CAUSE, [(row_id, *tuple(cause)) for cause in causes])
