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
    sizes = events.sizes(transaction, [job.event_id for job in found])
    held_bytes = 0
    for count, job in enumerate(found):
        held_bytes += sizes[job.event_id]
        if held_bytes > BYTES_MAX and count > 0:
            jobs.give_back(transaction, [each.id for each in found[count:]], lease)
            return found[:count]
    return found
