"""`hookbox simulate`, through a real server's real HTTP path."""

import re
from pathlib import Path

import pytest

from hookbox.cli import door
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
