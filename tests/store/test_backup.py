"""Backup: whole or not there, checked, private, and without what must not be in it."""

import os
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from hookbox.errors import OperatorError, StoreDamaged, StoreError
from hookbox.store import backup, copies, database, drafts, redaction
from tests.store.boxes import NOW, digest, keys, names, store


def test_backup_is_one_private_file_that_holds_everything(state: Path, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        taken = backup.take(state, tmp_path / "b.db", NOW)
    finally:
        os.umask(before)
    assert taken.private
    assert stat.S_IMODE(taken.path.stat().st_mode) == 0o600
    assert taken.size_bytes == taken.path.stat().st_size
    assert (taken.counts["event"], taken.counts["quarantine_entry"]) == (3, 1)
    with closing(sqlite3.connect(taken.path)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert connection.execute(backup.STAMPED).fetchone() == (NOW,)
    assert names(tmp_path) == ["b.db", "state"]


def test_backup_changes_nothing_in_the_box(state: Path, tmp_path: Path) -> None:
    before = digest(state / database.FILE_NAME)
    backup.take(state, tmp_path / "b.db", NOW)
    assert digest(state / database.FILE_NAME) == before


def test_what_is_only_in_the_wal_is_in_the_backup(state: Path, tmp_path: Path) -> None:
    """And what is committed while it is taken is not, nor disturbs it."""
    with database.exclusive(state) as run:
        store(run, "wal")
        taken = backup.take(state, tmp_path / "b.db", NOW)
        with database.reading(state) as live, copies.snapshot(live):
            wanted = copies.counts(live)
            store(run, "later")
            draft = tmp_path / "draft"
            copies.copy(live, draft)
        copies.check(draft, wanted)
    assert taken.counts["event"] == wanted["event"] == 4
    assert keys(state)[-2:] == ["wal", "later"]


def test_copy_that_holds_less_than_its_source_is_refused(state: Path, tmp_path: Path) -> None:
    taken = backup.take(state, tmp_path / "b.db", NOW)
    with pytest.raises(StoreError, match=r"other rows.*\(event\)"):
        copies.check(taken.path, {**taken.counts, "event": 4})


def test_backup_of_a_damaged_database_is_not_kept(state: Path, tmp_path: Path) -> None:
    live = state / database.FILE_NAME
    content = bytearray(live.read_bytes())
    with closing(sqlite3.connect(live)) as connection:
        (root,) = connection.execute(
            "SELECT rootpage FROM sqlite_schema WHERE name = 'event_identity'"
        ).fetchone()
    content[(root - 1) * 4096 + 100 : root * 4096] = os.urandom(3996)
    live.write_bytes(content)
    with pytest.raises(StoreDamaged, match="not sound"):
        backup.take(state, tmp_path / "b.db", NOW)
    assert names(tmp_path) == ["state"]


def test_file_that_exists_is_overwritten_by_force_only(state: Path, tmp_path: Path) -> None:
    target = tmp_path / "b.db"
    target.write_text("mine")
    with pytest.raises(OperatorError, match="--force"):
        backup.take(state, target, NOW)
    assert target.read_text() == "mine"
    backup.take(state, target, NOW, force=True)
    assert target.read_bytes().startswith(b"SQLite format 3")


@pytest.mark.parametrize("name", ["hookbox.db", "hookbox.db-wal", "hookbox.db.restored"])
def test_files_of_the_running_database_are_never_overwritten(state: Path, name: str) -> None:
    with pytest.raises(OperatorError, match="belongs to the running database"):
        backup.take(state, state / name, NOW, force=True)


def test_place_that_is_not_there_is_said_before_anything_is_read(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match="no directory"):
        backup.take(tmp_path, tmp_path / "nowhere" / "b.db", NOW)


def test_disk_without_room_is_said_before_anything_is_written(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copies, "RESERVE_BYTES", 2**60)
    with pytest.raises(OperatorError, match=r"MB free.*nothing was written"):
        backup.take(state, tmp_path / "b.db", NOW)
    assert names(tmp_path) == ["state"]


# --- directories and drafts


def test_directory_keeps_the_newest_and_touches_nothing_else(state: Path, tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    folder.mkdir()
    (folder / "hookbox-old.db").write_text("not one of ours")
    made = []
    for day in range(4):
        target = backup.named_by_time(folder, NOW + day * 86_400_000)
        made.append(backup.take(state, target, NOW).path)
    assert backup.rotate(folder, made[-1], keep=2) == [made[1], made[0]]
    assert sorted(folder.iterdir()) == sorted([*made[2:], folder / "hookbox-old.db"])


def test_newest_is_kept_though_the_clock_went_back(tmp_path: Path) -> None:
    later, newest = (tmp_path / f"hookbox-{year}0101T000000Z.db" for year in (2030, 1970))
    for each in (later, newest):
        each.touch()
    assert backup.rotate(tmp_path, newest, keep=1) == [later]
    assert list(tmp_path.iterdir()) == [newest]


def test_draft_of_a_dead_process_is_cleared_and_that_of_a_live_one_is_not(
    state: Path, tmp_path: Path
) -> None:
    dead, other = tmp_path / ".b.db.4194304999.part", tmp_path / ".c.db.4194304999.part"
    alive = tmp_path / f".b.db.{os.getppid()}.part"
    for each in (dead, other, alive):
        each.touch()
    backup.take(state, tmp_path / "b.db", NOW)
    assert not dead.exists()
    assert other.exists()
    assert alive.exists()


def test_draft_that_is_not_published_leaves_nothing(tmp_path: Path) -> None:
    with drafts.draft(tmp_path / "b.db") as path:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        path.with_name(f"{path.name}-wal").touch()
    assert names(tmp_path) == []


# --- without bodies

CANARY = "canary"
BLOB = f"x'{CANARY.encode().hex()}'"
# A row in every table, with something to give away in every column that can hold it; keys that only
# differ in case, and one address in two spellings.
PLANTED = f"""
INSERT INTO delivery VALUES
  (9, 1, {NOW}, NULL, 'webhook', 'current', '{CANARY}', '{{"a": "{CANARY}"}}', 1, {BLOB});
INSERT INTO event
  (id, source_id, key, digest, delivery_id, raw_kind, synthesised, state, kind, recipient,
   message_id, content)
VALUES
  (9, 1, 'K{CANARY}', zeroblob(32), 9, 'x', 0, 'applied', 'bounced', '{CANARY.title()}@X.org',
   '<{CANARY}@x.org>', {BLOB}),
  (10, 1, 'k{CANARY}', zeroblob(32), 9, 'x', 0, 'pending', NULL, NULL, NULL, NULL);
INSERT INTO token VALUES (1, '{CANARY}', zeroblob(32), 1);
INSERT INTO notification
  (event_id, source_id, message_id, recipient, address, candidates, kind, occurred_at, time_source,
   ambiguous, suppress, scope, meaning, effect)
VALUES
  (9, 1, '{CANARY}', '{CANARY}@x.org', '{CANARY}@x.org', '["{CANARY}"]', 'bounced', 1, 'sender',
   0, 1, '', '{CANARY}', 'status bounced');
INSERT INTO attempt VALUES (1, 1, 1, 1, 'HTTP 500', 500, '{CANARY}');
INSERT INTO refusal VALUES (1, 'stale', 1, 1, 0.5, '{CANARY}');
INSERT INTO secret VALUES ('source.std', 'current', {BLOB}, 1);
INSERT INTO secret_use VALUES (1, 'current', 1, 1);
INSERT INTO status VALUES
  (1, '{CANARY}', '{CANARY}@x.org', '{CANARY.title()}@x.org', 1, 'bounced', 'hard', 1, 9, '[]');
INSERT INTO erasure VALUES (1, 1, '{CANARY}', '{CANARY}', '{CANARY}');
INSERT INTO kept_longer VALUES ('bodies', 9);
INSERT INTO decision VALUES (1, 'lift', 1, '{CANARY}', '{CANARY}', '{CANARY}@x.org', '', 9);
INSERT INTO suppression VALUES
  (1, '{CANARY}@x.org', '', '{CANARY}@x.org', 'complaint', 1, 9, 1, 1);
INSERT INTO suppression_cause VALUES (1, 'complaint', 1, 9, 1, NULL);
INSERT INTO message_place VALUES (1, '{CANARY}', '{CANARY}', '{CANARY}');
INSERT INTO probe VALUES (1, 1, 1, 1, 1, NULL, NULL);
INSERT INTO probe_request VALUES (1, 1, '{CANARY}', 1, 1, 'ok', '["{CANARY}"]', {BLOB});
INSERT INTO cursor (source_id, cursor, saved_at) VALUES (1, '{CANARY}', 1);
INSERT INTO gap (id, source_id, reason, opened_at) VALUES (1, 1, 'expired', 1);
INSERT INTO early
  (id, source_id, key, digest, raw_kind, received_at, via, verified_by, remote, headers, is_text,
   body)
VALUES
  (1, 1, '{CANARY}', zeroblob(32), 'x', 1, 'webhook', 'current', '{CANARY}', '{{}}', 1, {BLOB});
INSERT INTO poll VALUES (1, 1, 1, '{CANARY}', 1);
INSERT OR REPLACE INTO heartbeat VALUES (1, 1);
INSERT INTO outage VALUES (1, 1, 2);
INSERT INTO effect_settlement VALUES
  (1, '{CANARY}', 'done', 1, '{CANARY}', '{CANARY}', '{CANARY}', 1);
INSERT INTO job_turn VALUES ('forward:a', '{CANARY}', 1);
INSERT INTO lane (target, paused_at, paused_by, pause_reason)
VALUES ('forward:a', 1, '{CANARY}', '{CANARY}');
INSERT INTO effect
  (key, state, token, claimed_by, claimed_at, renewed_at, lease_ms, completed_at, result)
VALUES ('{CANARY}', 'completed', 1, '{CANARY}', 1, 1, 1, 1, '{CANARY}');
UPDATE quarantine_entry SET resolved_at = 1, resolution = '{CANARY}', content = {BLOB};
"""


@pytest.fixture
def planted(state: Path) -> Path:
    with closing(sqlite3.connect(state / database.FILE_NAME)) as connection:
        connection.executescript(PLANTED)
    return state


def test_backup_without_bodies_gives_nothing_away(planted: Path, tmp_path: Path) -> None:
    """A table that comes later must be planted above; what of it is kept stands in KEPT."""
    with database.reading(planted) as connection:
        assert not [table for table, rows in copies.counts(connection).items() if not rows]
    whole = backup.take(planted, tmp_path / "whole.db", NOW).path.read_bytes().lower()
    shown = backup.take(planted, tmp_path / "shown.db", NOW, without_bodies=True)
    assert CANARY.encode() in whole  # else this test would prove nothing
    assert CANARY.encode() not in shown.path.read_bytes().lower()
    assert names(tmp_path) == ["shown.db", "state", "whole.db"]
    assert shown.counts["secret"] == 0


def test_backup_without_bodies_still_tells_what_the_box_did(planted: Path, tmp_path: Path) -> None:
    """Rows, kinds, times and outcomes stay, and a person can be followed under another name."""
    state = tmp_path / "shown"
    state.mkdir()
    backup.take(planted, state / "hookbox.part", NOW, without_bodies=True).path.rename(
        state / database.FILE_NAME
    )
    with database.reading(state) as connection:
        assert redaction.is_redacted(connection)
        [event] = connection.execute("SELECT * FROM events WHERE id = 9").fetchall()
        [status] = connection.execute("SELECT * FROM recipients").fetchall()
        [suppressed] = connection.execute("SELECT * FROM suppressions").fetchall()
        [attempt] = connection.execute("SELECT * FROM attempts").fetchall()
    assert (event["kind"], event["source"], event["content"]) == ("bounced", "std", None)
    assert event["recipient"].endswith("@hidden.invalid")
    assert event["recipient"] == status["recipient"] == suppressed["address"]
    assert attempt["outcome"] == "HTTP 500"


def test_every_text_that_is_given_away_is_named_in_the_schema(state: Path) -> None:
    """What is kept by a name that is gone would hide that its successor is not kept."""
    with database.reading(state) as connection:
        known = {
            (table, row["name"])
            for table in copies.counts(connection)
            for row in connection.execute(redaction.COLUMNS, {"table": table})
        }
    kept = {(table, name) for table, names in redaction.KEPT.items() for name in names}
    assert kept <= known
