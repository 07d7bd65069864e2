"""What is in a backup, in lines for people and programs."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from hookbox.cli.terminal import Row
from hookbox.rules.instants import written
from hookbox.store.backup import Backup
from hookbox.store.copies import Counts

# What people call the tables that hold what they would miss.
SHOWN = {
    "event": "events",
    "quarantine_entry": "quarantine",
    "suppression": "suppressions",
    "job": "jobs",
}


def facts(taken: Backup, took_s: float, removed: Sequence[Path]) -> Iterator[tuple[str, str]]:
    """For a person."""
    yield "backup", str(taken.path)
    yield "size", size(taken.size_bytes)
    yield "holds", held(taken.counts)
    yield "took", f"{took_s:.1f} s"
    for each in removed:
        yield "removed", str(each)


def line(taken: Backup, now: int, took_s: float, removed: Sequence[Path]) -> Row:
    """For a program."""
    return {
        "file": str(taken.path),
        "taken_at": written(now),
        "bytes": taken.size_bytes,
        "rows": dict(taken.counts),
        "took_ms": round(took_s * 1000),
        "removed": [str(each) for each in removed],
    }


def held(counts: Counts) -> str:
    """The rows that a person would miss."""
    return ", ".join(f"{name} {counts[table]}" for table, name in SHOWN.items())


def size(count: int) -> str:
    """A size as one feels it."""
    return f"{count / 2**20:.1f} MB"
