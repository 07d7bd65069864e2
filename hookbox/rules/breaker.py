"""The circuit breaker: a target that fails again and again is left alone, then tried with one job.

Times are monotonic seconds.
"""

from dataclasses import dataclass, replace

PROBES_S = (10.0, 30.0, 60.0, 300.0)  # the waits before one job is tried, the last one for ever


@dataclass(frozen=True, slots=True, kw_only=True)
class Breaker:
    """What is known of a target. `probe_at` is when one job may be tried; None while it is well.

    `failures` counts those in a row, `probes` the tries that failed since it broke.
    """

    failures: int = 0
    probes: int = 0
    probe_at: float | None = None

    @property
    def broken(self) -> bool:
        return self.probe_at is not None


WELL = Breaker()


def after_failure(breaker: Breaker, failures_max: int, now: float) -> Breaker:
    """One more failure. What was under way when the target broke tells nothing new."""
    if breaker.probe_at is not None:
        if now < breaker.probe_at:
            return breaker
        probes = breaker.probes + 1
        return replace(breaker, probes=probes, probe_at=now + _wait_s(probes))
    failures = breaker.failures + 1
    if failures < failures_max:
        return replace(breaker, failures=failures)
    return Breaker(failures=failures, probe_at=now + _wait_s(0))


def _wait_s(probes: int) -> float:
    return PROBES_S[min(probes, len(PROBES_S) - 1)]
