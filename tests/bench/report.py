"""The figures as Markdown tables for people, and as JSON lines for programs."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from statistics import median

from tests.bench.bench import Reading, Run, Seen
from tests.bench.floors import HOOKBOX, Floor, floors, ratio

LOAD_HEADS = (
    "scenario",
    "contender",
    "connections",
    "answers/s",
    "p50 ms",
    "p99 ms",
    "slowest ms",
    "server µs/request",
    "cores of others",
    "not 200",
    "hookbox is",
)


def as_line(seen: Seen) -> str:
    """One thing seen, as JSON."""
    named = {"seen": type(seen).__name__.lower(), **asdict(seen)}
    return json.dumps(named, default=str)


def markdown(seen: Sequence[Seen]) -> str:
    """The whole report."""
    parts = [_loads(seen), _readings(seen), _floors(floors(seen))]
    return "\n\n".join(part for part in parts if part)


def _loads(seen: Sequence[Seen]) -> str:
    runs: dict[tuple[str, str, int], list[Run]] = {}
    for each in seen:
        if isinstance(each, Run):
            key = (each.scenario, each.contender, each.load.connections)
            runs.setdefault(key, []).append(each)
    rows = [_load_row(seen, *key, same) for key, same in runs.items()]
    return _table(LOAD_HEADS, rows) if rows else ""


def _load_row(
    seen: Sequence[Seen], scenario: str, contender: str, connections: int, runs: Sequence[Run]
) -> tuple[str, ...]:
    times = None
    if contender != HOOKBOX:
        times = ratio(seen, scenario, HOOKBOX, contender, connections)

    def middle(figure: Callable[[Run], float]) -> float:
        return median(map(figure, runs))

    return (
        scenario,
        contender,
        str(connections),
        f"{middle(lambda run: run.load.rps):,.0f}",
        f"{middle(lambda run: run.load.p50_ms):.1f}",
        f"{middle(lambda run: run.load.p99_ms):.1f}",
        f"{max(run.load.slowest_ms for run in runs):.0f}",
        f"{middle(lambda run: run.load.server_us):.0f}",
        f"{middle(lambda run: run.load.others):.2f}",
        str(sum(run.load.errors + _not_200(run) for run in runs)),
        f"{times:.2f} times" if times else "",
    )


def _not_200(run: Run) -> int:
    return sum(count for status, count in run.load.statuses.items() if status != "200")


def _readings(seen: Sequence[Seen]) -> str:
    values: dict[str, list[float]] = {}
    for each in seen:
        if isinstance(each, Reading):
            values.setdefault(each.name, []).append(each.value)
    rows = [(name, f"{median(read):.3g}", f"{max(read):.3g}") for name, read in values.items()]
    return _table(("reading", "median", "most"), rows) if rows else ""


def _floors(measured: Iterable[Floor]) -> str:
    rows = [
        (
            floor.name,
            f"{floor.measured:.3g}",
            f"{'≥' if floor.least else '≤'} {floor.bound:g}",
            "met" if floor.met else "**missed**",
        )
        for floor in measured
    ]
    return _table(("floor", "measured", "bound", ""), rows)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
