"""The answers benchmark: may this be mailed, what came in, and how fast is a backlog worked off?

    python -m tests.bench.answers            about six minutes the first time
    python -m tests.bench.answers --check    exit 1 when a floor is missed

One address, and a hundred thousand, are asked about on a box with a million suppressed ones; pages
are read anywhere in a million events; a box with a hundred thousand stored events works out what
they say, alone and beside a sender. Prints a Markdown table.
"""

import argparse
import contextlib
import http.client
import os
import random
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import quantiles
from typing import Any

from tests.bench import contenders
from tests.bench.backlog import address, applied_state, backlog_state, suppressed_state
from tests.bench.contenders import ROOT, SECRET_NAME
from tests.bench.floors import Floor
from tests.bench.requests import make_secret, write_requests
from tests.bench.rig import Rig, Server, free_port

SUPPRESSED = 1_000_000
QUESTIONS = 20_000
CHECKED = 100_000
EVENTS = 1_000_000
PAGES = 300
BACKLOG = 100_000
BESIDE_PER_S = 500
LOOK_S = 0.1  # a look counts what waits, on the neighbouring core

CAN_SEND_P99_MAX_MS = 2
CHECK_MAX_S = 5
PAGE_P99_MAX_MS = 100
DRAIN_MIN_PER_S = 8_000
BESIDE_P99_MAX_MS = 50


def main() -> int:
    options = _options()
    options.folder.mkdir(parents=True, exist_ok=True)
    server_core, load_core = map(int, options.cores.split(","))
    rig = Rig(
        options.folder, server_core=server_core, load_core=load_core, realtime=options.realtime
    )
    _be_the_asker(load_core, realtime=options.realtime)
    os.environ[SECRET_NAME] = make_secret()
    measured: list[Floor] = []
    try:
        for name in options.only.split(","):
            for floor in MEASURES[name](rig, options.folder):
                print(f"{floor.name}: {floor.measured:.4g}", file=sys.stderr)
                measured.append(floor)
    finally:
        rig.close()
    print(_table(measured))
    return int(options.check and not all(floor.met for floor in measured))


def can_send(rig: Rig, cache: Path) -> Iterator[Floor]:
    """Single questions, one after the other, half of them about suppressed addresses."""
    state = suppressed_state(cache, SUPPRESSED)
    with _serving(rig, state):
        token = (state / "token").read_text().strip()
        settings = tomllib.loads((state / "hookbox.toml").read_text())
        port = int(settings["local"]["listen"].rpartition(":")[2])
        doors: dict[str, http.client.HTTPConnection] = {
            "socket": _Unix(state / "hookbox.sock"),
            "port": http.client.HTTPConnection("127.0.0.1", port, timeout=5),
        }
        for name, connection in doors.items():
            took = _ask(connection, token)
            for share, cut in ((50, 49), (99, 98)):
                yield Floor(
                    name=f"can-send through the {name}, p{share} (ms)",
                    measured=quantiles(took, n=100)[cut] * 1000,
                    bound=CAN_SEND_P99_MAX_MS,
                )


def check(rig: Rig, cache: Path) -> Iterator[Floor]:
    """A long list on the standard input, with the command's own start."""
    state = suppressed_state(cache, SUPPRESSED)
    chance = random.Random(3)
    typed = "\n".join(address(chance.randrange(2 * SUPPRESSED)) for _ in range(CHECKED))
    command = [sys.executable, "-m", "hookbox", "--state", str(state), "suppressions", "check"]
    for form in ((), ("--json",)):
        begun = time.perf_counter()
        done = subprocess.run(
            [*rig.server_prefix, *command, *form],
            input=typed,
            capture_output=True,
            text=True,
            cwd=ROOT,
        )
        took = time.perf_counter() - begun
        assert done.returncode == 3, done.stderr
        assert len(done.stdout.splitlines()) == CHECKED
        name = f"suppressions check {' '.join(form)} of {CHECKED} (s)"
        yield Floor(name=name, measured=took, bound=CHECK_MAX_S)


def pages(rig: Rig, cache: Path) -> Iterator[Floor]:
    """Full pages from anywhere in the past, of every kind and of a rare one."""
    state = applied_state(cache, EVENTS)
    with _serving(rig, state):
        for name, asked in (("", ""), (" of complaints", "&kinds=complained")):
            took = _turn_pages(_Unix(state / "hookbox.sock"), asked)
            yield Floor(
                name=f"page of 100 events{name}, p99 (ms)",
                measured=quantiles(took, n=100)[98] * 1000,
                bound=PAGE_P99_MAX_MS,
            )


def drain(rig: Rig, _: Path) -> Iterator[Floor]:
    """A backlog, worked off by a box that has nothing else to do."""
    state = backlog_state(rig.scratch / "backlog", BACKLOG)
    with _serving(rig, state):
        rate = drained(state)
    yield Floor(
        name="backlog worked off (events/s)", measured=rate, bound=DRAIN_MIN_PER_S, least=True
    )


def beside(rig: Rig, _: Path) -> Iterator[Floor]:
    """The same while a sender keeps sending."""
    state = backlog_state(rig.scratch / "backlog", BACKLOG)
    seconds = 10
    requests = write_requests(
        rig.scratch / "beside.bin", BESIDE_PER_S * (seconds + 5), secret=os.environ[SECRET_NAME]
    )
    with _serving(rig, state) as server:
        begun, before = time.perf_counter(), _pending(state)
        load = rig.load(
            server, requests, connections=16, seconds=seconds, warm_up_s=0, rate=BESIDE_PER_S
        )
        took = time.perf_counter() - begun
        done = before + load.acknowledged - _pending(state)
    yield Floor(
        name=f"answers meanwhile, at {BESIDE_PER_S}/s, p99 (ms)",
        measured=load.p99_ms,
        bound=BESIDE_P99_MAX_MS,
    )
    yield Floor(
        name=f"worked off beside {BESIDE_PER_S}/s (events/s)",
        measured=done / took,
        bound=BESIDE_PER_S,
        least=True,
    )


MEASURES: dict[str, Callable[[Rig, Path], Iterator[Floor]]] = {
    "can-send": can_send,
    "check": check,
    "pages": pages,
    "drain": drain,
    "beside": beside,
}


class _Unix(http.client.HTTPConnection):
    """HTTP over the box's socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=5)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect(str(self._path))


def _be_the_asker(core: int, *, realtime: bool) -> None:
    """This process asks the questions, from the core of the load generator."""
    os.sched_setaffinity(0, {core})
    if realtime:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))


@contextlib.contextmanager
def _serving(rig: Rig, state: Path) -> Iterator[Server]:
    port = free_port()
    with rig.serve(contenders.hookbox().launch(state, port), port) as server:
        yield server


def _ask(connection: http.client.HTTPConnection, token: str) -> list[float]:
    """How long each of many questions takes."""
    chance, took = random.Random(5), []
    headers = {"Authorization": f"Bearer {token}"}
    for number in range(QUESTIONS + 200):
        path = f"/v1/can-send?to={address(chance.randrange(2 * SUPPRESSED))}"
        begun = time.perf_counter()
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        answer.read()
        if number >= 200:
            took.append(time.perf_counter() - begun)
        assert answer.status == 200
    connection.close()
    return took


def _turn_pages(connection: http.client.HTTPConnection, asked: str) -> list[float]:
    """How long each of many pages takes."""
    chance, took = random.Random(5), []
    for _ in range(PAGES):
        path = f"/v1/events?limit=100&after={chance.randrange(EVENTS)}{asked}"
        begun = time.perf_counter()
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
        took.append(time.perf_counter() - begun)
        assert answer.status == 200
    connection.close()
    return took


def drained(state: Path) -> float:
    """Events a second, from the first look that shows progress to the last event."""
    begun, first = time.perf_counter(), _pending(state)
    while left := _pending(state):
        time.sleep(LOOK_S)
        if time.perf_counter() - begun > 120:
            raise RuntimeError(f"{left} events are still not worked on")
    return first / (time.perf_counter() - begun)


def _pending(state: Path) -> int:
    """How many events wait, by the index of what is due: a look must not be work."""
    database = sqlite3.connect(f"file:{state / 'hookbox.db'}?mode=ro", uri=True)
    try:
        return sum(
            database.execute(f"SELECT count(*) FROM job WHERE state = '{name}'").fetchone()[0]
            for name in ("available", "running")
        )
    finally:
        database.close()


def _table(measured: list[Floor]) -> str:
    rows = [
        f"| {floor.name} | {floor.measured:.3g} | {'≥' if floor.least else '≤'} {floor.bound:g} "
        f"| {'met' if floor.met else '**missed**'} |"
        for floor in measured
    ]
    return "\n".join(["| what | measured | floor | |", "| --- | --- | --- | --- |", *rows])


def _options() -> Any:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.answers", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add = parser.add_argument
    add("--check", action="store_true", help="exit 1 when a floor is missed")
    add("--only", default=",".join(MEASURES), help="with commas: " + ", ".join(MEASURES))
    add("--cores", default="1,0", help="core of the server, core of whoever asks")
    add("--realtime", action="store_true", help="for a machine with other work; needs root")
    default = Path(tempfile.gettempdir()) / "hookbox-bench"
    add("--folder", type=Path, default=default, help="scratch and cache, on a real disk")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
