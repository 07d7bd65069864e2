"""Restore: a backup becomes the database.

Everything is done to a copy beside the database and checked there; the database itself is only set
aside, with its WAL. What the box goes on with differs from the backup in three things: ids go on
well past whatever was given out since (see `numbering`), jobs that were running wait again, and the
schema is this program's.
"""

import re
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from hookbox.errors import OperatorError, StoreDamaged, StoreError
from hookbox.store import (
    backup,
    connections,
    copies,
    database,
    drafts,
    numbering,
    redaction,
    schema,
    succession,
)
from hookbox.store.connections import Transaction
from hookbox.store.copies import Counts
from hookbox.store.lock import Lock
from hookbox.store.numbering import Highest
from hookbox.store.state import prepare_state

# They belong to a process that died or to a box that went on without them. Nothing of theirs
# crashed, so no crash is counted.
PUT_BACK = """
UPDATE job SET state = 'available', instance = NULL, token = NULL WHERE state = 'running'
"""
NEWEST = "SELECT received_at FROM delivery ORDER BY id DESC LIMIT 1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """A backup that has become the database. `aside`: where the one before is now. `newest_at`:
    when the newest delivery in it was received.
    """

    counts: Counts
    taken_at: int | None
    newest_at: int | None
    aside: Path | None


def restore(state: Path, file: Path, now: int) -> Restored:
    """Put the backup `file` in the place of the database of a state directory.

    Raises StoreBusy while a server runs; for a file that will not do StoreError or OperatorError,
    with nothing changed.
    """
    if not file.is_file():
        raise OperatorError(f"there is no file {file}; nothing was changed")
    prepare_state(state)
    lock = Lock(state)
    lock.acquire()
    try:
        return _restore(state, file, now)
    finally:
        lock.release()


def _restore(state: Path, file: Path, now: int) -> Restored:
    live = state / database.FILE_NAME
    succession.take_over(live)  # one that was interrupted comes first: it may be what is set aside
    if live.exists() and live.samefile(file):
        raise OperatorError(f"{file} is the database itself; name a backup of it")
    target = succession.successor(live)
    drafts.clear(state, re.compile(re.escape(target.name)))
    with drafts.draft(target) as draft:
        counts, taken_at, newest_at = _copied(file, draft)
        _made_ours(draft, _given_out(state))
        succession.appoint(draft, live, now)
    return Restored(
        counts=counts,
        taken_at=taken_at,
        newest_at=newest_at,
        aside=succession.take_over(live),
    )


def _copied(file: Path, draft: Path) -> tuple[Counts, int | None, int | None]:
    """What is in the draft now, which is sound: how many rows, when the backup was taken, and when
    the newest delivery in it was received.
    """
    try:
        with copies.opened(file) as source, copies.snapshot(source):
            _check_identity(source, file)
            copies.check_room(source, draft.parent)
            counts = copies.counts(source)
            copies.copy(source, draft)
            copies.check(draft, counts)
            return counts, _instant(source, backup.STAMPED), _instant(source, NEWEST)
    except (StoreDamaged, sqlite3.DatabaseError) as error:
        known = connections.translated(error) if isinstance(error, sqlite3.Error) else error
        if not isinstance(known, StoreDamaged):
            raise StoreError(f"{file} cannot be read ({error}); nothing was changed") from error
        raise StoreDamaged(
            f"{file} is no sound backup ({error}); nothing was changed. Take another one"
        ) from error


def _instant(source: Transaction, asked: str) -> int | None:
    row = source.execute(asked).fetchone()
    return None if row is None else int(row[0])


def _check_identity(source: Transaction, file: Path) -> None:
    (application_id,) = source.execute("PRAGMA application_id").fetchone()
    if application_id != schema.APPLICATION_ID:
        raise OperatorError(f"{file} is not a database of hookbox's; nothing was changed")
    (version,) = source.execute("PRAGMA user_version").fetchone()
    newest = schema.migrations()[-1][0]
    if version > newest:
        raise StoreError(
            f"{file} was made by a newer hookbox (schema {version}, this program knows {newest}); "
            "nothing was changed. Install that version, then restore"
        )
    if redaction.is_redacted(source):
        raise OperatorError(
            f"{file} was made with --without-bodies, to be looked at; it cannot be restored"
        )


def _given_out(state: Path) -> list[Highest]:
    """What the database that is set aside has given out, if it can still say so."""
    try:
        with database.reading(state) as old:
            return [numbering.highest(old)]
    except StoreError:
        return []


def _made_ours(draft: Path, given_out: list[Highest]) -> None:
    """Bring the draft to where the box can go on with it, in one file and checked once more."""
    schema.prepare(draft)
    with (
        connections.named(draft),
        closing(connections.connect(draft)) as connection,
    ):
        connection.row_factory = sqlite3.Row

        def work(transaction: Transaction) -> None:
            numbering.step_over(transaction, given_out)
            transaction.execute(PUT_BACK)

        connections.in_transaction(connection, work)
        connection.execute("PRAGMA journal_mode = DELETE").fetchone()  # folds the WAL, or fails
        wanted = copies.counts(connection)
    copies.check(draft, wanted)
