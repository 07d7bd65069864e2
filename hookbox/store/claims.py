"""Claims: the jobs that are due, with what they are about, as much as fits into memory."""

from hookbox.store import events, jobs
from hookbox.store.connections import Transaction
from hookbox.store.jobs import Job, Lease

BYTES_MAX = 8 * 1024 * 1024  # of content that is held in memory; one event may be larger


def claim(
    transaction: Transaction, target: str, lease: Lease, *, now: int, horizon: int, limit: int
) -> list[Job]:
    """Up to `limit` due jobs whose events fit into memory together; the others wait for their
    turn. See `jobs.claim`.
    """
    found = jobs.claim(transaction, target, lease, now=now, horizon=horizon, limit=limit)
    if not found:
        return found
    count = events.fitting(transaction, [job.event_id for job in found], BYTES_MAX)
    if count < len(found):
        jobs.give_back(transaction, [job.id for job in found[count:]], lease)
    return found[:count]
