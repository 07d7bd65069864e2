"""An acknowledged event survives kill -9, and sending it again changes nothing."""

import asyncio
import contextlib
import random
import sqlite3
from collections.abc import Iterator

import pytest

from tests.witness.client import Hook, drive, hook, hooks, load
from tests.witness.powercut import stored_keys, trouble_in
from tests.witness.server import STANDIN, MakeServer, Server

pytestmark = pytest.mark.witness

KILLS = 100
ACKNOWLEDGED_MIN = 50_000
CONNECTIONS = 16
SENT_MIN, SENT_MAX = 300, 1_000  # in one life: 65,000 in all, however slow the machine
LINGER_MAX_S = 0.02  # then it dies, somewhere in the middle of the next few commits


@contextlib.contextmanager
def looking(server: Server) -> Iterator[sqlite3.Connection]:
    """Read the database of a receiver that was killed, without changing it for the next one."""
    database = sqlite3.connect(f"{server.database.as_uri()}?mode=ro", uri=True)
    try:
        yield database
    finally:
        database.close()


async def a_short_life(server: Server, number: int) -> set[str]:
    """Kill it in the middle of load; the keys it acknowledged."""
    sent_until_killed = random.randint(SENT_MIN, SENT_MAX)
    linger_s = random.uniform(0, LINGER_MAX_S)

    def wanted() -> Iterator[Hook]:
        for count, each in enumerate(hooks(f"life{number:03d}")):
            if count == sent_until_killed:
                asyncio.get_running_loop().call_later(linger_s, server.kill)
            yield each

    report = await drive(server.port, wanted(), connections=CONNECTIONS)
    assert set(report.statuses) <= {200, 503}, report.statuses
    return report.acknowledged


def lost_in_short_lives(server: Server, kills: int) -> tuple[set[str], set[str]]:
    """(acknowledged, lost) after so many kills."""
    acknowledged, lost = set[str](), set[str]()
    for number in range(kills):
        server.start()
        acknowledged |= asyncio.run(a_short_life(server, number))
        with looking(server) as database:
            lost |= acknowledged - stored_keys(database)
    return acknowledged, lost


def counts(server: Server) -> tuple[int, ...]:
    """Events, jobs, and events that have a job."""
    with looking(server) as database:
        (events,) = database.execute("SELECT count(*) FROM events").fetchone()
        jobs = "SELECT count(*), count(DISTINCT event_id) FROM outbox WHERE target = 'apply'"
        return (events, *database.execute(jobs).fetchone())


def test_no_acknowledged_event_is_lost_in_100_kills(server: MakeServer) -> None:
    """At least 50,000 of them; then all are sent again, and no row is added."""
    killed = server()
    acknowledged, lost = lost_in_short_lives(killed, KILLS)
    assert not lost
    assert len(acknowledged) >= ACKNOWLEDGED_MIN
    before = counts(killed)
    assert len(set(before)) == 1, before
    with looking(killed) as database:
        assert not trouble_in(database)
    with killed:
        again = load(killed.port, (hook(key) for key in sorted(acknowledged)))
    assert again.words == {"duplicate": len(acknowledged)}
    assert counts(killed) == before


def test_witness_sees_what_an_answer_from_the_queue_loses(server: MakeServer) -> None:
    _, lost = lost_in_short_lives(server((*STANDIN, "queue")), 5)
    assert lost
