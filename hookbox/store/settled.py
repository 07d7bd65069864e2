"""What stays known of events that are gone, so that a rebuild comes to the same without them.

The statuses and causes that rest on such events are carried over as they stand (see `history`).
Two things are told only by the order in which all that happened: how far a status had come before
a later event raised it, and which soft bounces counted together. The first is kept with the status;
the second is not worked out again for the time of which events are missing.
"""

from collections.abc import Sequence

from hookbox.errors import OperatorError
from hookbox.model import BounceClass, Kind
from hookbox.rules.lifecycle import RANKS, SOFT_RANK
from hookbox.store.connections import Transaction

# Below a soft bounce it makes no difference how far a status had come.
MATTERING = sorted({kind.value for (kind, _), rank in RANKS.items() if rank >= SOFT_RANK})
SUPERSEDED = f"""
SELECT
  n.source_id, coalesce(n.message_id, '') AS message_id, n.address AS recipient, n.event_id,
  n.kind, n.bounce_class, n.occurred_at AS at
FROM json_each(:ids) AS wanted CROSS JOIN notification AS n ON n.event_id = wanted.value
WHERE n.kind IN ({", ".join(map(repr, MATTERING))})
  AND n.address IS NOT NULL AND NOT n.ambiguous AND n.claims IS NOT 0
  AND NOT EXISTS (SELECT 1 FROM status WHERE event_id = n.event_id AND recipient = n.address)
"""
SETTLE = """
UPDATE status SET settled = json_array(:rank, :kind, :bounce_class, :at, :event_id)
WHERE source_id = :source_id AND message_id = :message_id AND recipient = :recipient
  AND rank >= :rank AND (
    settled IS NULL
    OR (json_extract(settled, '$[0]'), -json_extract(settled, '$[3]')) < (:rank, -:at)
  )
"""
NOTE_GONE = """
INSERT INTO meta (name, value) VALUES ('gone.until', :received_at), ('gone.times', 1)
ON CONFLICT (name) DO UPDATE SET value = CASE name
  WHEN 'gone.until' THEN max(value, excluded.value) ELSE value + 1
END
"""
GONE = "SELECT value FROM meta WHERE name = :name"
NOTE_TIMES = "INSERT INTO meta (name, value) VALUES ('gone.times', :times)"

DAY_MS = 86_400_000  # an event is believed when it says to have happened so much after it came


def settle(transaction: Transaction, event_ids: Sequence[int], received_at: int) -> None:
    """These events, of which the last was received then, are about to go."""
    transaction.execute(NOTE_GONE, {"received_at": received_at})
    rows = transaction.execute(SUPERSEDED, {"ids": _listed(event_ids)}).fetchall()
    for row in rows:
        transaction.execute(SETTLE, {**dict(row), **_rank(row["kind"], row["bounce_class"])})


def counts_from(ledger: Transaction) -> int | None:
    """Every event that happened later than this is there; None while none is gone."""
    row = ledger.execute(GONE, {"name": "gone.until"}).fetchone()
    return None if row is None else int(row["value"]) + DAY_MS


def _times(ledger: Transaction) -> int:
    """How often events went."""
    row = ledger.execute(GONE, {"name": "gone.times"}).fetchone()
    return 0 if row is None else int(row["value"])


def note(live: Transaction, fresh: Transaction) -> None:
    """Remember in a fresh ledger which events were there when it was begun."""
    fresh.execute(NOTE_TIMES, {"times": _times(live)})


def check_same(live: Transaction, fresh: Transaction) -> None:
    """Raises OperatorError when events went since the fresh ledger was begun."""
    if _times(live) != _times(fresh):
        raise OperatorError("retention took events meanwhile, so nothing was changed; run it again")


def _listed(ids: Sequence[int]) -> str:
    return f"[{','.join(map(str, ids))}]"


def _rank(kind: str, bounce_class: str | None) -> dict[str, object]:
    """As `lifecycle.reported` ranks it."""
    bounced = Kind(kind) is Kind.BOUNCED
    found = BounceClass(bounce_class or BounceClass.UNDETERMINED) if bounced else None
    return {"rank": RANKS[Kind(kind), found], "bounce_class": found}
