"""The purge benchmark: do senders notice that old events go?

    python -m tests.bench.purge            about two minutes
    python -m tests.bench.purge --check    exit 1 when a floor is missed

A box holds many events that are older than it keeps them. A sender sends at a fixed rate, in turns
with nothing beside it and with a purge beside it. Prints a Markdown table.
"""

import argparse
import contextlib
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from hookbox.cli import door
from tests.bench import contenders
from tests.bench.answers import drained
from tests.bench.backlog import backlog_state
from tests.bench.contenders import SECRET_NAME
from tests.bench.floors import Floor
from tests.bench.requests import make_secret, write_requests
from tests.bench.rig import Rig, Server, free_port

OLD = 100_000
AGO_S = 100 * 86_400
ROUNDS = 5
LOAD_S = 5
PER_S = 1_000
CONNECTIONS = 16
SLICE_S = 0.5

GROWTH_MAX = 1.5
PURGED_MIN_PER_S = 1_000

KEPT, OLD_ENOUGH = "400d", "90d"


def main() -> int:
    options = _options()
    options.folder.mkdir(parents=True, exist_ok=True)
    server_core, load_core = map(int, options.cores.split(","))
    rig = Rig(
        options.folder, server_core=server_core, load_core=load_core, realtime=options.realtime
    )
    os.sched_setaffinity(0, {load_core})
    os.environ[SECRET_NAME] = make_secret()
    try:
        measured = list(_measured(rig))
    finally:
        rig.close()
    print("| what | measured | floor | |\n| --- | --- | --- | --- |")
    for floor in measured:
        bound = f"{'≥' if floor.least else '≤'} {floor.bound:g}" if floor.bound else ""
        missed = "met" if floor.met or not floor.bound else "**missed**"
        print(f"| {floor.name} | {floor.measured:.3g} | {bound} | {missed} |")
    return int(options.check and not all(floor.met for floor in measured if floor.bound))


def _measured(rig: Rig) -> Iterator[Floor]:
    state = backlog_state(rig.scratch / "old", OLD, ago_s=AGO_S)
    with _serving(rig, state) as server:
        drained(state)
        count = (2 * ROUNDS + 2) * PER_S * (LOAD_S + 1)
        requests = write_requests(
            rig.scratch / "requests.bin", count, secret=os.environ[SECRET_NAME]
        )
        alone, beside, rates, first = [], [], [], 0
        for _ in range(ROUNDS):
            for purging in (False, True):
                server.settle()
                with _purge(server, state) if purging else contextlib.nullcontext([]) as taken:
                    load = rig.load(
                        server,
                        requests,
                        connections=CONNECTIONS,
                        seconds=LOAD_S,
                        rate=PER_S,
                        first=first,
                    )
                first = load.next
                (beside if purging else alone).append(load.p99_ms)
                if purging:
                    rates.append(sum(taken) / LOAD_S)
                name = "beside a purge" if purging else "alone"
                print(f"{name}: p99 {load.p99_ms:.2f} ms, {load.statuses}", file=sys.stderr)
    yield Floor(name=f"p99 at {PER_S}/s alone (ms)", measured=median(alone), bound=0)
    yield Floor(name="p99 beside a purge (ms)", measured=median(beside), bound=0)
    growth = median(b / a for a, b in zip(alone, beside, strict=True))
    yield Floor(name="growth of p99", measured=growth, bound=GROWTH_MAX)
    yield Floor(
        name="purged meanwhile (events/s)",
        measured=median(rates),
        bound=PURGED_MIN_PER_S,
        least=True,
    )


@contextlib.contextmanager
def _serving(rig: Rig, state: Path) -> Iterator[Server]:
    port = free_port()
    launch = contenders.hookbox().launch(state, port)
    _keep(state, KEPT)
    with rig.serve(launch, port) as server:
        yield server


def _keep(state: Path, how_long: str) -> None:
    """So long events are known from the next reading of the configuration on."""
    path = state / "hookbox.toml"
    text = path.read_text().partition("\n[retention]")[0]
    path.write_text(f'{text}\n[retention]\nkeys = "{how_long}"\n')


@contextlib.contextmanager
def _purge(server: Server, state: Path) -> Iterator[list[int]]:
    """A purge, over and over until the end; how many events each slice took."""
    _reload(server, state, OLD_ENOUGH)
    taken: list[int] = []
    over = threading.Event()

    def work() -> None:
        while not over.is_set():
            answer = door.ask(state, "retention.purge", {"seconds": SLICE_S})
            assert answer is not None, "the server runs"
            taken.append(answer["took"].get("events", 0))

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield taken
    finally:
        over.set()
        thread.join()
        _reload(server, state, KEPT)


def _reload(server: Server, state: Path, how_long: str) -> None:
    _keep(state, how_long)
    server.child.send_signal(signal.SIGHUP)
    time.sleep(0.5)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.purge", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--check", action="store_true", help="exit 1 when a floor is missed")
    parser.add_argument("--cores", default="1,0", help="core of the server, of the senders")
    parser.add_argument("--realtime", action="store_true", help="for a machine with other work")
    default = Path(tempfile.gettempdir()) / "hookbox-bench"
    parser.add_argument("--folder", type=Path, default=default, help="scratch, on a real disk")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
