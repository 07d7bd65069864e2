"""Backup: the database in one file, taken while the server runs or not.

What was committed before it began is in it; so every event that was acknowledged is. The key that
opens its sealed secrets is not.
"""

import re
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from hookbox.errors import OperatorError, StoreDamaged
from hookbox.store import copies, database, drafts, redaction
from hookbox.store.connections import named
from hookbox.store.copies import Counts

NAME = "hookbox-{stamp}.db"
NAMES = re.compile(r"hookbox-\d{8}T\d{6}Z\.db")
WHOLE = ".whole"  # what bodies are then taken out of
STAMP = """
INSERT INTO meta (name, value) VALUES ('backup_at', :now)
ON CONFLICT (name) DO UPDATE SET value = excluded.value
"""
STAMPED = "SELECT value FROM meta WHERE name = 'backup_at'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Backup:
    """A backup that was taken. `private`: nobody else on this machine can read the file."""

    path: Path
    size_bytes: int
    counts: Counts
    private: bool


def take(
    state: Path, target: Path, now: int, *, force: bool = False, without_bodies: bool = False
) -> Backup:
    """Write the database of a state directory to `target`, or leave nothing there.

    Raises OperatorError for a place that will not do, StoreError for a database that will not.
    """
    _check_place(state, target, force=force)
    drafts.clear(target.parent, _drafts_of(re.escape(target.name)))
    with drafts.draft(target) as path:
        if without_bodies:
            with drafts.draft(target.with_name(f"{target.name}{WHOLE}")) as whole:
                wanted = redaction.redact(whole, path, _copied(state, whole, times=2))
        else:
            wanted = _copied(state, path)
        _stamp(path, now)
        _check_copied(state, path, wanted)
        size_bytes = path.stat().st_size
        _check_place(state, target, force=force)  # somebody may have been quicker
        drafts.publish(path, target)
    private = not target.stat().st_mode & 0o077  # some file systems cannot say so
    return Backup(path=target, size_bytes=size_bytes, counts=wanted, private=private)


def named_by_time(folder: Path, now: int) -> Path:
    """Where the backup of this moment goes in a directory of backups."""
    drafts.clear(folder, _drafts_of(NAMES.pattern))
    at = datetime.fromtimestamp(now / 1000, UTC)
    return folder / NAME.format(stamp=at.strftime("%Y%m%dT%H%M%SZ"))


def rotate(folder: Path, newest: Path, keep: int) -> list[Path]:
    """Keep the newest backup and the ones before it, so many in all; the ones that were removed.

    Only files that have names of ours are looked at. The newest is the one just taken, whatever
    the clock said.
    """
    others = sorted(
        (each for each in folder.iterdir() if NAMES.fullmatch(each.name) and each != newest),
        reverse=True,
    )
    removed = others[keep - 1 :]
    for each in removed:
        each.unlink()
    return removed


def _copied(state: Path, into: Path, times: int = 1) -> Counts:
    """How many rows the database had when it was copied. `times`: how often there is room for."""
    with database.reading(state) as live, copies.snapshot(live):
        copies.check_room(live, into.parent, times)
        counts = copies.counts(live)
        copies.copy(live, into)
    return counts


def _drafts_of(names: str) -> re.Pattern[str]:
    return re.compile(f"(?:{names})(?:{re.escape(WHOLE)})?")


def _check_place(state: Path, target: Path, *, force: bool) -> None:
    """Raises OperatorError."""
    live = state / database.FILE_NAME
    if target.parent.resolve() == state.resolve() and target.name.startswith(live.name):
        raise OperatorError(f"{target} belongs to the running database; choose another name")
    if not target.parent.is_dir():
        raise OperatorError(f"there is no directory {target.parent}; make it first")
    if target.is_symlink() or (target.exists() and not target.is_file()):
        raise OperatorError(f"{target} is no plain file; choose another name")
    if target.exists() and not force:
        raise OperatorError(f"{target} exists; choose another name, or overwrite it with --force")


def _check_copied(state: Path, path: Path, wanted: Counts) -> None:
    try:
        copies.check(path, wanted)
    except StoreDamaged as error:
        live = state / database.FILE_NAME
        raise StoreDamaged(
            f"the copy of {live} is not sound ({error}), so it was not kept. Either the database "
            "is damaged (then keep its files, and restore an earlier backup with: hookbox restore "
            "FILE) or the place of the backup is"
        ) from error


def _stamp(path: Path, now: int) -> None:
    """Say when it was taken, inside the file: names and times of files get lost."""
    with named(path), closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = MEMORY")
        connection.execute(STAMP, {"now": now})
