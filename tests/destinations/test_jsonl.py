"""The jsonl destination: whole lines, synced before they count, whatever happens in between."""

import asyncio
import fcntl
import json
import os
import random
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hookbox.destinations import DESTINATIONS
from hookbox.model import Verdict
from tests.destinations.parcels import parcel
from tests.destinations.rigs import opened


def files(folder: Path) -> list[Path]:
    return list(folder.iterdir())


def ids(folder: Path) -> list[int]:
    """The events in all files of a folder, each line of which must be whole."""
    found = []
    for file in files(folder):
        text = file.read_bytes()
        assert text == b"" or text.endswith(b"\n")
        found += [json.loads(line)["id"] for line in text.splitlines()]
    return found


async def bring(path: Path, *numbers: int, **options: object) -> list[Verdict]:
    destination = opened("jsonl", path=path, **options)
    attempts = await asyncio.gather(*(destination.deliver(parcel(number)) for number in numbers))
    await destination.close()
    return [attempt.verdict for attempt in attempts]


async def test_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    await bring(tmp_path / "out", 1)
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o600


async def test_parcels_at_once_share_a_sync(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    real = os.fdatasync
    monkeypatch.setattr("os.fdatasync", lambda fd: (synced.append(fd), real(fd)))
    assert await bring(tmp_path / "out", *range(1, 65)) == [Verdict.DONE] * 64
    assert sorted(ids(tmp_path)) == list(range(1, 65))
    assert len(synced) <= 2


async def test_order_is_kept(tmp_path: Path) -> None:
    await bring(tmp_path / "out", *range(1, 65))
    assert ids(tmp_path) == list(range(1, 65))


async def test_file_is_turned_over_under_load_and_nothing_is_lost(tmp_path: Path) -> None:
    destination = opened("jsonl", path=tmp_path / "out", max_size=5_000, keep=1000)
    numbers = iter(range(1, 501))

    async def worker() -> None:
        for number in numbers:
            attempt = await destination.deliver(parcel(number, filler="x" * (number % 500)))
            assert attempt.verdict is Verdict.DONE

    await asyncio.gather(*(worker() for _ in range(8)))
    await destination.close()
    assert sorted(ids(tmp_path)) == list(range(1, 501))
    sizes = [file.stat().st_size for file in files(tmp_path)]
    assert len(sizes) > 20
    assert max(sizes) <= 5_000


async def test_no_more_files_are_kept_than_wanted(tmp_path: Path) -> None:
    destination = opened("jsonl", path=tmp_path / "out", max_size=1, keep=3)
    for number in range(1, 9):
        await destination.deliver(parcel(number))
    await destination.close()
    kept = {file.name: json.loads(file.read_bytes())["id"] for file in files(tmp_path)}
    assert kept == {"out": 8, "out.1": 7, "out.2": 6, "out.3": 5}


async def test_gap_that_a_crash_left_is_filled_first(tmp_path: Path) -> None:
    """Between two renames; nothing older is given up for it."""
    destination = opened("jsonl", path=tmp_path / "out", max_size=1, keep=3)
    for number in range(1, 5):
        await destination.deliver(parcel(number))
    (tmp_path / "out.2").unlink()
    await destination.deliver(parcel(5))
    await destination.close()
    kept = {file.name: json.loads(file.read_bytes())["id"] for file in files(tmp_path)}
    assert kept == {"out": 5, "out.1": 4, "out.2": 3, "out.3": 1}


TORN = [b'{"id": 99, "recip', b"{", b'{"id": 99}', b"{" + b"x" * 200_000]


@pytest.mark.parametrize("torn", TORN, ids=["half", "sign", "unended", "long"])
@pytest.mark.parametrize("whole", [b"", b'{"id": 5}\n'])
async def test_torn_line_is_cut_off_before_the_next(
    tmp_path: Path, whole: bytes, torn: bytes
) -> None:
    path = tmp_path / "out"
    path.write_bytes(whole + torn)
    assert await bring(path, 7) == [Verdict.DONE]
    assert ids(tmp_path) == ([5] if whole else []) + [7]


async def test_file_that_was_moved_away_is_made_anew(tmp_path: Path) -> None:
    destination = opened("jsonl", path=tmp_path / "out")
    await destination.deliver(parcel(1))
    (tmp_path / "out").rename(tmp_path / "moved")
    await destination.deliver(parcel(2))
    (tmp_path / "out").unlink()
    await destination.deliver(parcel(3))
    await destination.close()
    assert sorted(ids(tmp_path)) == [1, 3]


def something_else(path: Path) -> None:
    path.write_text("root:x:0:0:\n")


def folder(path: Path) -> None:
    path.mkdir()


def pipe(path: Path) -> None:
    os.mkfifo(path)


@pytest.mark.parametrize("make", [something_else, folder, pipe])
async def test_what_is_no_file_of_ours_is_left_alone(tmp_path: Path, make: object) -> None:
    path = tmp_path / "out"
    make(path)
    destination = opened("jsonl", path=path)
    attempt = await destination.deliver(parcel())
    await destination.close()
    assert (attempt.verdict, attempt.outcome) == (Verdict.LATER, "not written")
    assert str(path) in attempt.excerpt
    assert not path.is_file() or path.read_text() == "root:x:0:0:\n"


async def test_two_writers_never_share_a_file(tmp_path: Path) -> None:
    """As when a reload opens anew what the one before has not let go of yet."""
    path = tmp_path / "out"
    first, second = opened("jsonl", path=path), opened("jsonl", path=path)
    assert (await first.deliver(parcel(1))).verdict is Verdict.DONE
    refused = await second.deliver(parcel(2))
    assert (refused.verdict, "another program" in refused.excerpt) == (Verdict.LATER, True)
    await first.close()
    assert (await second.deliver(parcel(2))).verdict is Verdict.DONE
    await second.close()
    assert ids(tmp_path) == [1, 2]


async def test_lock_is_let_go_of(tmp_path: Path) -> None:
    await bring(tmp_path / "out", 1)
    with (tmp_path / "out").open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def appending(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.destinations.appender", str(folder / "out")]
    return subprocess.Popen([*command, *arguments], stdout=subprocess.PIPE, text=True)


def said(child: subprocess.Popen[str]) -> Iterator[str]:
    assert child.stdout is not None
    for line in child.stdout:
        yield line.strip()


async def test_full_disk_is_tried_later_and_leaves_no_torn_line(tmp_path: Path) -> None:
    """The child may write files of 100,000 bytes and no larger ones; it would turn over at twice
    that."""
    with appending(tmp_path, "100000") as child:
        told = list(said(child))
    assert child.returncode == 0
    written = [int(line) for line in told if line.isdigit()]
    assert len(written) > 20
    assert any("File too large" in line for line in told)
    assert sorted(ids(tmp_path)) == sorted(written)
    assert await bring(tmp_path / "out", 1_000_000) == [Verdict.DONE]


@pytest.mark.parametrize("seed", range(5))
async def test_killed_at_any_moment_loses_nothing_that_was_reported_written(
    tmp_path: Path, seed: int
) -> None:
    wanted = random.Random(seed).randrange(10, 800)
    with appending(tmp_path) as child:
        reported = []
        for line in said(child):
            reported.append(int(line))
            if len(reported) == wanted:
                child.kill()
    assert await bring(tmp_path / "out", 1_000_000) == [Verdict.DONE]
    assert set(reported) | {1_000_000} <= set(ids(tmp_path))


def test_missing_folder_is_told_beforehand(tmp_path: Path) -> None:
    doubts = DESTINATIONS["jsonl"].doubts
    assert doubts({"path": tmp_path / "out"}) == ()
    [told] = doubts({"path": tmp_path / "nowhere" / "out"})
    assert "nowhere is not there" in told
