"""One event is one row and one job, whoever else sends it, and whoever reads meanwhile."""

import contextlib
import itertools
import re
import sqlite3
import threading
from collections.abc import Iterator

import pytest

from tests.witness.client import hook, hooks, load
from tests.witness.server import STANDIN, MakeServer, Server

pytestmark = pytest.mark.witness

COPIES = 64
EVENTS = 1_000
BUSY_MAX = 64  # a machine that stalls for two seconds makes the receiver say 503, and rightly so
WRITERS = 8
WRITING_S = 30.0
LOCK_ERROR = re.compile(r"is locked|SQLITE_BUSY|SQLITE_LOCKED")


def rows(server: Server, query: str) -> list[tuple[object, ...]]:
    """What the database says at this moment; no waiting for a lock."""
    uri = f"{server.database.as_uri()}?mode=ro"
    with contextlib.closing(sqlite3.connect(uri, uri=True, timeout=0)) as database:
        return database.execute(query).fetchall()


# ---- copies


def send_copies(server: Server, events: int) -> None:
    """All copies of an event are on their way at once; every other one has other bytes."""
    copies = (
        hook(f"copied-{number:04d}", note="other bytes" if copy % 2 else "")
        for number in range(events)
        for copy in range(COPIES)
    )
    report = load(server.port, copies, connections=COPIES)
    told = report.statuses
    assert told.total() == events * COPIES
    assert set(told) <= {200, 503}, told
    assert told[503] <= BUSY_MAX, f"{told}\n{server.log_text()[-2000:]}"


EVENT_COUNTS = "SELECT count(*), count(DISTINCT key) FROM events"
JOB_COUNTS = "SELECT target, count(*), count(DISTINCT event_id) FROM outbox GROUP BY target"
CONFLICT_COUNTS = """
SELECT count(*), count(DISTINCT key) FROM quarantine WHERE reason = 'payload_digest_conflict'
"""


def test_64_copies_of_an_event_are_one_row_and_one_job(server: MakeServer) -> None:
    """And the other bytes under the same key are kept aside, once."""
    with server() as running:
        send_copies(running, EVENTS)
        running.terminate()
        assert rows(running, EVENT_COUNTS) == [(EVENTS, EVENTS)]
        assert rows(running, JOB_COUNTS) == [("apply", EVENTS, EVENTS)]
        assert rows(running, CONFLICT_COUNTS) == [(EVENTS, EVENTS)]


def test_witness_sees_the_second_row_of_look_up_then_insert(server: MakeServer) -> None:
    """Planted: no unique index decides what is new."""
    with server((*STANDIN, "lookup")) as running:
        send_copies(running, 100)
        assert rows(running, EVENT_COUNTS) != [(100, 100)]


# ---- writers, worker and reader


VIEWS = (
    "SELECT state, count(*) FROM events GROUP BY state",
    "SELECT * FROM events ORDER BY id DESC LIMIT 50",
    "SELECT state, count(*) FROM outbox GROUP BY state",
    "SELECT count(*) FROM notifications",
    "SELECT * FROM quarantine LIMIT 50",
)


@contextlib.contextmanager
def somebody_reading(server: Server) -> Iterator[list[str]]:
    """A reader of the views that never rests; yields the errors that it met."""
    errors: list[str] = []
    ended = threading.Event()

    def read() -> None:
        for query in itertools.cycle(VIEWS):
            if ended.is_set():
                return
            try:
                rows(server, query)
            except sqlite3.Error as error:
                errors.append(f"{query}: {error}")

    reader = threading.Thread(target=read)
    reader.start()
    try:
        yield errors
    finally:
        ended.set()
        reader.join()


def test_writers_worker_and_reader_do_not_lock_each_other_out(server: MakeServer) -> None:
    """30 s: no lock error anywhere, and every count is exact."""
    with server() as running:
        with somebody_reading(running) as errors:
            report = load(running.port, hooks("busy"), connections=WRITERS, seconds=WRITING_S)
            running.wait_until_applied()
        sent = len(report.answers)
        assert set(report.statuses) == {200}, f"{report.statuses}\n{running.log_text()[-2000:]}"
        assert not errors, errors[:5]
        assert rows(running, EVENT_COUNTS) == [(sent, sent)]
        assert rows(running, JOB_COUNTS) == [("apply", sent, sent)]
        assert rows(running, "SELECT count(DISTINCT event_id) FROM notifications") == [(sent,)]
        running.terminate()
    assert not LOCK_ERROR.search(running.log_text())


def test_witness_sees_a_lock_error(server: MakeServer) -> None:
    """Planted: somebody else holds the write lock."""
    with server((*STANDIN, "none")) as running:
        other = sqlite3.connect(running.database, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        report = load(running.port, [hook("locked-out")], connections=1)
        other.close()
    assert report.statuses == {503: 1}
    assert LOCK_ERROR.search(running.log_text())
