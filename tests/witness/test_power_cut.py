"""An acknowledged event survives a power cut, at any moment, also on a disk that fails.

Each run is recorded once; the disks that a cut could have left are rebuilt from its trace by the
hundred and thousand. The planted faults at the end show that a loss is seen when there is one.
"""

import contextlib
import errno
import itertools
import random
import shutil
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.witness.client import Hook, Report, hook, hooks, load
from tests.witness.disk import Disk
from tests.witness.powercut import Survey, checkpoints, survey
from tests.witness.recorder import Kind, Recording
from tests.witness.server import STANDIN, MakeRecorded, MakeServer, Server

pytestmark = pytest.mark.witness

STATES = 5_000
CHECKPOINTS = 20
ROUNDS_MAX = 120
FORGETFUL_MODES = ("drop", "ops", "torn")  # to keep all is no power cut, and says nothing new
INDEXES = 300  # so many calls, and each fails once
APART = 50  # so many calls lie between two faults of one run: by then it has recovered
RECOVERED_MAX_S = 40.0
HITS_MIN = 3  # of a fault that lasts a while
FAILING_MAX = 100


# ---- a sound disk


def a_round(number: int) -> Iterator[Hook]:
    """New events, some of the last round again, and one of them with other bytes."""
    yield from itertools.islice(hooks(f"round{number:03d}"), 280)
    if number:
        yield from itertools.islice(hooks(f"round{number - 1:03d}"), 20)
        yield hook(f"round{number - 1:03d}-000001", note="other bytes")


def test_no_acknowledged_event_is_lost_in_a_power_cut(recorded: MakeRecorded) -> None:
    """In 5,000 states of a run with 20 checkpoints inside; and each state is sound."""
    server, recording = recorded()
    acknowledged = set[str]()
    with server:
        for number in range(ROUNDS_MAX):
            report = load(server.port, a_round(number), connections=(1, 4, 16)[number % 3])
            acknowledged |= report.acknowledged
            if number % 8 == 7 and checkpoints(recording.records()) >= CHECKPOINTS:
                break
    assert checkpoints(recording.records()) >= CHECKPOINTS
    found = survey(recording.trace, states=STATES)
    assert found.acknowledged == len(acknowledged)
    assert found.states >= STATES
    assert not found.complaints, str(found)


def test_receiver_starts_on_what_a_power_cut_left(
    recorded: MakeRecorded, server: MakeServer
) -> None:
    """And knows what it acknowledged: all of it, sent again, is a duplicate."""
    before, recording = recorded()
    with before:
        load(before.port, itertools.islice(hooks("cut"), 400), connections=8)
    disk = Disk()
    for record in recording.records():
        disk.step(record)
    for mode in ("drop", "ops", "torn"):
        after = server()
        after.state.mkdir(mode=0o700)
        for name, content in disk.after_cut(mode, random.Random(mode)).items():
            (after.state / name).write_bytes(content)
            (after.state / name).chmod(0o600)
        with after:
            report = load(after.port, itertools.islice(hooks("cut"), 400))
        assert report.words == {"duplicate": 400}, mode


# ---- a disk that fails for a while


FAILURES = [
    pytest.param("sync", errno.EIO, "all", id="syncs_fail"),
    pytest.param("sync", errno.EIO, "database", id="syncs_of_the_database_fail"),
    pytest.param("write", errno.EIO, "all", id="writes_fail"),
    pytest.param("write", errno.EIO, "database", id="writes_of_the_database_fail"),
    pytest.param("write", errno.ENOSPC, "all", id="no_space"),
    pytest.param("write", errno.ENOSPC, "wal", id="no_space_for_the_wal"),
]


def recover(server: Server) -> None:
    """Wait until it stores again; a receiver that ended is started again, as systemd does."""
    deadline = time.monotonic() + RECOVERED_MAX_S
    for attempt in itertools.count():
        if server.exit_code is not None:
            server.start()
        if load(server.port, [hook(f"probe-{attempt}")], connections=1).acknowledged:
            return
        assert time.monotonic() < deadline, f"does not store again:\n{server.log_text()[-2000:]}"
        time.sleep(0.05)


def fail_for_a_while(
    server: Server, recording: Recording, call: str, error: int, files: str
) -> set[str]:
    """Load while all is well, while every such call fails, and once it stores again.

    The keys that were acknowledged. Calls on the database fail only once a checkpoint is due.
    """
    fault = recording.control.fault(call)
    recording.control.fail_only(files)
    with server:
        well = load(server.port, itertools.islice(hooks("well"), 1_500), connections=8)
        fault.set(error)
        failing = list[Report]()
        while recording.control.injected < HITS_MIN and len(failing) < FAILING_MAX:
            some = itertools.islice(hooks(f"failing{len(failing)}"), 100)
            failing.append(load(server.port, some, connections=8))
        fault.heal()
        recover(server)
        healed = load(server.port, itertools.islice(hooks("healed"), 1_500), connections=8)
    assert recording.control.injected, "no call failed"
    assert healed.acknowledged
    return set[str]().union(*(each.acknowledged for each in (well, *failing, healed)))


def surveyed(recording: Recording, states: int, workers: int = 2) -> Survey:
    """On a disk that writes later what it could not write, and on one that forgets it."""
    half = states // 2
    return survey(recording.trace, states=half, workers=workers) + survey(
        recording.trace, states=half, workers=workers, modes=FORGETFUL_MODES, forgetful=True
    )


@pytest.mark.parametrize(("call", "error", "files"), FAILURES)
def test_no_acknowledged_event_is_lost_when(
    recorded: MakeRecorded, call: str, error: int, files: str
) -> None:
    server, recording = recorded()
    acknowledged = fail_for_a_while(server, recording, call, error, files)
    found = surveyed(recording, 600)
    assert found.acknowledged >= len(acknowledged)
    assert not found.complaints, str(found)


def cut_while_recovering(server: Server, recording: Recording, *, restarted: bool) -> Survey:
    """Cuts between a failed sync and the next events that are stored, on a disk that forgets.

    The WAL then ends in a commit that can be read but is not on the disk. Whoever folds it into the
    database as it is leaves, after a cut, new pages of that commit beside old ones. It shows best
    when the rest of the WAL is short and the lost keys belong among old ones in every index.
    """
    with server:
        load(server.port, itertools.islice(hooks("before"), 1_000), connections=8)
        server.terminate()
    with server:
        load(server.port, itertools.islice(hooks("just"), 5), connections=1)
        recording.control.sync.set(errno.EIO)
        while recording.control.injected < HITS_MIN:
            among = (hook(f"before-{number:06d}-failing") for number in range(100, 900, 20))
            load(server.port, among, connections=8)
            if restarted:
                server.kill()
                break
        recording.control.sync.heal()
        recover(server)
        load(server.port, itertools.islice(hooks("after"), 50), connections=8)
    kinds = [record.kind for record in recording.records()]
    return survey(
        recording.trace,
        states=1_500,
        modes=FORGETFUL_MODES,
        forgetful=True,
        since=kinds.index(Kind.SYNC_FAILED),
    )


@pytest.mark.parametrize("restarted", [False, True], ids=["by_itself", "by_a_restart"])
def test_power_cut_finds_a_sound_database_while_it_recovers(
    recorded: MakeRecorded, restarted: bool
) -> None:
    found = cut_while_recovering(*recorded(), restarted=restarted)
    assert not found.complaints, str(found)


# ---- a disk that fails once, at every call


def fail_starts(server: Server, recording: Recording, call: str, indexes: Iterable[int]) -> None:
    """Let a first start fail at each of these calls, until it is up before it makes so many.

    What a failed start leaves is what the next one finds.
    """
    for index in indexes:
        before = recording.control.count(call)
        at = before + index
        recording.control.fault(call).set(errno.EIO, first=at, last=at)
        with contextlib.suppress(RuntimeError):
            server.start()
        if server.exit_code is None:
            server.kill()
            if recording.control.count(call) < at:
                recording.control.fault(call).heal()
                return
            shutil.rmtree(server.state)
    raise AssertionError("a start makes more calls than were tried")


@pytest.mark.parametrize(("call", "step"), [("sync", 1), ("write", 4)])
def test_start_that_failed_at_any_call_can_be_tried_again(
    recorded: MakeRecorded, call: str, step: int
) -> None:
    """A start makes about 20 syncs and 140 writes; of the writes each run takes another quarter."""
    indexes = range(1 + random.randrange(step), INDEXES, step)
    pairs = [recorded(), recorded()]
    with ThreadPoolExecutor(2) as pool:
        halves = [
            pool.submit(fail_starts, *pair, call, indexes[half::2])
            for half, pair in enumerate(pairs)
        ]
    for half in halves:
        half.result()
    for server, _ in pairs:
        with server:
            report = load(server.port, itertools.islice(hooks("start"), 20))
        assert report.words == {"accepted": 20}


def fail_at(server: Server, recording: Recording, call: str, first: int) -> Survey:
    """One run in which the calls `first`, `first + APART`, ... after the start fail."""
    server.start()
    started = recording.control.count(call)
    last = started + INDEXES
    recording.control.fault(call).set(errno.EIO, first=started + first, last=last, step=APART)
    for number in itertools.count():
        load(server.port, itertools.islice(hooks(f"n{number}"), 20), connections=4)
        if recording.control.count(call) > last:
            break
        recover(server)
    server.kill()
    assert recording.control.injected == INDEXES // APART
    found = surveyed(recording, 40, workers=1)
    recording.trace.unlink()  # 50 of them would fill the memory
    return found


@pytest.mark.parametrize("call", ["sync", "write"])
def test_no_acknowledged_event_is_lost_when_any_call_fails(
    recorded: MakeRecorded, call: str
) -> None:
    """Each of 300 calls of a receiver at work fails in one of 50 runs."""
    pairs = [recorded() for _ in range(APART)]
    with ThreadPoolExecutor(2) as pool:
        runs = [pool.submit(fail_at, *pair, call, first) for first, pair in enumerate(pairs, 1)]
    found = {first: run.result() for first, run in enumerate(runs, 1)}
    wrong = [f"{call} {first}: {each}" for first, each in found.items() if each.complaints]
    assert not wrong, "\n".join(wrong)


# ---- planted faults: a loss is seen


def test_witness_sees_what_normal_loses(recorded: MakeRecorded) -> None:
    server, recording = recorded((*STANDIN, "normal"))
    with server:
        load(server.port, itertools.islice(hooks("normal"), 1_000))
    found = survey(recording.trace, states=200)
    assert found.lossy["drop"] > 25
    assert found.lossy["keep"] == 0, "a kill alone loses nothing here"


def test_witness_sees_the_one_event_that_a_returning_journal_undoes(
    recorded: MakeRecorded,
) -> None:
    """Never more than the last one, and only until the directory is synced again."""
    server, recording = recorded((*STANDIN, "journal"))
    with server:
        load(server.port, itertools.islice(hooks("undone"), 300))
    found = survey(recording.trace, states=200)
    assert found.lossy["drop"] > 0
    assert found.worst_loss == 1


def test_witness_sees_what_a_lying_disk_loses(recorded: MakeRecorded) -> None:
    """With the real receiver: no software can keep what the disk only pretends to have."""
    server, recording = recorded()
    recording.control.sync_lies = 1
    with server:
        load(server.port, itertools.islice(hooks("lies"), 1_000))
    assert survey(recording.trace, states=200).lossy["drop"] > 25


def test_witness_sees_a_swallowed_commit_error(recorded: MakeRecorded) -> None:
    server, recording = recorded((*STANDIN, "swallow"))
    fail_for_a_while(server, recording, "sync", errno.EIO, "all")
    assert survey(recording.trace, states=200).lossy["keep"] > 0


def test_witness_sees_what_a_careless_recovery_ruins(recorded: MakeRecorded) -> None:
    """Planted: SQLite alone, which believes what it reads in the WAL."""
    found = cut_while_recovering(*recorded((*STANDIN, "none")), restarted=True)
    assert found.complaints


def test_witness_sees_a_swallowed_commit_error_of_one_call(recorded: MakeRecorded) -> None:
    found = fail_at(*recorded((*STANDIN, "swallow")), "sync", 40)
    assert found.lossy["keep"] > 0
