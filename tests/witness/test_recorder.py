"""The instruments: the recorder misses nothing, the disk model forgets what it should."""

import errno
import itertools
import random
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.witness.client import Hook, hooks, load
from tests.witness.disk import SECTOR_BYTES, Disk
from tests.witness.powercut import survey
from tests.witness.recorder import Conversation, Kind, Record, read_trace
from tests.witness.server import STANDIN, MakeRecorded

HONEST = (*STANDIN, "none")
CHANCE = random.Random(7)


def some(count: int, prefix: str = "some") -> Iterator[Hook]:
    return itertools.islice(hooks(prefix), count)


def record(kind: Kind, name: str = "a", number: int = 0, content: bytes = b"") -> Record:
    return Record(kind, name, number, memoryview(content))


def replayed(*records: Record, forgetful: bool = False) -> Disk:
    disk = Disk(forgetful=forgetful)
    for each in records:
        disk.step(each)
    return disk


# A file `a` whose name is certain.
NAMED = (
    record(Kind.CREATE),
    record(Kind.SYNC_ASKED, ".", 1),
    record(Kind.SYNC_DONE, ".", 1),
)


# ---- the recorder


def test_replay_of_the_trace_gives_the_files_that_a_kill_left(recorded: MakeRecorded) -> None:
    """Byte for byte: a way of writing that the recorder does not know would show here."""
    server, recording = recorded(HONEST)
    with server:
        load(server.port, some(1_500), connections=8)
    left = replayed(*recording.records()).after_cut("keep", CHANCE)
    found = {path.name: path.read_bytes() for path in server.state.iterdir()}
    found.pop("hookbox.db-shm")
    assert {name: bytes(content) for name, content in left.items()} == found


def test_trace_knows_each_acknowledged_event(recorded: MakeRecorded) -> None:
    server, recording = recorded(HONEST)
    with server:
        report = load(server.port, some(500), connections=8)
    conversation = Conversation()
    traced = {conversation.acknowledged(each) for each in recording.records()} - {None}
    assert len(traced) == 500
    assert traced == report.acknowledged


def test_trace_of_a_killed_server_may_end_in_half_a_record(tmp_path: Path) -> None:
    whole = struct.pack("<BHIQ", Kind.WRITE, 1, 2, 3) + b"a" + b"xy"
    (tmp_path / "trace").write_bytes(whole + whole[:-1])
    assert read_trace(tmp_path / "trace") == [record(Kind.WRITE, "a", 3, b"xy")]


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
def test_writes_fail_when_told_to(recorded: MakeRecorded, error: int) -> None:
    server, recording = recorded(HONEST)
    with server:
        recording.control.write.set(error, first=recording.control.writes + 1)
        assert load(server.port, some(5), connections=1).statuses == {503: 5}
        recording.control.write.heal()
        assert load(server.port, some(5), connections=1).statuses == {200: 5}


def test_syncs_fail_at_the_calls_they_are_told_to(recorded: MakeRecorded) -> None:
    server, recording = recorded(HONEST)
    with server:
        first = recording.control.syncs + 1
        recording.control.sync.set(errno.EIO, first=first, last=first + 6, step=3)
        statuses = [load(server.port, some(1, f"n{n}")).answers[0].status for n in range(8)]
    assert statuses == [503, 200, 200, 503, 200, 200, 503, 200]


def test_faults_can_spare_the_wal(recorded: MakeRecorded) -> None:
    server, recording = recorded(HONEST)
    with server:
        recording.control.fail_only("database")
        recording.control.write.set(errno.EIO)
        assert load(server.port, some(5)).statuses == {200: 5}


def test_slow_syncs_make_answers_late(recorded: MakeRecorded) -> None:
    server, recording = recorded(HONEST)
    with server:
        recording.control.sync_delay_us = 50_000
        assert load(server.port, some(3), connections=1).took_ms(0) >= 50


# ---- the disk model


def test_unsynced_bytes_are_dropped_or_kept() -> None:
    disk = replayed(*NAMED, record(Kind.WRITE, content=b"new"))
    assert disk.after_cut("drop", CHANCE) == {"a": b""}
    assert disk.after_cut("keep", CHANCE) == {"a": b"new"}


def test_sync_covers_only_what_was_written_before_it_was_asked() -> None:
    disk = replayed(
        *NAMED,
        record(Kind.WRITE, content=b"before"),
        record(Kind.SYNC_ASKED, number=2),
        record(Kind.WRITE, number=6, content=b" after"),
        record(Kind.SYNC_DONE, number=2),
    )
    assert disk.after_cut("drop", CHANCE) == {"a": b"before"}
    assert disk.after_cut("keep", CHANCE) == {"a": b"before after"}


def test_sync_that_has_not_returned_covers_nothing() -> None:
    disk = replayed(*NAMED, record(Kind.WRITE, content=b"x"), record(Kind.SYNC_ASKED, number=2))
    assert disk.after_cut("drop", CHANCE) == {"a": b""}


FAILED_THEN_DONE = (
    *NAMED,
    record(Kind.WRITE, content=b"x"),
    record(Kind.SYNC_ASKED, number=2),
    record(Kind.SYNC_FAILED, number=2),
    record(Kind.SYNC_ASKED, number=3),
    record(Kind.SYNC_DONE, number=3),
)


@pytest.mark.parametrize(("forgetful", "left"), [(False, b"x"), (True, b"")])
def test_only_a_forgetful_disk_loses_what_a_failed_sync_covered(
    forgetful: bool, left: bytes
) -> None:
    disk = replayed(*FAILED_THEN_DONE, forgetful=forgetful)
    assert disk.after_cut("drop", CHANCE) == {"a": left}


def test_name_is_certain_only_after_its_directory_was_synced() -> None:
    disk = replayed(record(Kind.CREATE), record(Kind.WRITE, content=b"x"))
    assert disk.after_cut("drop", CHANCE) == {}
    assert disk.after_cut("keep", CHANCE) == {"a": b"x"}


def test_renamed_file_keeps_its_old_name_until_then() -> None:
    disk = replayed(*NAMED, record(Kind.RENAME, content=b"b"))
    assert disk.after_cut("drop", CHANCE) == {"a": b""}
    assert disk.after_cut("keep", CHANCE) == {"b": b""}


def test_unlinked_file_may_come_back() -> None:
    disk = replayed(*NAMED, record(Kind.UNLINK))
    assert disk.after_cut("drop", CHANCE) == {"a": b""}
    assert disk.after_cut("keep", CHANCE) == {}


def test_torn_writes_break_where_the_files_sectors_begin() -> None:
    """Not where the write began: 24-byte heads shift every page of a WAL."""
    disk = replayed(*NAMED, record(Kind.WRITE, number=24, content=b"x" * 2 * SECTOR_BYTES))
    pieces = set()
    for _ in range(50):
        content = disk.after_cut("torn", CHANCE)["a"]
        pieces |= {at for at in range(24, len(content)) if content[at - 1] != content[at]}
    assert pieces == {24, SECTOR_BYTES, 2 * SECTOR_BYTES}


# ---- the survey, on planted faults


def test_survey_finds_no_fault_in_an_honest_receiver(recorded: MakeRecorded) -> None:
    server, recording = recorded(HONEST)
    with server:
        load(server.port, some(300))
    found = survey(recording.trace, states=100)
    assert found.states >= 100
    assert not found.complaints, str(found)
