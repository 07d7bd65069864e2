"""Run seeds by hand: `python -m tests.sim 12` tells the story of one, `0-999` sums many up."""

import argparse
import time
from collections import Counter
from contextlib import nullcontext

from tests.sim.faults import FAULTS
from tests.sim.run import Run, run


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sim", description=__doc__)
    parser.add_argument("seeds", help="12, or 0-999")
    parser.add_argument("--fault", choices=FAULTS, help="with this mistake in the box")
    asked = parser.parse_args()
    first, _, last = asked.seeds.partition("-")
    began = time.perf_counter()
    with FAULTS[asked.fault].planted() if asked.fault else nullcontext({}) as options:
        runs = [run(seed, **options) for seed in range(int(first), int(last or first) + 1)]
    if not last:
        print("\n".join(runs[0].story))
    return _summary(runs, time.perf_counter() - began)


def _summary(runs: list[Run], took_s: float) -> int:
    broken = [each for each in runs if each.broken]
    seen: Counter[str] = Counter()
    for each in runs:
        seen += each.seen
    for what, count in sorted(seen.items()):
        print(f"{count:8} {what}")
    for each in broken[:10]:
        print(f"seed {each.seed}: {each.broken}")
    print(f"{len(runs)} seeds, {len(broken)} broken, {len(runs) / took_s:.0f} a second")
    return 1 if broken else 0


if __name__ == "__main__":
    raise SystemExit(main())
