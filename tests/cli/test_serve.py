"""`hookbox serve`: the first run, and what it hands to the doors."""

from collections.abc import Callable
from pathlib import Path

import pytest

from hookbox.errors import ConfigError, StoreBusy
from hookbox.model import Slot
from hookbox.settings import Settings
from hookbox.store import database, secrets
from tests.cli.shell import CONFIG, Shell


def test_first_serve_writes_the_demo_and_says_what_to_type(tmp_path: Path) -> None:
    shell = Shell(config=tmp_path / "etc" / "hookbox.toml", state=tmp_path / "state")
    result = shell("serve")
    assert result.exit_code == 0, result.output
    assert str(shell.config) in result.stdout
    assert str(shell.state) in result.stdout
    assert "simulate demo bounced --to someone@example.com" in result.stdout
    assert "http://127.0.0.1:8080/hooks/demo" in result.stdout
    with database.reading(shell.state) as transaction:
        assert list(secrets.of_owner(transaction, "source.demo")) == [Slot.CURRENT]


def test_second_serve_keeps_the_demo_secret_and_is_quiet(tmp_path: Path) -> None:
    shell = Shell(config=tmp_path / "hookbox.toml", state=tmp_path / "state")
    shell("serve")
    with database.reading(shell.state) as transaction:
        before = secrets.of_owner(transaction, "source.demo")
    assert not shell("serve").output
    shell.config.unlink()
    shell("serve")
    with database.reading(shell.state) as transaction:
        assert secrets.of_owner(transaction, "source.demo") == before


def test_hint_names_the_files_that_were_named(tmp_path: Path) -> None:
    """So that the command, typed as printed, is about this very box."""
    shell = Shell(config=tmp_path / "my box.toml", state=tmp_path / "state")
    assert f"--config '{shell.config}' --state {shell.state} simulate" in shell("serve").stdout


def test_serve_hands_over_the_settings_and_how_to_read_them_anew(shell: Shell) -> None:
    handed: list[Settings] = []

    def serve(settings: Settings, load: Callable[[], Settings]) -> int:
        handed.append(settings)
        shell.config.write_text("")
        handed.append(load())
        return 3

    result = Shell(config=shell.config, state=shell.state, serve=serve)("serve")
    assert result.exit_code == 3
    assert [len(settings.sources) for settings in handed] == [2, 0]
    assert handed[0].text == CONFIG
    assert handed[0].state == shell.state


@pytest.mark.parametrize(
    ("error", "code"),
    [(ConfigError("no", where="server.listen", mend="yes", line=3), 78), (StoreBusy("no"), 75)],
)
def test_what_keeps_it_from_serving_is_told_in_one_sentence(
    shell: Shell, error: Exception, code: int
) -> None:
    def serve(_: Settings, __: Callable[[], Settings]) -> int:
        raise error

    result = Shell(config=shell.config, state=shell.state, serve=serve)("serve")
    assert result.exit_code == code
    assert result.stderr == f"hookbox: {error}\n"


def test_second_server_on_the_same_state_exits_75(serving: Shell) -> None:
    """The real one, as a second terminal would start it."""
    from hookbox.web.serve import serve

    result = Shell(config=serving.config, state=serving.state, serve=serve)("serve")
    assert result.exit_code == 75
    assert "in use by another hookbox" in result.stderr
