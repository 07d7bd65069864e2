"""The floors: what the figures of one run must reach.

Rates are compared as ratios inside one round, and the median of the rounds counts: figures of
different moments, or of different machines, cannot be compared.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from tests.bench.bench import CROWD, Count, Reading, Run, Seen

HOOKBOX = "hookbox"
EXPRESS = "Express + better-sqlite3"
FASTAPI = "FastAPI + sqlite3"
FLASK = "Flask + gunicorn + sqlite3"

ANSWER_MAX_S = 4  # the strictest senders wait five
STEADY_P99_MAX_MS = 10
FAST_SYNC_MS = 0.5  # on a slower disk the steady floor says more about the disk than about the box

# scenario, who, compared with whom, connections, least ratio of their rates
RATIOS = (
    ("ladder", HOOKBOX, EXPRESS, 1, 0.9),
    ("ladder", HOOKBOX, EXPRESS, 16, 3),
    ("ladder", HOOKBOX, FASTAPI, 16, 3),
    ("ladder", HOOKBOX, FLASK, 16, 3),
    ("ladder", HOOKBOX, EXPRESS, CROWD, 3.5),
    ("ladder", HOOKBOX, FASTAPI, CROWD, 5),
    ("ladder", HOOKBOX, FLASK, CROWD, 5),
    ("ladder", HOOKBOX, "hookbox, checks only", CROWD, 0.5),
    ("slow disk", HOOKBOX, "transaction per request", CROWD, 20),
    ("duplicates", "sent again", "new", CROWD, 1),
    ("grown", "grown, random ids", "empty, random ids", CROWD, 0.7),
    ("grown", "grown, ordered ids", "empty, ordered ids", CROWD, 0.9),
)

# reading, most
READINGS = (("ready (s)", 0.6), ("idle CPU (%)", 0.5), ("RSS after many (MB)", 80))


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """A bound and what was measured. `least`: the bound is the least allowed, else the most."""

    name: str
    measured: float
    bound: float
    least: bool = False

    @property
    def met(self) -> bool:
        return self.measured >= self.bound if self.least else self.measured <= self.bound


def floors(seen: Sequence[Seen]) -> list[Floor]:
    """Every floor that something was measured for."""
    return [*_ratios(seen), *_steady(seen), *_readings(seen), *_promises(seen)]


def ratio(
    seen: Sequence[Seen], scenario: str, who: str, whom: str, connections: int
) -> float | None:
    """The rate of `who` in units of that of `whom`; None when one of them was not measured."""
    ours = _rates(seen, scenario, who, connections)
    theirs = _rates(seen, scenario, whom, connections)
    both = [ours[round_] / theirs[round_] for round_ in ours if theirs.get(round_)]
    return median(both) if both else None


def _rates(seen: Sequence[Seen], scenario: str, who: str, connections: int) -> dict[int, float]:
    return {
        run.round: run.load.rps
        for run in _runs(seen)
        if (run.scenario, run.contender, run.load.connections) == (scenario, who, connections)
    }


def _ratios(seen: Sequence[Seen]) -> Iterator[Floor]:
    for scenario, who, whom, connections, bound in RATIOS:
        measured = ratio(seen, scenario, who, whom, connections)
        if measured is not None:
            name = f"{scenario}, {connections} connections: {who} / {whom}"
            yield Floor(name=name, measured=measured, bound=bound, least=True)


def _steady(seen: Sequence[Seen]) -> Iterator[Floor]:
    late = [run.load.p99_ms for run in _runs(seen) if run.contender == "at half that rate"]
    syncs = _values(seen, "sync p99 (ms)")
    if late and median(syncs) < FAST_SYNC_MS:
        name = "p99 at half the highest rate (ms)"
        yield Floor(name=name, measured=median(late), bound=STEADY_P99_MAX_MS)


def _readings(seen: Sequence[Seen]) -> Iterator[Floor]:
    for name, bound in READINGS:
        values = _values(seen, name)
        if values:
            yield Floor(name=name, measured=median(values), bound=bound)


def _promises(seen: Sequence[Seen]) -> Iterator[Floor]:
    """Not a matter of speed: what may never happen, however fast."""
    counts = [each for each in seen if isinstance(each, Count)]
    wrong = sum(not count.holds for count in counts)
    yield Floor(name="databases that differ from what was acknowledged", measured=wrong, bound=0)
    ours = [run for run in _runs(seen) if run.scenario != "ladder" or run.contender == HOOKBOX]
    ours = [run for run in ours if run.contender != "transaction per request"]
    lost = sum(run.load.unanswered for run in ours)
    yield Floor(name="requests without an answer", measured=lost, bound=0)
    if ours:
        slowest = max(run.load.slowest_ms for run in ours) / 1000
        yield Floor(name="slowest answer of all (s)", measured=slowest, bound=ANSWER_MAX_S)
    sent_away = sum(
        count
        for run in ours
        if run.scenario != "slow disk"
        for status, count in run.load.statuses.items()
        if status != "200"
    )
    yield Floor(name="answers other than 200 on a healthy disk", measured=sent_away, bound=0)


def _runs(seen: Sequence[Seen]) -> list[Run]:
    return [each for each in seen if isinstance(each, Run)]


def _values(seen: Sequence[Seen], name: str) -> list[float]:
    return [each.value for each in seen if isinstance(each, Reading) and each.name == name]
