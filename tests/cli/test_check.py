"""`hookbox check`: what it lets pass is what `serve` runs."""

import re
import stat

import pytest

from hookbox.store.secrets import KEY_NAME
from tests.cli.shell import CONFIG, Shell
from tests.witness.client import SECRET


def test_check_shows_what_is_in_force_and_no_secret(shell: Shell) -> None:
    shell("secret", "set", "sealed", typed=SECRET)
    result = shell("check")
    assert result.exit_code == 0, result.output
    assert re.search(r"^retention\.keys +90d$", result.stdout, re.MULTILINE)
    assert re.search(r"^source\.std\.secret +env:STD_SECRET$", result.stdout, re.MULTILINE)
    assert "can be used: 2 sources, 0 destinations" in result.stdout
    assert SECRET not in result.output


def test_check_says_which_source_lacks_its_secret(shell: Shell) -> None:
    result = shell("check")
    assert result.exit_code == 0
    assert "source sealed has no secret" in result.stderr
    assert "secret set sealed" in result.stderr


@pytest.mark.parametrize(
    ("text", "line", "reason", "mend"),
    [
        (f"{CONFIG}tolerence = '5m'\n", 7, "tolerence", "spelling"),
        ("[source.a]\nprovider = 'svx'\n", 2, "no provider is called 'svx'", "svix"),
        ("[server]\nlisten = 8080\n", 2, "8080 is not an address", "127.0.0.1:8080"),
        ("[retention]\nkeys = '1h'\nbodies = '1h'\n" + CONFIG, 2, "may send", '"76h" or more'),
        ("[source.a]\nprovider = 'svix'\nsecret = 'env:NOT_SET'\n", 3, "NOT_SET", "set it"),
        ("[source\n", 1, "not TOML", "quotes"),
        ("[destination.a]\ntype = 'http'\nurl = 'http://10.0.0.5/'\n", 3, "10.0.0.5", "networks"),
        ("[destination.a]\ntype = 'exec'\n", 1, "`command` is missing", "needs one"),
    ],
)
def test_check_names_line_reason_and_mend(
    shell: Shell, text: str, line: int, reason: str, mend: str
) -> None:
    shell.config.write_text(text)
    result = shell("check")
    assert result.exit_code == 78
    assert f"line {line}:" in result.stderr
    assert reason in result.stderr
    assert mend in result.stderr
    assert not result.stdout


def test_check_opens_sealed_secrets_as_serve_does(shell: Shell) -> None:
    """A key that does not fit the database must come to light before the next start."""
    shell("secret", "set", "sealed", typed=SECRET)
    (shell.state / KEY_NAME).unlink()
    result = shell("check")
    assert result.exit_code == 1
    assert KEY_NAME in result.stderr


def test_check_of_a_box_that_was_never_started_leaves_no_trace(shell: Shell) -> None:
    assert shell("check").exit_code == 0
    assert not shell.state.exists()


def test_literal_secret_is_refused_and_not_repeated(shell: Shell) -> None:
    shell.config.write_text(f"[source.a]\nprovider = 'svix'\nsecret = '{SECRET}'\n")
    result = shell("check")
    assert result.exit_code == 78
    assert SECRET not in result.output
    assert "secret set" in result.stderr


def test_init_writes_a_configuration_that_can_be_used(shell: Shell) -> None:
    shell.config.unlink()
    result = shell("init")
    assert result.exit_code == 0, result.output
    assert stat.S_IMODE(shell.config.stat().st_mode) == 0o600
    assert "serve" in result.stdout
    result = shell("check")
    assert result.exit_code == 0
    assert not result.stderr, "the demo source has a secret already"


def test_init_leaves_what_is_there(shell: Shell) -> None:
    result = shell("init")
    assert result.exit_code == 1
    assert shell.config.read_text() == CONFIG
    assert not shell.state.exists()


def test_init_beside_a_running_box_leaves_nothing_behind(serving: Shell) -> None:
    """It cannot keep the demo's secret there, and half a first run would look like a whole one."""
    other = serving.config.with_name("other.toml")
    result = Shell(config=other, state=serving.state)("init")
    assert result.exit_code == 75
    assert not other.exists()


def test_check_warns_of_a_command_that_is_not_there(shell: Shell) -> None:
    text = '[destination.a]\ntype = "exec"\ncommand = "/nowhere/on-event"\n'
    shell.config.write_text(shell.config.read_text() + text)
    result = shell("check")
    assert result.exit_code == 0, result.output
    assert "destination a: /nowhere/on-event is not there" in result.stderr
    assert "2 sources, 1 destination\n" in result.stdout


def test_check_needs_no_secret_that_will_be_made(shell: Shell) -> None:
    text = '[destination.a]\ntype = "http"\nurl = "http://127.0.0.1:3000/in"\n'
    shell.config.write_text(text)
    assert shell("check").exit_code == 0
    assert not shell.state.exists()
