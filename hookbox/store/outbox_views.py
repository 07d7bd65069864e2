"""What `hookbox outbox` reads: pages of the documented view, and what holds for whole lanes."""

from hookbox.store.connections import Transaction
from hookbox.store.views import Line, Page, read_all, read_first, read_page

OUTBOX = """
SELECT id, event_id, target, replay, state, attempts, run_at, last_outcome FROM outbox
"""
ATTEMPTS = """
SELECT job_id, number, started_at, took_ms, outcome, status, excerpt FROM attempts
WHERE job_id = :id ORDER BY number
"""
# Only what is asked for enters the statement, so that each condition can use its index.
CONDITIONS = {
    "target": "target = :target",
    "state": "state = :state",
    "event_id": "event_id = :event_id",
}
LANES = """
SELECT
  target,
  strftime('%Y-%m-%dT%H:%M:%fZ', paused_at / 1000.0, 'unixepoch') AS paused_at,
  paused_by, pause_reason, failures,
  strftime('%Y-%m-%dT%H:%M:%fZ', broken_at / 1000.0, 'unixepoch') AS broken_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', probe_at / 1000.0, 'unixepoch') AS probe_at,
  last_failure
FROM lane WHERE paused_at IS NOT NULL OR broken_at IS NOT NULL ORDER BY target
"""


def jobs(
    transaction: Transaction,
    page: Page,
    *,
    target: str | None = None,
    state: str | None = None,
    event_id: int | None = None,
) -> list[Line]:
    """A page of jobs."""
    given = {"target": target, "state": state, "event_id": event_id}
    asked = {name: value for name, value in given.items() if value is not None}
    return read_page(transaction, OUTBOX, [CONDITIONS[name] for name in asked], asked, page)


def job(transaction: Transaction, job_id: int) -> Line | None:
    """One job, None when there is no such."""
    return read_first(transaction, OUTBOX + "WHERE id = :id", {"id": job_id})


def attempts(transaction: Transaction, job_id: int) -> list[Line]:
    """Every recorded try at a job."""
    return read_all(transaction, ATTEMPTS, {"id": job_id})


def lanes(transaction: Transaction) -> list[Line]:
    """Lanes that bring nothing at the moment: paused by a person, or left alone after failures."""
    return read_all(transaction, LANES, {})
