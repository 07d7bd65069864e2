"""Opening: what is refused, and what must be in force before anything is acknowledged."""

import os
import sqlite3
import stat
from pathlib import Path

import pytest

from hookbox.errors import StoreBusy, StoreDamaged, StoreError
from hookbox.store import connections, database, schema, threads
from hookbox.store.lock import Lock


def test_fresh_database_is_wal_incremental_and_private(path: Path) -> None:
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert connection.execute("PRAGMA auto_vacuum").fetchone() == (2,)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    connection.close()


def test_preparing_twice_changes_nothing(path: Path) -> None:
    before = (
        sqlite3.connect(path).execute("SELECT name, sql FROM sqlite_schema ORDER BY 1").fetchall()
    )
    schema.prepare(path)
    assert (
        sqlite3.connect(path).execute("SELECT name, sql FROM sqlite_schema ORDER BY 1").fetchall()
        == before
    )


def test_database_of_a_newer_hookbox_is_refused_untouched(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 9999")
    connection.close()
    with pytest.raises(StoreError, match=r"newer hookbox.*nothing was changed"):
        schema.prepare(path)


def test_database_of_another_program_is_refused_untouched(tmp_path: Path) -> None:
    path = tmp_path / database.FILE_NAME
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StoreDamaged, match="another program"):
        schema.prepare(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", [b"not a database at all" * 100, os.urandom(8192)])
def test_file_that_is_no_database_is_refused_with_the_way_to_restore(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / database.FILE_NAME
    path.write_bytes(content)
    with pytest.raises(StoreDamaged, match="hookbox restore"):
        schema.prepare(path)
    assert path.read_bytes() == content


async def test_writer_runs_with_full_synchronous_and_no_automatic_checkpoint(path: Path) -> None:
    writer = await threads.open_writer(path)

    def pragmas(connection: sqlite3.Connection) -> dict[str, object]:
        names = (
            "synchronous",
            "wal_autocheckpoint",
            "foreign_keys",
            "secure_delete",
            "mmap_size",
            "trusted_schema",
        )
        return {name: connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names}

    assert await writer.run(pragmas) == {
        "synchronous": 2,
        "wal_autocheckpoint": 0,
        "foreign_keys": 1,
        "secure_delete": 1,
        "mmap_size": 0,
        "trusted_schema": 0,
    }
    await writer.close()


async def test_writer_refuses_a_database_that_cannot_keep_its_promise(tmp_path: Path) -> None:
    path = tmp_path / database.FILE_NAME
    sqlite3.connect(path).execute("CREATE TABLE x (y)").connection.close()
    with pytest.raises(StoreError, match="would not survive a power cut"):
        await threads.open_writer(path)


def test_second_lock_names_the_process_that_has_it(tmp_path: Path) -> None:
    first, second = Lock(tmp_path), Lock(tmp_path)
    first.acquire()
    with pytest.raises(StoreBusy, match=f"process {os.getpid()}"):
        second.acquire()
    first.release()
    second.acquire()
    second.release()


def test_reader_cannot_write(path: Path) -> None:
    with (
        database.reading(path.parent) as connection,
        pytest.raises(sqlite3.OperationalError, match="readonly"),
    ):
        connection.execute("DELETE FROM event")


def test_failed_work_leaves_nothing_and_the_next_goes_on(path: Path) -> None:
    connection = sqlite3.connect(path, isolation_level=None)

    def fails(transaction: sqlite3.Connection) -> None:
        transaction.execute("INSERT INTO meta (name, value) VALUES ('a', 1)")
        raise RuntimeError

    with pytest.raises(RuntimeError):
        connections.in_transaction(connection, fails)
    assert not connection.in_transaction
    connections.in_transaction(
        connection, lambda t: t.execute("INSERT INTO meta (name, value) VALUES ('b', 1)") and None
    )
    assert connection.execute("SELECT name FROM meta").fetchall() == [("b",)]
    connection.close()


def test_all_documented_views_have_their_documented_columns(path: Path) -> None:
    """People and scripts rely on these names; tables may change, views may only grow."""
    contract = {
        "events": "id source provider key kind raw_kind recipient message_id occurred_at "
        "received_at via verified_by state duplicates last_duplicate_at content synthesised",
        "notifications": "event_id source message_id recipient kind bounce_class reject_reason "
        "occurred_at ambiguous effect",
        "recipients": "source message_id recipient status bounce_class status_at event_id",
        "suppressions": "address scope reason since event_id source lifted_at lifted_by "
        "lift_reason",
        "quarantine": "id source key reason received_at content resolved_at resolution",
        "outbox": "id event_id target replay state attempts run_at last_outcome",
        "attempts": "job_id number started_at took_ms outcome status excerpt",
        "refusals": "source reason minute count last_skew_s last_remote",
        "cursors": "source cursor saved_at",
        "effects": "key state claimed_by claimed_at lease_until completed_at result",
        "settlements": "id key verdict settled_at settled_by reason claimed_by claimed_at",
        "gaps": "source from_sequence to_sequence reason opened_at closed_at",
    }
    connection = sqlite3.connect(path)
    for view, columns in contract.items():
        cursor = connection.execute(f"SELECT * FROM {view}")
        assert [column[0] for column in cursor.description] == columns.split(), view
    connection.close()
