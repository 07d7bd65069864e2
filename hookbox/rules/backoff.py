"""How long to wait before the next try."""

from collections.abc import Sequence


def delay_s(schedule_s: Sequence[float], failures: int, jitter: float = 0.0) -> float:
    """The wait after `failures` earlier failures: the schedule's entry, its last one for ever
    after.

    `jitter` between 0 and 1 adds up to a tenth, so that many jobs that failed together do not come
    back together.
    """
    wait_s = schedule_s[min(failures, len(schedule_s) - 1)]
    return wait_s * (1 + 0.1 * jitter)
