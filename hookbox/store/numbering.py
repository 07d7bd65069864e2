"""Numbers that the world outside has seen: ids and replays, which name one thing for ever.

Destinations know an event by its id (and a replay by its number), programs keep an id as their
place in the feed. A restored backup knows nothing of the numbers that were given out after it was
made. If one of them were given out again, a destination would take another event for one that it
has had, and drop it; so a restored database goes on well past all of them.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from hookbox.store.connections import Transaction

# Also where a row comes into being without anybody choosing its id.
NEXT_ID = """max(
  (SELECT coalesce(max(id), 0) FROM {table}),
  coalesce((SELECT value FROM meta WHERE name = 'ids_after'), 0)
) + 1"""
# In a statement over the earlier jobs of one event and target.
NEXT_REPLAY = """max(
  coalesce(max(replay), -1),
  coalesce((SELECT value FROM meta WHERE name = 'replays_after'), -1)
) + 1"""

# One id is used for each event that is offered, new or not: this is a month at 380 a second, all
# day long. The ids of 9 million restores fit into what JavaScript counts exactly (2**53).
IDS_STEP = 1_000_000_000
REPLAYS_STEP = 1_000  # nobody replays one event that often between two backups

HIGHEST = """
SELECT
  max(
    (SELECT coalesce(max(id), 0) FROM delivery),
    (SELECT coalesce(max(id), 0) FROM event),
    (SELECT coalesce(max(id), 0) FROM quarantine_entry),
    coalesce((SELECT value FROM meta WHERE name = 'ids_after'), 0)
  ) AS id,
  max(
    (SELECT coalesce(max(replay), 0) FROM job),
    coalesce((SELECT value FROM meta WHERE name = 'replays_after'), 0)
  ) AS replay,
  coalesce((SELECT value FROM meta WHERE name = 'instance'), 0) AS instance
"""
REMEMBER = """
INSERT INTO meta (name, value) VALUES (:name, :value)
ON CONFLICT (name) DO UPDATE SET value = excluded.value
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Highest:
    """The highest numbers that a database knows to have been given out."""

    id: int
    replay: int
    instance: int


def highest(transaction: Transaction) -> Highest:
    """What was given out so far."""
    row = transaction.execute(HIGHEST).fetchone()
    return Highest(id=row["id"], replay=row["replay"], instance=row["instance"])


def step_over(transaction: Transaction, known: Iterable[Highest]) -> None:
    """Go on past these, and past as many more as can have been given out unseen."""
    seen = [highest(transaction), *known]
    values = {
        "ids_after": _past(max(each.id for each in seen), IDS_STEP),
        "replays_after": _past(max(each.replay for each in seen), REPLAYS_STEP),
        "instance": max(each.instance for each in seen),
    }
    rows = [{"name": name, "value": value} for name, value in values.items()]
    transaction.executemany(REMEMBER, rows)


def _past(number: int, step: int) -> int:
    """A round number, between one and two steps further on."""
    return (number // step + 2) * step
