"""`hookbox simulate`, through a real server's real HTTP path."""

import re
import stat
from pathlib import Path

import pytest

from hookbox.cli import door
from hookbox.flows.signer import KEY_FILE
from tests.cli.shell import Shell
from tests.witness.server import Server


def test_simulated_event_is_followed_to_its_end(serving: Shell) -> None:
    result = serving("simulate", "std", "bounced", "--to", "Someone@example.com")
    assert result.exit_code == 0, result.output
    assert re.fullmatch(
        r"verified by the current secret\n"
        r"stored as event 1\n"
        r"acknowledged in \d+ ms \(200\)\n"
        r"applied: Someone@example\.com bounced \(hard\)( → .+)?\n",
        result.stdout,
    )
    [event] = serving.lines("events", "list")
    assert (event["via"], event["state"], event["recipient"]) == (
        "simulate",
        "applied",
        "Someone@example.com",
    )


def test_simulated_event_goes_through_a_unix_socket_too(tmp_path: Path) -> None:
    listen = tmp_path / "hooks.sock"
    server = Behind(tmp_path / "state", listen)
    with server:
        shell = Shell(config=server.config, state=server.state)
        result = shell("simulate", "std", "opened", "--to", "ann@example.com")
    assert result.exit_code == 0, result.output
    assert "applied: ann@example.com opened" in result.stdout


class Behind(Server):
    """A server that listens on a Unix socket, as behind a proxy."""

    def __init__(self, state: Path, listen: Path) -> None:
        super().__init__(state)
        self._listen = listen

    def _config_text(self) -> str:
        return super()._config_text().replace(f"127.0.0.1:{self.port}", f"unix:{self._listen}")

    def ready(self) -> bool:
        return self._listen.is_socket() and door.ask(self.state, "flush", {}) is not None


BOUNCED = r"applied: x@example\.com bounced \(hard\) → .+\n"


def test_sender_with_a_key_of_its_own_is_simulated_with_a_made_pair(tmp_path: Path) -> None:
    """The private half stays in the sealed store, and nobody sees it."""
    with Server(tmp_path / "state", settings='[source.sg]\nprovider = "sendgrid"\n') as server:
        shell = Shell(config=server.config, state=server.state)
        made = shell("secret", "set", "sg", "--generate")
        assert made.exit_code == 0, made.output
        assert "PRIVATE KEY" not in made.output
        told = shell("simulate", "sg", "bounced", "--to", "x@example.com")
    assert told.exit_code == 0, told.output
    assert re.search(BOUNCED, told.stdout)


def test_sender_with_a_certificate_is_simulated_with_one_made_here(tmp_path: Path) -> None:
    directory = tmp_path / "certificates"
    settings = (
        '[source.ses-test]\nprovider = "ses"\n'
        'topics = ["arn:aws:sns:eu-west-1:123456789012:test"]\n'
        f'certificates = "{directory}"\n'
    )
    simulate = ("simulate", "ses-test", "bounced", "--to", "x@example.com")
    with Server(tmp_path / "state", settings=settings) as server:
        shell = Shell(config=server.config, state=server.state)
        assert "hookbox source test-certificate NAME" in shell(*simulate).stderr
        made = shell("source", "test-certificate", "ses-test")
        assert made.exit_code == 0, made.output
        told = shell(*simulate)
        key_file = directory / KEY_FILE
        assert stat.S_IMODE(key_file.stat().st_mode) == 0o600
        key_file.write_text("no key")
        assert f"{key_file} cannot be used" in shell(*simulate).stderr
    assert told.exit_code == 0, told.output
    assert told.stdout.startswith("verified by the certificate\n")
    assert re.search(BOUNCED, told.stdout)


def test_certificate_is_made_only_where_it_would_be_believed(shell: Shell) -> None:
    amazon = '\n[source.ses]\nprovider = "ses"\ntopics = ["arn:aws:sns:eu-west-1:123456789012:t"]\n'
    shell.config.write_text(shell.config.read_text() + amazon)
    for source, told in (("std", "without certificates"), ("ses", "believes no others")):
        result = shell("source", "test-certificate", source)
        assert result.exit_code == 1
        assert told in result.stderr


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("shop", "bounced"), "no source is called 'shop'"),
        (("sealed", "bounced"), "secret"),
    ],
)
def test_what_cannot_be_simulated_exits_1_and_says_why(
    serving: Shell, words: tuple[str, str], expected: str
) -> None:
    result = serving("simulate", *words, "--to", "ann@example.com")
    assert result.exit_code == 1
    assert expected in result.stderr


def test_without_a_server_it_says_how_to_start_one(shell: Shell) -> None:
    result = shell("simulate", "std", "bounced", "--to", "ann@example.com")
    assert result.exit_code == 1
    assert "serve" in result.stderr
