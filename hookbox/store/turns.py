"""Turns: at a destination that keeps an order, a job is held until those before it are finished.

Each finished job frees at most one follower for each thing whose order it kept, so a long queue
behind a dead destination costs nothing per look.
"""

import json
from collections.abc import Iterable, Sequence

from hookbox.store.connections import Transaction

WAITS = "waits for its turn"

TAKE_TURN = "INSERT OR IGNORE INTO job_turn (target, thing, job_id) VALUES (?, ?, ?)"
NOT_FIRST = """
EXISTS (
  SELECT 1 FROM job_turn AS mine JOIN job_turn AS earlier
    ON earlier.target = mine.target AND earlier.thing = mine.thing AND earlier.job_id < mine.job_id
  WHERE mine.job_id = job.id
)
"""
HOLD_BACK = f"""
UPDATE job SET state = 'held', last_outcome = '{WAITS}'
WHERE id IN (SELECT value FROM json_each(:ids)) AND state = 'available' AND {NOT_FIRST}
"""
FOLLOWERS = """
SELECT DISTINCT (
  SELECT min(later.job_id) FROM job_turn AS later
  WHERE later.target = mine.target AND later.thing = mine.thing AND later.job_id > mine.job_id
) AS id
FROM job_turn AS mine WHERE mine.job_id IN (SELECT value FROM json_each(:ids))
"""
LEAVE = "DELETE FROM job_turn WHERE job_id IN (SELECT value FROM json_each(:ids))"
LET_GO = f"""
UPDATE job SET state = 'available'
WHERE id IN (SELECT value FROM json_each(:ids)) AND state = 'held' AND last_outcome = '{WAITS}'
  AND NOT {NOT_FIRST}
"""


def take(transaction: Transaction, rows: Sequence[tuple[str, str, int]]) -> None:
    """New jobs queue up: (target, thing, job id). Who is not the first in each queue is held."""
    if not rows:
        return
    transaction.executemany(TAKE_TURN, rows)
    transaction.execute(HOLD_BACK, {"ids": json.dumps([job_id for _, _, job_id in rows])})


def leave(transaction: Transaction, ids: Iterable[int]) -> None:
    """These jobs are finished; whoever comes next, and is the first everywhere, may go."""
    place = {"ids": json.dumps(list(ids))}
    queues = transaction.execute(FOLLOWERS, place).fetchall()
    if not queues:
        return  # as at most destinations
    transaction.execute(LEAVE, place)
    followers = [row["id"] for row in queues if row["id"]]
    if followers:
        transaction.execute(LET_GO, {"ids": json.dumps(followers)})
