"""The schema: which file is ours, and how it comes up to date. Forward only."""

import os
import sqlite3
from importlib import resources
from pathlib import Path

from hookbox.errors import StoreDamaged, StoreError
from hookbox.store import connections, succession, wal

APPLICATION_ID = 0x686B6278  # "hkbx": tells our file from another program's


def migrations() -> list[tuple[int, str]]:
    """Every migration as (number, SQL), in order. Forward only: a released one never changes."""
    folder = resources.files("hookbox.store") / "migrations"
    files = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return [(int(name.split("_")[0]), (folder / name).read_text()) for name in files]


def prepare(path: Path) -> None:
    """Make the file ready for use: create it, or check it and bring its schema up to date.

    Raises StoreDamaged for a file that is not ours or not sound, StoreError for one made by a newer
    hookbox.
    """
    succession.take_over(path)  # a restore that was interrupted
    fresh = not path.exists()
    if fresh:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    wal.settle(path)  # the run before this one may have ended over a sync that failed
    connection = connections.connect(path)
    try:
        with connections.named(path):
            if fresh or path.stat().st_size == 0:
                # Takes in an empty file only.
                connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            else:
                check_identity(connection, path)
            _enter_wal(connection)
            _migrate(connection, path)
    finally:
        connection.close()


def check_identity(connection: sqlite3.Connection, path: Path) -> None:
    (application_id,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if application_id != APPLICATION_ID and tables:
        raise StoreDamaged(
            f"{path} is the database of another program; nothing was changed. "
            "Give hookbox its own state directory with --state"
        )
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    newest = migrations()[-1][0]
    if version > newest:
        raise StoreError(
            f"{path} was made by a newer hookbox (schema {version}, this program knows {newest}); "
            "nothing was changed. Install that version again, or restore a backup from before the "
            "upgrade"
        )


def _enter_wal(connection: sqlite3.Connection) -> None:
    (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise StoreError(
            f"the file system of the state directory cannot hold a WAL database (mode {mode})"
        )
    connection.executescript(connections.WRITER_PRAGMAS)


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    """One transaction per migration, its number inside it, so that a kill leaves either all of it
    or nothing.
    """
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    for number, sql in migrations():
        if number <= version:
            continue
        stamp = f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {number};"
        try:
            connection.executescript(f"BEGIN EXCLUSIVE; {sql} {stamp} COMMIT;")
        except sqlite3.Error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
