"""The facts about an address, when it is erased: they stay, under a name that tells nobody whose.

A status or suppression that stands under that name already (it was erased before, and events about
it came again) takes the later one in.
"""

from hookbox.model import BounceClass, Kind
from hookbox.rules.lifecycle import Status, joined
from hookbox.rules.suppression import Cause, Suppression
from hookbox.store import order
from hookbox.store.connections import Row, Transaction
from hookbox.store.decisions import Word
from hookbox.store.ratchet import Ratchet

RECORD = """
INSERT INTO erasure (at, who, reason, pseudonym) VALUES (:at, :who, :reason, :name)
"""
STATUSES = """
SELECT
  source_id, message_id, rank, kind, bounce_class, status_at AS at, event_id,
  EXISTS (
    SELECT 1 FROM status AS t WHERE t.source_id = status.source_id
      AND t.message_id = status.message_id AND t.recipient = :name
  ) AS taken
FROM status WHERE recipient = :address LIMIT :limit
"""
STATUS = """
SELECT rank, kind, bounce_class, status_at AS at, event_id FROM status
WHERE source_id = :source_id AND message_id = :message_id AND recipient = :name
"""
DROP_STATUS = """
DELETE FROM status
WHERE source_id = :source_id AND message_id = :message_id AND recipient = :recipient
"""
RENAME_STATUS = """
UPDATE status SET recipient = :name, shown = :name
WHERE source_id = :source_id AND message_id = :message_id AND recipient = :address
"""
RENAME_SUPPRESSIONS = """
UPDATE suppression SET address = :name, shown = :name
WHERE address = :address AND (lift_id IS NOT NULL OR NOT EXISTS (
  SELECT 1 FROM suppression AS p
  WHERE p.address = :name AND p.scope = suppression.scope AND p.lift_id IS NULL
))
"""
STANDING_TWICE = """
SELECT p.id, p.scope, c.reason, c.since, c.event_id, c.source_id, c.decision_id
FROM suppression AS p JOIN suppression_cause AS c ON c.suppression_id = p.id
WHERE p.address = :address
"""
DROP_CAUSES = """
DELETE FROM suppression_cause
WHERE suppression_id IN (SELECT id FROM suppression WHERE address = :address)
"""
DROP_SUPPRESSIONS = "DELETE FROM suppression WHERE address = :address"
RENAME_DECISIONS = "UPDATE decision SET address = :name WHERE address = :address"

STATUSES_MAX = 200  # a transaction: a few milliseconds


def begin(transaction: Transaction, address: str, name: str, word: Word) -> None:
    """Write down that a folded address was erased, and let its suppressions go by its name."""
    order.places(transaction, 1)  # a rebuild that is under way would bring it back
    told = {"at": word.at, "who": word.who, "reason": word.reason, "name": name}
    transaction.execute(RECORD, told)
    place = {"address": address, "name": name}
    transaction.execute(RENAME_DECISIONS, place)
    transaction.execute(RENAME_SUPPRESSIONS, place)
    ratchet = Ratchet(transaction, [name])
    for row in transaction.execute(STANDING_TWICE, place).fetchall():
        new = Suppression(
            cause=Cause(row["reason"]),
            at=row["since"],
            event_id=row["event_id"],
            source_id=row["source_id"],
        )
        ratchet.count(name, row["scope"], new, decision_id=row["decision_id"])
    transaction.execute(DROP_CAUSES, place)
    transaction.execute(DROP_SUPPRESSIONS, place)
    ratchet.save()


def rename_statuses(
    transaction: Transaction, address: str, name: str, limit: int = STATUSES_MAX
) -> int:
    """Let the next of its statuses go by its name; how many, 0 at the end."""
    asked = {"address": address, "name": name, "limit": limit}
    rows = transaction.execute(STATUSES, asked).fetchall()
    for row in rows:
        place = {"source_id": row["source_id"], "message_id": row["message_id"]}
        named = {**place, "address": address, "name": name}
        if row["taken"]:
            known = _status(transaction.execute(STATUS, named).fetchone())
            kept = joined(known, _status(row))
            lesser = address if kept is known else name
            transaction.execute(DROP_STATUS, {**place, "recipient": lesser})
        transaction.execute(RENAME_STATUS, named)
    return len(rows)


def _status(row: Row) -> Status:
    bounce_class = row["bounce_class"]
    return Status(
        rank=row["rank"],
        kind=Kind(row["kind"]),
        bounce_class=None if bounce_class is None else BounceClass(bounce_class),
        at=row["at"],
        event_id=row["event_id"],
    )
