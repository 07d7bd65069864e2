"""Restore: another database or the same one, never half of each."""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from hookbox.errors import HookboxError, OperatorError, StoreBusy, StoreDamaged, StoreError
from hookbox.store import backup, copies, database, schema, sources, succession
from hookbox.store.lock import Lock
from hookbox.store.restore import restore
from tests.store.boxes import HOUR, NOW, admitted, digest, keys, names


def test_restored_box_is_as_it_was_and_the_other_is_set_aside_whole(
    state: Path, taken: Path
) -> None:
    restored = restore(state, taken, NOW + HOUR)
    assert keys(state) == ["k0", "k1", "k2"]
    assert (restored.taken_at, restored.newest_at) == (NOW, NOW)
    assert restored.counts["event"] == 3
    assert restored.aside == state / "hookbox.db.before-20231114T231320.000Z"
    assert oct(state.joinpath(database.FILE_NAME).stat().st_mode)[-3:] == "600"
    assert restored.aside is not None
    with copies.opened(restored.aside) as old:
        assert copies.counts(old)["event"] == 5


def test_wal_of_the_old_database_goes_with_it(state: Path, taken: Path) -> None:
    """It holds what was committed last; beside the new database it would be its ruin."""
    live = state / database.FILE_NAME
    with closing(sqlite3.connect(live)) as writer:
        writer.executescript("PRAGMA wal_autocheckpoint = 0; DELETE FROM job;")
        writer.execute("INSERT INTO source (name, provider) VALUES ('in-the-wal', 'x')")
        writer.commit()
        restored = restore(state, taken, NOW + HOUR)
        assert restored.aside is not None
        assert restored.aside.with_name(f"{restored.aside.name}-wal").stat().st_size > 0
        with copies.opened(restored.aside) as old:
            assert copies.counts(old)["source"] == 2
    with database.reading(state) as connection:
        assert copies.counts(connection)["source"] == 1


def test_what_was_set_aside_can_be_restored_in_turn(state: Path, taken: Path) -> None:
    restored = restore(state, taken, NOW + HOUR)
    assert restored.aside is not None
    restore(state, restored.aside, NOW + 2 * HOUR)
    assert keys(state) == ["k0", "k1", "k2", "later", "latest"]


def test_backup_is_restored_on_a_machine_that_has_nothing(taken: Path, tmp_path: Path) -> None:
    restored = restore(tmp_path / "new", taken, NOW)
    assert restored.aside is None
    assert keys(tmp_path / "new") == ["k0", "k1", "k2"]
    assert names(tmp_path / "new") == [database.FILE_NAME, "hookbox.lock"]


def test_backup_in_a_place_that_cannot_be_written_is_restored(
    taken: Path, state: Path, tmp_path: Path
) -> None:
    """Nothing is made beside it, not even for a moment."""
    with closing(sqlite3.connect(taken)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
    before = names(tmp_path)
    restore(state, taken, NOW + HOUR)
    assert names(tmp_path) == before


def test_damaged_database_does_not_keep_a_backup_from_taking_its_place(
    state: Path, taken: Path
) -> None:
    (state / database.FILE_NAME).write_bytes(os.urandom(65_536))
    restore(state, taken, NOW + HOUR)
    assert keys(state) == ["k0", "k1", "k2"]


def test_older_schema_is_brought_up_to_date(tmp_path: Path) -> None:
    old = tmp_path / "old.db"
    number, sql = schema.migrations()[0]
    with closing(sqlite3.connect(old)) as connection:
        connection.executescript(
            f"{sql} PRAGMA application_id = {schema.APPLICATION_ID}; PRAGMA user_version = {number}"
        )
    restore(tmp_path / "state", old, NOW)
    with database.reading(tmp_path / "state") as live:
        assert live.execute("PRAGMA user_version").fetchone()[0] == schema.migrations()[-1][0]


# --- what is refused, with nothing changed


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40_960])


def cut_in_a_page(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1_000])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def scribbled(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[20_480:24_576] = os.urandom(4_096)
    path.write_bytes(content)


def no_database(path: Path) -> None:
    path.write_text("a letter to somebody" * 1_000)


def foreign(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE theirs (x)")


def newer(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 9999")


def missing(path: Path) -> None:
    path.unlink()


def index_short_of_a_row(path: Path) -> None:
    """Every page is well formed; only the index that decides what is new does not know an event."""
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "PRAGMA writable_schema = ON;"
            "UPDATE sqlite_schema SET sql = replace(sql, '(source_id, key)', '(source_id, digest)')"
            " WHERE name = 'event_identity';"
        )


SPOILT: list[tuple[Callable[[Path], None], type[HookboxError], str]] = [
    (truncated, StoreDamaged, "no sound backup"),
    (cut_in_a_page, StoreDamaged, "no sound backup"),
    (scribbled, StoreDamaged, "no sound backup"),
    (index_short_of_a_row, StoreDamaged, "no sound backup"),
    (no_database, StoreDamaged, "no sound backup"),
    (empty, OperatorError, "not a database of hookbox's"),
    (foreign, OperatorError, "not a database of hookbox's"),
    (newer, StoreError, "newer hookbox"),
    (missing, OperatorError, "no file"),
]


@pytest.mark.parametrize(
    ("spoil", "error", "told"), SPOILT, ids=lambda each: getattr(each, "__name__", "")
)
def test_spoilt_backup_is_refused_and_nothing_is_changed(
    state: Path, taken: Path, spoil: Callable[[Path], None], error: type[HookboxError], told: str
) -> None:
    spoil(taken)
    before = digest(state / database.FILE_NAME), names(state)
    with pytest.raises(error, match=f"(?s){told}.*nothing was changed"):
        restore(state, taken, NOW + HOUR)
    assert names(state) == before[1]
    assert digest(state / database.FILE_NAME) == before[0]


def test_backup_made_to_be_given_away_is_refused(state: Path, tmp_path: Path) -> None:
    shown = backup.take(state, tmp_path / "shown.db", NOW, without_bodies=True)
    with pytest.raises(OperatorError, match="cannot be restored"):
        restore(state, shown.path, NOW + HOUR)


def test_database_is_no_backup_of_itself(state: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(state / database.FILE_NAME)
    with pytest.raises(OperatorError, match="the database itself"):
        restore(state, tmp_path / "link", NOW)


def test_restore_waits_for_nobody_who_serves(state: Path, taken: Path) -> None:
    server = Lock(state)
    server.acquire()
    with pytest.raises(StoreBusy, match="stop that one first"):
        restore(state, taken, NOW + HOUR)
    server.release()
    assert len(keys(state)) == 5


# --- interrupted


@pytest.mark.parametrize("done", range(5))
def test_restore_that_was_interrupted_is_finished_by_whoever_opens_the_box(
    state: Path, taken: Path, done: int
) -> None:
    """After any number of its steps: never the new database beside the old one's WAL."""
    live = state / database.FILE_NAME
    with closing(sqlite3.connect(live)) as left_open:  # so that there is a WAL
        left_open.execute("INSERT INTO source (name, provider) VALUES ('old', 'x')")
        left_open.commit()
        draft = state / "draft"
        draft.write_bytes(taken.read_bytes())
        succession.appoint(draft, live, NOW + HOUR)
        aside = live.with_name("hookbox.db.before-20231114T231320.000Z")
        moves = [(live.with_name(live.name + end), aside.with_name(aside.name + end))
                 for end in succession.ENDINGS]  # fmt: skip
        moves.append((succession.successor(live), live))
        for old, new in moves[:done]:
            old.rename(new)
        schema.prepare(live)
        assert keys(state) == ["k0", "k1", "k2"]
        with copies.opened(aside) as old_one:
            assert copies.counts(old_one)["source"] == 2
    assert not succession.successor(live).exists()


def test_new_database_beside_the_old_log_is_neither_of_the_two(state: Path, taken: Path) -> None:
    """The planted fault: what the order of the steps is for."""
    live = state / database.FILE_NAME
    log = live.with_name(f"{live.name}-wal")
    with closing(sqlite3.connect(live)) as left_open:
        left_open.execute("INSERT INTO source (name, provider) VALUES ('old', 'x')")
        left_open.commit()
        written = log.read_bytes()
    live.write_bytes(taken.read_bytes())
    log.write_bytes(written)
    with closing(sqlite3.connect(live)) as mixed:
        assert keys_of(mixed) == ["k0", "k1", "k2"]  # the backup's
        assert ("old",) in mixed.execute("SELECT name FROM source").fetchall()  # not the backup's


def keys_of(connection: sqlite3.Connection) -> list[str]:
    return [key for (key,) in connection.execute("SELECT key FROM event ORDER BY id")]


def test_draft_of_a_restore_that_was_killed_is_cleared_by_the_next(
    state: Path, taken: Path
) -> None:
    (state / ".hookbox.db.restored.4194304999.part").touch()
    (state / ".hookbox.db.restored.4194304999.part-wal").touch()
    restore(state, taken, NOW + HOUR)
    assert not list(state.glob(".*"))


# --- what the box goes on with


def test_running_jobs_wait_again_and_no_crash_is_counted(state: Path, taken: Path) -> None:
    restore(state, taken, NOW + HOUR)
    with database.exclusive(state) as run:
        assert run(sources.next_instance) >= 1
        found = run(lambda t: t.execute("SELECT DISTINCT state, crashes FROM job").fetchall())
    assert [tuple(row) for row in found] == [("available", 0)]


def test_instance_is_past_that_of_the_old_database(state: Path, taken: Path) -> None:
    with database.exclusive(state) as run:
        before = [run(sources.next_instance) for _ in range(3)]
    restore(state, taken, NOW + HOUR)
    with database.exclusive(state) as run:
        assert run(sources.next_instance) > before[-1]


def test_what_came_since_the_backup_is_new_again_and_the_rest_is_known(
    state: Path, taken: Path
) -> None:
    restore(state, taken, NOW + HOUR)
    with database.exclusive(state) as run:
        told = run(lambda t: admitted(t, "k0", "k1", "later"))
    assert (told.new, told.duplicate) == (1, 2)
