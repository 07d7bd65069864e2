"""`hookbox restore`: what it says and does."""

from pathlib import Path

import pytest

from tests.cli.shell import Shell, delivery

SECRET = "whsec_" + "A" * 32


@pytest.fixture
def backed_up(shell: Shell, tmp_path: Path) -> Path:
    """A backup of a box that has a sealed secret and one event, and has received another since."""
    assert shell("secret", "set", "sealed", typed=SECRET).exit_code == 0
    shell.receive(delivery("a"))
    assert shell("backup", str(tmp_path / "b.db")).exit_code == 0
    shell.receive(delivery("b"))
    return tmp_path / "b.db"


def test_restore_puts_the_backup_in_place_and_says_what_to_do(
    shell: Shell, backed_up: Path
) -> None:
    result = shell("restore", str(backed_up))
    assert result.exit_code == 0, result.output
    assert "events 1" in result.stdout
    assert "hookbox.db.before-" in result.stdout
    assert "opens every secret" in result.stderr
    assert "outbox pause NAME" in result.stderr
    assert [line["key"] for line in shell.lines("events", "list")] == ["a"]
    shell.receive(delivery("b"), delivery("a"))
    first, second = shell.lines("events", "list")
    assert (first["key"], first["duplicates"], second["key"]) == ("a", 1, "b")
    assert second["id"] > 1_000_000_000


@pytest.mark.parametrize("key", ["missing", "another"])
def test_key_that_does_not_fit_is_said_first(shell: Shell, backed_up: Path, key: str) -> None:
    place = shell.state / "hookbox.key"
    place.unlink()
    if key == "another":
        place.write_text("A" * 43 + "=\n")
    result = shell("restore", str(backed_up))
    assert result.exit_code == 0, result.output
    [said] = [line for line in result.stderr.splitlines() if "first of all" in line]
    assert str(place) in said or "cannot be opened with hookbox.key" in said


def test_restore_is_refused_while_the_box_serves(serving: Shell, tmp_path: Path) -> None:
    target = tmp_path / "b.db"
    assert serving("backup", str(target)).exit_code == 0
    refused = serving("restore", str(target))
    assert refused.exit_code == 75
    assert "stop that one first" in refused.stderr
    assert serving("simulate", "std", "bounced", "--to", "ann@example.com").exit_code == 0


def test_file_that_is_no_backup_exits_1_and_changes_nothing(shell: Shell, backed_up: Path) -> None:
    backed_up.write_text("a letter")
    result = shell("restore", str(backed_up))
    assert result.exit_code == 1
    assert "nothing was changed" in result.stderr
    assert len(shell.lines("events", "list")) == 2
