"""What was acknowledged is brought to every destination, whoever is killed when."""

import asyncio
import collections
import contextlib
import itertools
import json
import random
import sqlite3
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.witness.client import Hook, drive, hooks
from tests.witness.server import MakeServer, Server

pytestmark = pytest.mark.witness

KILLS = 8
SENT_MIN, SENT_MAX = 20, 60  # in one life: each costs a command, too
BROUGHT_MAX_S = 120.0

# Notes the key, and takes a moment over it, so that kills come in the middle.
COMMAND = """\
import os, sys, time
sys.stdin.read()
with open(sys.argv[1], "a") as out:
    out.write(os.environ["HOOKBOX_IDEMPOTENCY_KEY"] + "\\n")
time.sleep(0.01)
"""


def settings(folder: Path) -> str:
    command = json.dumps([sys.executable, "-S", "-c", COMMAND, str(folder / "ran")])
    return f"""
[destination.archive]
type = "jsonl"
path = "{folder / "archive.jsonl"}"
[destination.script]
type = "exec"
command = {command}
retry = ["1s", "1s", "1s"]
"""


async def short_life(server: Server, number: int) -> set[str]:
    """Kill it in the middle of its work; the keys that it acknowledged."""
    sent_until_killed = random.randint(SENT_MIN, SENT_MAX)
    linger_s = random.uniform(0, 0.3)

    def wanted() -> Iterator[Hook]:
        for count, each in enumerate(hooks(f"life{number:03d}")):
            if count == sent_until_killed:
                asyncio.get_running_loop().call_later(linger_s, server.kill)
            if count > 2 * sent_until_killed:  # the rest of its life is for bringing
                return
            yield each

    report = await drive(server.port, wanted(), connections=4)
    return report.acknowledged


@contextlib.contextmanager
def looking(server: Server) -> Iterator[sqlite3.Connection]:
    database = sqlite3.connect(f"{server.database.as_uri()}?mode=ro", uri=True)
    try:
        yield database
    finally:
        database.close()


def unfinished(server: Server) -> int:
    with looking(server) as database:
        query = "SELECT count(*) FROM outbox WHERE state IN ('available', 'running', 'held')"
        (count,) = database.execute(query).fetchone()
    return int(count)


def test_every_event_is_brought_at_least_once_under_one_key(
    server: MakeServer, tmp_path: Path
) -> None:
    killed = server(settings=settings(tmp_path))
    acknowledged = set[str]()
    for number in range(KILLS):
        killed.start()
        acknowledged |= asyncio.run(short_life(killed, number))
        while killed.exit_code is None:  # it was sent less than it should have died after
            killed.kill()
    with killed:
        deadline = time.monotonic() + BROUGHT_MAX_S
        while unfinished(killed):
            assert time.monotonic() < deadline, unfinished(killed)
            time.sleep(0.2)
    lines = [json.loads(line) for line in (tmp_path / "archive.jsonl").read_text().splitlines()]
    ran = collections.Counter((tmp_path / "ran").read_text().split())
    archived = {line["id"] for line in lines}
    missing = acknowledged - given_up(killed, "archive") - {line["key"] for line in lines}
    assert not missing, story(killed, missing)
    with looking(killed) as database:
        stored = dict(database.execute("SELECT key, id FROM events"))
    assert {stored[key] for key in acknowledged - given_up(killed, "script")} <= set(map(int, ran))
    assert len(archived) >= len(acknowledged) * 0.9
    # What came twice is the same to the letter, so that whoever keeps the id does it once.
    for _, same in itertools.groupby(sorted(lines, key=lambda line: line["id"]), lambda x: x["id"]):
        first, *others = same
        assert all(other == first for other in others)
    assert ran.total() > len(ran), "no kill came in the middle: this has shown nothing"


def given_up(server: Server, destination: str) -> set[str]:
    """Keys that were under way in three crashes, and so are given up or set aside, visibly."""
    query = """
    SELECT e.key FROM events AS e WHERE e.state = 'quarantined' OR EXISTS (
      SELECT 1 FROM outbox AS o WHERE o.event_id = e.id AND o.target = ? AND o.state = 'exhausted'
    )
    """
    with looking(server) as database:
        return {key for (key,) in database.execute(query, (f"forward:{destination}",))}


def story(server: Server, keys: set[str]) -> list[tuple[object, ...]]:
    """What the outbox says of these."""
    query = """
    SELECT e.key, e.state, o.target, o.state, o.attempts, o.last_outcome
    FROM events AS e LEFT JOIN outbox AS o ON o.event_id = e.id WHERE e.key = ?
    """
    with looking(server) as database:
        return [row for key in sorted(keys) for row in database.execute(query, (key,))]
