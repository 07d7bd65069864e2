"""`hookbox events tail`, beside a server that is there, goes away and comes back."""

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import IO

import pytest

from tests.cli.shell import Shell
from tests.serve.test_feed import send, settled
from tests.witness.server import Server

PATIENCE_S = 20


class Typed:
    """The command as a person has it running in a terminal of their own."""

    def __init__(self, shell: Shell, *words: str) -> None:
        files = ("--config", str(shell.config), "--state", str(shell.state))
        self.running = subprocess.Popen(
            [sys.executable, "-m", "hookbox", *files, "events", "tail", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "COLUMNS": "200"},
        )
        self._reading: list[threading.Thread] = []
        self.told, self.said = self._lines(self.running.stdout), self._lines(self.running.stderr)

    def _lines(self, stream: IO[str] | None) -> "queue.Queue[str]":
        """What comes out, as it does."""
        assert stream is not None
        lines: queue.Queue[str] = queue.Queue()

        def read() -> None:
            with stream:
                for line in stream:
                    lines.put(line)

        self._reading.append(threading.Thread(target=read))
        self._reading[-1].start()
        return lines

    def close(self) -> None:
        self.running.kill()
        self.running.wait(PATIENCE_S)
        for thread in self._reading:
            thread.join()

    def line(self) -> str:
        return self.told.get(timeout=PATIENCE_S).rstrip("\n")

    def interrupt(self) -> int:
        self.running.send_signal(signal.SIGINT)
        return self.running.wait(PATIENCE_S)


@contextlib.contextmanager
def typed(shell: Shell, *words: str) -> Iterator[Typed]:
    command = Typed(shell, *words)
    try:
        yield command
    finally:
        command.close()


def test_events_come_as_lines_until_it_is_interrupted(serving: Shell, server: Server) -> None:
    send(server, "a")
    settled(server, 1)
    with typed(serving, "--after", "0") as tail:
        assert tail.line().split()[:4] == ["ID", "RECEIVED", "SOURCE", "KIND"]
        assert "ann@example.com" in tail.line()
        send(server, "b", kind="bounced")
        assert tail.line().split()[0] == "2"
        assert tail.interrupt() == 0
        assert tail.said.empty()


def test_kinds_and_json_are_as_asked_for(serving: Shell, server: Server) -> None:
    send(server, "a")
    send(server, "b", kind="bounced")
    with typed(serving, "--after", "0", "--kind", "bounced", "--kind", "opened", "--json") as tail:
        event = json.loads(tail.line())
    assert (event["id"], event["kind"]) == (2, "bounced")
    assert event["notifications"][0]["recipient"] == "ann@example.com"


def test_restart_of_the_server_is_told_and_costs_no_event(serving: Shell, server: Server) -> None:
    with typed(serving, "--after", "0", "--json") as tail:
        send(server, "a")
        assert json.loads(tail.line())["id"] == 1
        server.terminate()
        assert "gone" in tail.said.get(timeout=PATIENCE_S)
        server.start()
        send(server, "b")
        assert json.loads(tail.line())["id"] == 2
        assert "back" in tail.said.get(timeout=PATIENCE_S)
        server.kill()
        assert "after event 2" in tail.said.get(timeout=PATIENCE_S)
        assert tail.interrupt() == 0


def test_no_server_is_told_at_once(shell: Shell) -> None:
    result = shell("events", "tail")
    assert result.exit_code == 1
    assert "hookbox serve" in result.stderr
    assert not result.stdout


@pytest.mark.parametrize("words", [("--after", "-1"), ("--kind", "bounce"), ("--after", "x")])
def test_what_cannot_be_meant_is_wrong_usage(shell: Shell, words: tuple[str, str]) -> None:
    assert shell("events", "tail", *words).exit_code == 2
