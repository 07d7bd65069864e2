"""No answer leaves before its fdatasync: the recorder shows it, and strace as a second witness."""

import itertools
import re
from pathlib import Path

import pytest

from tests.witness.ackorder import order_of, order_seen_by_strace, strace_prefix, strace_works
from tests.witness.client import hooks, load
from tests.witness.server import STANDIN, MakeRecorded, MakeServer

pytestmark = pytest.mark.witness

KEYS = re.compile(rb"order-\d{6}")
QUEUE = (*STANDIN, "queue")


def test_each_answer_waits_for_the_sync_that_covers_its_event(recorded: MakeRecorded) -> None:
    server, recording = recorded()
    with server:
        load(server.port, itertools.islice(hooks("order"), 200), connections=1)
        load(server.port, itertools.islice(hooks("order"), 5_200), connections=16)
    order = order_of(recording.records(), KEYS)
    assert len(order.promised) == 5_200
    assert not order.too_early


def test_recorder_sees_an_answer_from_the_queue(recorded: MakeRecorded) -> None:
    server, recording = recorded(QUEUE)
    with server:
        load(server.port, itertools.islice(hooks("order"), 500))
    assert len(order_of(recording.records(), KEYS).too_early) > 250


@pytest.fixture
def strace_log(tmp_path: Path) -> Path:
    if not strace_works(tmp_path):
        pytest.skip("strace is not installed, or may not trace here")
    return tmp_path / "strace.log"


def test_strace_sees_each_answer_wait(server: MakeServer, strace_log: Path) -> None:
    with server(prefix=strace_prefix(strace_log)) as traced:
        load(traced.port, itertools.islice(hooks("order"), 20), connections=4)
    order = order_seen_by_strace(strace_log, KEYS)
    assert len(order.promised) == 20
    assert not order.too_early


def test_strace_sees_an_answer_from_the_queue(server: MakeServer, strace_log: Path) -> None:
    with server(QUEUE, prefix=strace_prefix(strace_log)) as traced:
        load(traced.port, itertools.islice(hooks("order"), 20), connections=4)
    assert order_seen_by_strace(strace_log, KEYS).too_early
