"""`hookbox backup`, with the server stopped or running."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.shell import Shell, delivery
from tests.store.boxes import names


@pytest.fixture
def filled(shell: Shell) -> Shell:
    shell.receive(delivery("a"), delivery("b"))
    return shell


def test_backup_says_what_it_holds_and_what_else_is_needed(filled: Shell, tmp_path: Path) -> None:
    assert filled("secret", "set", "sealed", typed="whsec_" + "A" * 32).exit_code == 0
    target = tmp_path / "b.db"
    result = filled("backup", str(target))
    assert result.exit_code == 0, result.output
    assert str(target) in result.stdout
    assert "events 2, quarantine 0, suppressions 0, jobs 2" in result.stdout
    assert "MB" in result.stdout
    assert "took" in result.stdout
    assert "hookbox.key" in result.stderr
    assert str(filled.config) in result.stderr


def test_program_gets_one_object(filled: Shell, tmp_path: Path) -> None:
    [told] = filled.lines("backup", str(tmp_path / "b.db"))
    assert set(told) == {"file", "taken_at", "bytes", "rows", "took_ms", "removed"}
    assert told["file"] == str(tmp_path / "b.db")
    assert told["bytes"] == (tmp_path / "b.db").stat().st_size
    assert told["rows"]["event"] == 2


def test_running_box_is_backed_up(serving: Shell, tmp_path: Path) -> None:
    assert serving("simulate", "std", "bounced", "--to", "ann@example.com").exit_code == 0
    assert serving("backup", str(tmp_path / "b.db")).exit_code == 0
    with closing(sqlite3.connect(tmp_path / "b.db")) as connection:
        assert connection.execute("SELECT count(*) FROM events").fetchone() == (1,)


def test_existing_file_is_not_overwritten_without_force(filled: Shell, tmp_path: Path) -> None:
    target = tmp_path / "b.db"
    target.write_text("mine")
    refused = filled("backup", str(target))
    assert (refused.exit_code, target.read_text()) == (1, "mine")
    assert "--force" in refused.stderr
    assert filled("backup", str(target), "--force").exit_code == 0
    assert target.read_bytes().startswith(b"SQLite")


def test_directory_keeps_so_many(filled: Shell, tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    folder.mkdir()
    old = [folder / f"hookbox-2020010{day}T000000Z.db" for day in range(1, 4)]
    for each in old:
        each.touch()
    result = filled("backup", str(folder), "--keep", "2", "--json")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["removed"] == [str(old[1]), str(old[0])]
    assert names(folder) == sorted([old[2].name, Path(told["file"]).name])


def test_failed_backup_removes_no_older_one(shell: Shell, tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    folder.mkdir()
    for day in range(1, 4):
        (folder / f"hookbox-2020010{day}T000000Z.db").touch()
    result = shell("backup", str(folder), "--keep", "1")  # there is no database yet
    assert result.exit_code == 1
    assert "no database" in result.stderr
    assert len(names(folder)) == 3


def test_keep_wants_a_directory(filled: Shell, tmp_path: Path) -> None:
    refused = filled("backup", str(tmp_path / "backups"), "--keep", "7")
    assert refused.exit_code == 2
    assert "make it first" in refused.stderr


def test_backup_to_give_away_says_nothing_of_keys(filled: Shell, tmp_path: Path) -> None:
    result = filled("backup", str(tmp_path / "b.db"), "--without-bodies")
    assert result.exit_code == 0, result.output
    assert "hookbox.key" not in result.stderr
    assert b"ann@example.com" not in (tmp_path / "b.db").read_bytes()
