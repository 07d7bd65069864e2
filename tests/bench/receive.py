"""The receive benchmark: hookbox beside other stacks that do the same work, in one run.

    python -m tests.bench.receive --quick          about two minutes
    python -m tests.bench.receive --check          everything; exit 1 when a floor is missed

Prints Markdown tables; every single figure goes to a file of JSON lines.
"""

import argparse
import os
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from tests.bench.bench import Bench, Plan, Seen
from tests.bench.contenders import SECRET_NAME
from tests.bench.floors import floors
from tests.bench.report import as_line, markdown
from tests.bench.requests import make_secret
from tests.bench.rig import Rig
from tests.bench.scenarios import SCENARIOS

QUICK = Plan(rounds=1, seconds=1.5, warm_up_s=0.3, idle_s=4, starts=3, many=30_000, size=200_000)
FULL = Plan(rounds=3, seconds=5, warm_up_s=1, idle_s=20, starts=5, many=100_000, size=5_000_000)
LEFT_OUT_WHEN_QUICK = {"grown"}


def main() -> int:
    options = _options()
    options.folder.mkdir(parents=True, exist_ok=True)
    server_core, load_core = map(int, options.cores.split(","))
    rig = Rig(
        options.folder, server_core=server_core, load_core=load_core, realtime=options.realtime
    )
    os.environ[SECRET_NAME] = make_secret()
    try:
        bench = Bench(rig, _plan(options), options.folder, os.environ[SECRET_NAME])
        seen = _measure(bench, _chosen(options), options.folder / "receive.jsonl")
    finally:
        rig.close()
    print(markdown(seen))
    return int(options.check and not all(floor.met for floor in floors(seen)))


def _measure(bench: Bench, chosen: list[str], lines: Path) -> list[Seen]:
    seen: list[Seen] = []
    with lines.open("w") as out:
        for name in chosen:
            print(f"measuring: {name}", file=sys.stderr)
            for each in SCENARIOS[name](bench):
                seen.append(each)
                out.write(as_line(each) + "\n")
                out.flush()
    return seen


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.receive", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add = parser.add_argument
    add("--quick", action="store_true", help="one short round, without the grown box")
    add("--check", action="store_true", help="exit 1 when a floor is missed")
    add("--only", help="scenarios, with commas: " + ", ".join(SCENARIOS))
    add("--rounds", type=int, help="rounds of each scenario")
    add("--seconds", type=float, help="length of each load")
    add("--size", type=int, help="events of the grown box")
    add("--cores", default="1,0", help="core of the server, core of the load generator")
    add(
        "--realtime",
        action="store_true",
        help="put both in the real-time class: for a machine with other work",
    )
    default = Path(tempfile.gettempdir()) / "hookbox-bench"
    add("--folder", type=Path, default=default, help="scratch and cache, on a real disk")
    return parser.parse_args()


def _plan(options: argparse.Namespace) -> Plan:
    plan = QUICK if options.quick else FULL
    given = {name: getattr(options, name) for name in ("rounds", "seconds", "size")}
    return replace(plan, **{name: value for name, value in given.items() if value is not None})


def _chosen(options: argparse.Namespace) -> list[str]:
    if options.only:
        return list(options.only.split(","))
    return [name for name in SCENARIOS if not (options.quick and name in LEFT_OUT_WHEN_QUICK)]


if __name__ == "__main__":
    sys.exit(main())
