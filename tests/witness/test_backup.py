"""A backup holds every event acknowledged before it began; a restore brings all of them back."""

import asyncio
import errno
import itertools
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from tests.witness.client import Hook, Report, drive, hook, hooks, load
from tests.witness.powercut import stored_keys, trouble_in
from tests.witness.recorder import Recording
from tests.witness.server import MakeServer, Server

pytestmark = pytest.mark.witness

BACKUPS = 4
FOREGROUND = 200  # events that are certainly acknowledged before each backup begins
KILLS = 25
BODY_BYTES = 4_000
COMMAND_MAX_S = 60.0


def command(
    server: Server, *words: str, env: Mapping[str, str] | None = None
) -> "subprocess.Popen[str]":
    """`hookbox WORDS` about the same box, begun."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), **(env or {})}
    where = ("--config", str(server.config), "--state", str(server.state))
    return subprocess.Popen(
        [sys.executable, "-m", "hookbox", *where, *words],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


def done(server: Server, *words: str) -> str:
    """`hookbox WORDS`, ended well; what it said."""
    running = command(server, *words)
    told, _ = running.communicate(timeout=COMMAND_MAX_S)
    assert running.returncode == 0, told
    return told


def found_in(path: Path) -> tuple[set[str], str]:
    """The events in a database that nobody uses, and what is wrong with it."""
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as database:
            return stored_keys(database), trouble_in(database)
    except sqlite3.DatabaseError as error:
        return set(), str(error)


async def copied_under_load(
    server: Server, how: Callable[[Path], object], targets: Sequence[Path]
) -> list[set[str]]:
    """A copy at each target while the box receives; what was acknowledged before each began."""
    acknowledged, before = set[str](), list[set[str]]()
    over = asyncio.Event()
    endless = itertools.takewhile(lambda _: not over.is_set(), hooks("bg"))
    background = asyncio.create_task(drive(server.port, endless, connections=8))
    for number, target in enumerate(targets):
        wanted = (hook(f"fg{number}-{count}") for count in range(FOREGROUND))
        report: Report = await drive(server.port, wanted, connections=4)
        assert report.statuses == {200: FOREGROUND}
        acknowledged |= report.acknowledged
        before.append(set(acknowledged))
        await asyncio.to_thread(how, target)
    over.set()
    assert set((await background).statuses) == {200}
    return before


def test_backup_under_load_holds_every_event_acknowledged_before_it_began(
    server: MakeServer, memory: Path
) -> None:
    started = server().start()
    targets = [memory / f"b{number}.db" for number in range(BACKUPS)]
    before = asyncio.run(
        copied_under_load(started, lambda path: done(started, "backup", str(path)), targets)
    )
    for acknowledged, target in zip(before, targets, strict=True):
        keys, trouble = found_in(target)
        assert not trouble
        assert acknowledged <= keys
        assert any(key.startswith("bg") for key in keys)  # there was a load
        assert oct(target.stat().st_mode)[-3:] == "600"


def test_witness_sees_what_copying_the_file_loses(server: MakeServer, memory: Path) -> None:
    """The planted fault: the newest events are in the WAL. Somebody reads, so that none of them is
    folded into the file just before it is copied.
    """
    started = server().start()
    targets = [memory / f"c{number}.db" for number in range(BACKUPS)]

    def copy(target: Path) -> None:
        shutil.copyfile(started.database, target)

    with closing(sqlite3.connect(f"{started.database.as_uri()}?mode=ro", uri=True)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM events").fetchone()
        before = asyncio.run(copied_under_load(started, copy, targets))
    spoilt = 0
    for acknowledged, target in zip(before, targets, strict=True):
        keys, trouble = found_in(target)
        spoilt += bool(trouble) or not acknowledged <= keys
    assert spoilt == BACKUPS


# --- interrupted


def filled(server: Server, events: int) -> set[str]:
    """A box that has received so many large events and is stopped; their keys."""
    with server:
        wanted: list[Hook] = [hook(f"k{n}", bytes_min=BODY_BYTES) for n in range(events)]
        report = load(server.port, wanted)
        assert report.statuses == {200: events}
        assert server.terminate() == 0
    return report.acknowledged


class Killer:
    """Kills a command at random moments of its life, whose length it learns from those that end."""

    def __init__(self, server: Server, *words: str) -> None:
        self._server, self._words = server, words
        self._took_s = self._run(COMMAND_MAX_S)
        assert self._took_s is not None, "it did not end by itself"

    def kill(self) -> bool:
        """Once more; False when it was over before."""
        assert self._took_s is not None
        took_s = self._run(random.uniform(self._took_s * 0.2, self._took_s))
        self._took_s = took_s or self._took_s  # the machine has become faster
        return took_s is None

    def _run(self, at_most_s: float) -> float | None:
        """How long it took; None where it was killed."""
        begun = time.monotonic()
        running = command(self._server, *self._words)
        try:
            told, _ = running.communicate(timeout=at_most_s)
        except subprocess.TimeoutExpired:
            running.send_signal(signal.SIGKILL)
            running.communicate()
            return None
        assert running.returncode == 0, told
        return time.monotonic() - begun


def test_killed_backup_leaves_no_half_file_under_its_name(server: MakeServer, memory: Path) -> None:
    """Neither a new file nor in the place of an older one; and its drafts go with the next."""
    box, folder = server(), memory / "backups"
    folder.mkdir()
    keys = filled(box, 6_000)
    target = folder / "b.db"
    killer = Killer(box, "backup", str(target), "--force")
    cut = drafts = 0
    while cut < KILLS:
        if cut % 2:
            target.unlink(missing_ok=True)
        cut += killer.kill()
        drafts += any(folder.glob(".*.part"))
        if target.exists():
            assert found_in(target) == (keys, "")
    assert drafts  # some were hit in the middle, or this test proves little
    done(box, "backup", str(target), "--force")
    assert [each.name for each in folder.iterdir()] == ["b.db"]


def test_killed_restore_leaves_the_old_database_or_the_new_one(
    server: MakeServer, memory: Path
) -> None:
    """Whatever moment it was, the box starts, and with all of the one or all of the other."""
    box = server()
    keys = filled(box, 3_000)
    done(box, "backup", str(memory / "b.db"))
    with box:
        load(box.port, (hook(f"later{n}") for n in range(100)))
        box.kill()  # so that there is a WAL
    later = keys | {f"later{n}" for n in range(100)}
    kept = memory / "kept"
    shutil.copytree(box.state, kept, ignore=shutil.ignore_patterns("*.sock"))
    killer = Killer(box, "restore", str(memory / "b.db"))
    seen = set[int]()
    cut = 0
    while cut < KILLS // 3:
        shutil.rmtree(box.state)
        shutil.copytree(kept, box.state)
        cut += killer.kill()
        with box:
            box.terminate()
        found, trouble = found_in(box.database)
        assert not trouble
        assert found in (keys, later)
        seen.add(len(found))
    assert len(later) in seen


@pytest.mark.parametrize("first", [1, 20, 400])
@pytest.mark.parametrize("option", ["--force", "--without-bodies"])
def test_full_disk_during_a_backup_leaves_nothing_and_says_so(
    server: MakeServer, recorder_library: Path, memory: Path, first: int, option: str
) -> None:
    box, folder = server(), memory / "backups"
    folder.mkdir()
    filled(box, 1_000)
    recording = Recording(recorder_library, folder)
    recording.control.write.set(errno.ENOSPC, first=first)
    running = command(box, "backup", str(folder / "b.db"), option, env=recording.env)
    told, _ = running.communicate(timeout=COMMAND_MAX_S)
    assert running.returncode == 1, told
    assert "is full" in told
    assert recording.control.injected
    assert list(folder.iterdir()) == []


def test_failed_sync_of_a_backup_leaves_nothing(
    server: MakeServer, recorder_library: Path, memory: Path
) -> None:
    box, folder = server(), memory / "backups"
    folder.mkdir()
    filled(box, 10)
    recording = Recording(recorder_library, folder)
    recording.control.sync.set(errno.EIO)
    running = command(box, "backup", str(folder / "b.db"), env=recording.env)
    told, _ = running.communicate(timeout=COMMAND_MAX_S)
    assert running.returncode == 1, told
    assert "Traceback" not in told
    assert "b.db" in told
    assert list(folder.iterdir()) == []


# --- the drill


def ids(path: Path) -> dict[str, int]:
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as database:
        return dict(database.execute("SELECT key, id FROM events"))


def test_restore_drill(server: MakeServer, memory: Path) -> None:
    """Back up under load, die, lose the file, restore, start, and be sent all of it again."""
    box = server().start()
    report = load(box.port, (hook(f"before{n}") for n in range(1_000)))
    [before] = asyncio.run(
        copied_under_load(box, lambda path: done(box, "backup", str(path)), [memory / "b.db"])
    )
    before |= report.acknowledged
    load(box.port, (hook(f"after{n}") for n in range(500)))
    box.kill()
    given_out = max(ids(box.database).values())
    box.database.write_bytes(os.urandom(100_000))

    told = done(box, "restore", str(memory / "b.db"))
    assert "hookbox.db.before-" in told
    with box:
        again = load(box.port, (hook(key) for key in sorted(before)))
        assert again.words == {"duplicate": len(before)}
        anew = load(box.port, (hook(f"after{n}") for n in range(500)))
        assert anew.words == {"accepted": 500}
        box.wait_until_applied()
        assert box.terminate() == 0
    restored = ids(box.database)
    assert before <= restored.keys()
    assert min(restored[f"after{n}"] for n in range(500)) > given_out + 1_000_000_000
    with closing(sqlite3.connect(f"{box.database.as_uri()}?mode=ro", uri=True)) as database:
        assert not trouble_in(database)
        [(unfinished,)] = database.execute(
            "SELECT count(*) FROM outbox WHERE state <> 'completed'"
        ).fetchall()
    assert not unfinished
