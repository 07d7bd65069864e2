"""The outbox benchmark: how many jobs a second does a whole box bring to a fast local server?

    python -m tests.bench.outbox                 about half a minute
    python -m tests.bench.outbox --jobs 2000     a look
    python -m tests.bench.outbox --check         exit 1 when a floor is missed

10,000 applied events wait for a destination with 16 connections that is paused. It is resumed, and
the time from the first attempt to the end of the last counts, with everything: claims, documents,
signatures, requests, records, syncs. The box is on one core, the server on the other.
"""

import argparse
import json
import multiprocessing
import os
import sqlite3
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from statistics import median

from hookbox.cli.door import ask
from hookbox.store import database, forwarding, lanes
from hookbox.store.connections import Transaction
from hookbox.store.decisions import Word
from tests.bench import contenders
from tests.bench.backlog import applied_state
from tests.bench.contenders import SECRET_NAME
from tests.bench.floors import Floor
from tests.bench.forward import CONNECTIONS, FORWARD_MIN_PER_S, sink
from tests.bench.requests import make_secret
from tests.bench.rig import Launch, Rig, free_port

ROUNDS = 3
TARGET = forwarding.target_of("app")
DESTINATION = """
[destination.app]
type = "http"
url = "http://127.0.0.1:{port}/in"
concurrency = {connections}
"""
# From the first attempt to the end of the last.
SPAN = f"""
SELECT count(*), max(a.started_at + a.took_ms) - min(a.started_at)
FROM attempt AS a JOIN job AS j ON j.id = a.job_id WHERE j.target = '{TARGET}'
"""
STATES = f"SELECT state FROM job WHERE target = '{TARGET}'"
WAITING = f"SELECT count(*) FROM job WHERE target = '{TARGET}' AND state IN ('held', 'available')"
GIVE_UP_S = 120


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--cores", default="1,0", help="core of the box, core of the server")
    parser.add_argument("--realtime", action="store_true", help="on a machine with other work")
    parser.add_argument("--check", action="store_true", help="exit 1 when the floor is missed")
    parser.add_argument("--folder", type=Path, default=Path("/tmp/hookbox-bench"))
    options = parser.parse_args()
    box_core, sink_core = map(int, options.cores.split(","))
    os.environ[SECRET_NAME] = make_secret()
    rig = Rig(options.folder, server_core=box_core, load_core=sink_core, realtime=options.realtime)
    heard, told = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=sink, args=(told, sink_core))
    server.start()
    try:
        port = heard.recv()
        rates = [brought(rig, options.folder, port, options.jobs) for _ in range(ROUNDS)]
    finally:
        server.terminate()
        server.join()
        rig.close()
    floor = Floor(
        name="jobs/s, whole box", measured=median(rates), bound=FORWARD_MIN_PER_S, least=True
    )
    print("jobs/s:", ", ".join(f"{rate:,.0f}" for rate in rates), f"(wanted: {floor.bound:,})")
    return int(options.check and not floor.met)


def brought(rig: Rig, cache: Path, port: int, size: int) -> float:
    """Jobs a second in one round; every one of them has to have been taken in one attempt."""
    state = rig.folder("outbox")
    copy(applied_state(cache, size) / database.FILE_NAME, state / database.FILE_NAME)
    with database.exclusive(state) as run:
        run(queue)
    door = free_port()
    with rig.serve(_launch(state, door, port), door):
        ask(state, "outbox.resume", {"destination": "app"})
        _wait(state)
    with database.reading(state) as transaction:
        (attempts, span_ms) = transaction.execute(SPAN).fetchone()
        states = Counter(row["state"] for row in transaction.execute(STATES))
    if (attempts, states) != (size, {"completed": size}):
        raise RuntimeError(f"{attempts} attempts, {states}")
    return float(size / (span_ms / 1000))


def copy(source: Path, target: Path) -> None:
    with sqlite3.connect(source) as here, sqlite3.connect(target) as there:
        here.backup(there)
    target.chmod(0o600)


def queue(transaction: Transaction) -> None:
    """A job for each event, behind a paused destination."""
    now = round(time.time() * 1000)
    lanes.pause(transaction, TARGET, Word(who="bench", reason="not yet", at=now))
    ids = [row["id"] for row in transaction.execute("SELECT id FROM event")]
    ways = [forwarding.Onward(event_id=event_id, target=TARGET) for event_id in ids]
    forwarding.enqueue(transaction, ways, now)
    forwarding.hold(transaction, TARGET, forwarding.PAUSED, limit=-1)


def _launch(state: Path, door: int, port: int) -> Launch:
    launch = contenders.hookbox().launch(state, door)
    settings = Path(launch.environment["HOOKBOX_CONFIG"])
    more = DESTINATION.format(port=port, connections=CONNECTIONS)
    settings.write_text(settings.read_text() + more)
    return replace(launch)


def _wait(state: Path) -> None:
    deadline = time.monotonic() + GIVE_UP_S
    while True:
        with database.reading(state) as transaction:
            (left,) = transaction.execute(WAITING).fetchone()
        if not left:
            time.sleep(1)  # those under way
            return
        if time.monotonic() > deadline:
            raise RuntimeError(f"{json.dumps(left)} jobs are still not brought")
        time.sleep(0.2)


if __name__ == "__main__":
    sys.exit(main())
