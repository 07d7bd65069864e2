"""The power-cut witness: cuts a trace at thousands of points and asks SQLite what is left.

A state is named by (record, mode, seed), so that one that lost something can be built again and
looked at:

    python -m tests.witness.powercut TRACE --at RECORD --mode MODE --seed SEED --into DIRECTORY
"""

import argparse
import collections
import functools
import multiprocessing
import random
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from tests.witness.disk import MODES, Disk
from tests.witness.recorder import Conversation, Kind, Record, fast_directory, read_trace

DATABASE = "hookbox.db"
WORKERS = 2


# ---- what SQLite finds on such a disk


_KEYS = "SELECT key FROM events"
_WITHOUT_JOB = """
SELECT count(*) FROM events WHERE id NOT IN (SELECT event_id FROM outbox WHERE target = 'apply')
"""


def stored_keys(database: sqlite3.Connection) -> set[str]:
    return {key for (key,) in database.execute(_KEYS)}


def trouble_in(database: sqlite3.Connection) -> str:
    """What is wrong with a database, whatever was promised; empty when nothing is."""
    (integrity,) = database.execute("PRAGMA integrity_check(1)").fetchone()
    if integrity != "ok":
        return f"integrity_check: {integrity}"
    (without_job,) = database.execute(_WITHOUT_JOB).fetchone()
    return f"{without_job} events have no job" if without_job else ""


def examine(files: dict[str, bytearray], acknowledged: set[str], place: Path) -> tuple[int, str]:
    """How many acknowledged events are missing, and what else is wrong."""
    for name, content in files.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(content)
    if not files.get(DATABASE):
        return len(acknowledged), ""
    database = sqlite3.connect(place / DATABASE)
    try:
        # The index of the WAL in memory, not in a file; and no sync: this is a copy of a copy.
        database.executescript("PRAGMA locking_mode = EXCLUSIVE; PRAGMA synchronous = OFF")
        if not database.execute("SELECT 1 FROM sqlite_schema WHERE name = 'outbox'").fetchone():
            return len(acknowledged), ""
        return len(acknowledged - stored_keys(database)), trouble_in(database)
    except sqlite3.DatabaseError as error:
        return len(acknowledged), f"unreadable: {error}"
    finally:
        database.close()


# ---- the survey of one trace


@dataclass(slots=True)
class Survey:
    """What the states of one trace had to say."""

    states: int = 0
    acknowledged: int = 0  # events, in the whole trace
    lossy: collections.Counter[str] = field(default_factory=collections.Counter)  # states, by mode
    worst_loss: int = 0
    complaints: list[str] = field(default_factory=list)

    def note(self, name: str, mode: str, acknowledged: int, lost: int, trouble: str) -> None:
        self.states += 1
        self.acknowledged = max(self.acknowledged, acknowledged)
        self.worst_loss = max(self.worst_loss, lost)
        if lost:
            self.lossy[mode] += 1
            self.complaints.append(f"{name}: {lost} acknowledged events are missing")
        if trouble:
            self.complaints.append(f"{name}: {trouble}")

    def __add__(self, other: "Survey") -> "Survey":
        return Survey(
            self.states + other.states,
            max(self.acknowledged, other.acknowledged),
            self.lossy + other.lossy,
            max(self.worst_loss, other.worst_loss),
            self.complaints + other.complaints,
        )

    def __str__(self) -> str:
        shown = [f"{self.states} states, {len(self.complaints)} complaints", *self.complaints[:10]]
        return "\n  ".join(shown)


def survey(
    trace: Path,
    *,
    states: int,
    seed: int = 1,
    modes: Sequence[str] = MODES,
    forgetful: bool = False,
    workers: int = WORKERS,
    since: int = 0,
) -> Survey:
    """Examine about so many states, spread over the trace and over what may be on the disk.

    `since`: no cut before this record.
    """
    points = _points(read_trace(trace), -(-states // len(modes)), seed, since)
    look = functools.partial(_survey_part, trace, seed=seed, modes=modes, forgetful=forgetful)
    parts = [points[worker::workers] for worker in range(workers)]
    if workers == 1:
        return look(parts[0])
    # Fresh interpreters: forking one that pytest filled with threads is not safe.
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        return sum(pool.map(look, parts), Survey())


def _points(records: Sequence[Record], count: int, seed: int, since: int) -> list[int]:
    """After which records to cut: half of them anywhere, half where a promise was just made."""
    chance = random.Random(seed)
    possible = range(since, len(records))
    answers = [at for at in possible if records[at].kind is Kind.ANSWER]
    chosen = {len(records) - 1, *chance.sample(answers, min(len(answers), count // 2))}
    others = [at for at in possible if at not in chosen]
    missing = max(0, count - len(chosen))
    return sorted(chosen.union(chance.sample(others, min(len(others), missing))))


def _survey_part(
    trace: Path, points: Sequence[int], *, seed: int, modes: Sequence[str], forgetful: bool
) -> Survey:
    result = Survey()
    for at, disk, acknowledged in _cuts(read_trace(trace), points, forgetful=forgetful):
        for mode in modes:
            files = disk.after_cut(mode, random.Random(f"{seed} {at} {mode}"))
            with tempfile.TemporaryDirectory(dir=fast_directory()) as place:
                lost, trouble = examine(files, acknowledged, Path(place))
            name = f"--at {at} --mode {mode} --seed {seed}{' --forgetful' * forgetful}"
            result.note(name, mode, len(acknowledged), lost, trouble)
    return result


def _cuts(
    records: Sequence[Record], points: Sequence[int], *, forgetful: bool
) -> Iterator[tuple[int, Disk, set[str]]]:
    """Replay the trace; at each point, the disk and the keys that were acknowledged before."""
    disk, conversation = Disk(forgetful=forgetful), Conversation()
    acknowledged, wanted = set[str](), set(points)
    for at, record in enumerate(records):
        disk.step(record)
        if key := conversation.acknowledged(record):
            acknowledged.add(key)
        if at in wanted:
            yield at, disk, acknowledged


def checkpoints(records: Sequence[Record]) -> int:
    """How often the WAL was folded into the database: syncs of the database after writes to it."""
    count, dirty = 0, False
    for record in records:
        if record.name == DATABASE and record.kind is Kind.WRITE:
            dirty = True
        elif record.name == DATABASE and record.kind is Kind.SYNC_DONE and dirty:
            count, dirty = count + 1, False
    return count


def main() -> None:
    """Build one state into a directory, to look at it."""
    parser = argparse.ArgumentParser(description="Build the state that one power cut would leave.")
    parser.add_argument("trace", type=Path)
    parser.add_argument("--at", type=int, required=True)
    parser.add_argument("--mode", choices=MODES, required=True)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--forgetful", action="store_true")
    parser.add_argument("--into", type=Path, required=True)
    wish = parser.parse_args()
    records = read_trace(wish.trace)
    for at, disk, acknowledged in _cuts(records, [wish.at], forgetful=wish.forgetful):
        chance = random.Random(f"{wish.seed} {at} {wish.mode}")
        lost, trouble = examine(disk.after_cut(wish.mode, chance), acknowledged, wish.into)
        print(f"{len(acknowledged)} acknowledged, {lost} missing. {trouble or 'Sound.'}")


if __name__ == "__main__":
    main()
