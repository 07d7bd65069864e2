"""The choice between asking the running server and taking its place."""

import http.client
import os
import re
from pathlib import Path

import pytest

from hookbox.cli import door
from hookbox.errors import OperatorError
from hookbox.store.lock import Lock
from hookbox.store.state import SOCKET_NAME
from tests.cli.shell import Shell, delivery
from tests.witness.client import SECRET
from tests.witness.server import Server


def test_change_reaches_the_running_server_at_once(serving: Shell) -> None:
    """No restart: the very next request is signed with it."""
    refused = serving("simulate", "sealed", "bounced", "--to", "ann@example.com")
    assert refused.exit_code == 1
    assert serving("secret", "set", "sealed", typed=SECRET).exit_code == 0
    accepted = serving("simulate", "sealed", "bounced", "--to", "ann@example.com")
    assert accepted.exit_code == 0, accepted.output


def test_decision_reaches_the_running_server(server: Server, serving: Shell) -> None:
    for key in ("a", "b"):
        rotten = delivery(key, body=b"{")
        connection = http.client.HTTPConnection("127.0.0.1", server.port)
        headers = {name.decode(): value.decode() for name, value in rotten.headers}
        connection.request("POST", "/hooks/std", rotten.body, headers)
        assert connection.getresponse().status == 200
        connection.close()
    assert serving("quarantine", "accept", "1", "--unread").exit_code == 0
    assert serving("quarantine", "discard", "2", "--reason", "a test").exit_code == 0
    assert serving("quarantine", "discard", "2", "--reason", "again").exit_code == 1
    resolutions = [e["resolution"] for e in serving.lines("quarantine", "list", "--all")]
    assert resolutions == ["accepted as event 1", "discarded: a test"]


def test_server_that_holds_the_lock_and_does_not_answer_exits_75(shell: Shell) -> None:
    """It is starting or stopping; writing beside it is out of the question."""
    shell.state.mkdir()
    lock = Lock(shell.state)
    lock.acquire()
    try:
        result = shell("secret", "set", "sealed", typed=SECRET)
    finally:
        lock.release()
    assert result.exit_code == 75
    assert str(os.getpid()) in result.stderr
    assert not (shell.state / "hookbox.db").exists()


def test_socket_that_a_killed_server_left_behind_is_no_server(shell: Shell) -> None:
    shell.state.mkdir()
    with door.socket.socket(door.socket.AF_UNIX) as left:
        left.bind(str(shell.state / SOCKET_NAME))
    assert shell("secret", "set", "sealed", typed=SECRET).exit_code == 0


def test_server_that_never_answers_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door, "ANSWER_MAX_S", 0.05)
    with door.socket.socket(door.socket.AF_UNIX) as mute:
        mute.bind(str(tmp_path / SOCKET_NAME))
        mute.listen()
        with pytest.raises(door.StoreBusy, match="did not answer"):
            door.ask(tmp_path, "flush", {})


def test_unknown_action_is_told_in_the_servers_words(serving: Shell) -> None:
    with pytest.raises(OperatorError, match="does not know 'dance'"):
        door.ask(serving.state, "dance", {})


def test_counts_are_fresh_while_the_server_runs(serving: Shell) -> None:
    """They are written once a minute; a person who looks gets them now."""
    serving("simulate", "std", "bounced", "--to", "ann@example.com")
    [std] = [line for line in serving.lines("secret", "list") if line["owner"] == "source.std"]
    assert std["accepted"] == 1
    told = serving("stats")
    assert re.search(r"^std +1 +0 ", told.stdout, re.MULTILINE)
    assert "no server is running" not in told.stderr
