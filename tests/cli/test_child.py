"""The command that `hookbox once` runs has everything as if it had been started by itself."""

import os
import shlex
import signal
import subprocess
from pathlib import Path

import pytest

from tests.cli.once import begun, once, state, words
from tests.cli.shell import Shell


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_request_to_stop_is_for_the_command(
    stopped: Shell, tmp_path: Path, key: str, number: signal.Signals
) -> None:
    """It may finish, give up, or die of it; here it finishes."""
    name, fifo = number.name.removeprefix("SIG"), tmp_path / "fifo"
    os.mkfifo(fifo)
    script = f"trap 'echo stopped; exit 0' {name}; echo ready; while :; do read x < {fifo}; done"
    with begun(stopped, key, "--", "sh", "-c", script) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "ready\n"
        running.send_signal(number)
        assert running.stdout.read() == "stopped\n"
    assert running.returncode == 0
    assert state(stopped, key)["outcome"] == "done"


def test_signal_that_kills_the_command_is_told_as_shells_do(stopped: Shell, key: str) -> None:
    with begun(stopped, key, "--", "sh", "-c", "echo ready; exec sleep 60") as running:
        assert running.stdout is not None
        running.stdout.readline()
        running.terminate()
        assert "may have happened" in running.communicate()[1]
    assert running.returncode == 128 + signal.SIGTERM
    assert state(stopped, key)["outcome"] == "in_progress"


def test_reader_that_leaves_early_does_not_stop_the_command(
    stopped: Shell, tmp_path: Path, key: str
) -> None:
    place = tmp_path / "sent"
    with begun(
        stopped, key, "--", "sh", "-c", f"yes | head -c 500000; echo x > {place}"
    ) as running:
        assert running.stdout is not None
        running.stdout.readline()
        running.stdout.close()
        assert running.wait() == 0
    assert place.read_text() == "x\n"


@pytest.mark.parametrize("place", [">&-", "> /dev/full"])
def test_output_that_cannot_be_written_does_not_stop_the_command(
    stopped: Shell, key: str, place: str
) -> None:
    typed = " ".join(shlex.quote(word) for word in words(stopped, key, "--", "echo", "message 7"))
    assert subprocess.run(["/bin/sh", "-c", f"{typed} {place}"]).returncode == 0
    assert state(stopped, key)["result"] == "message 7\n"


def test_child_left_behind_is_not_waited_for(stopped: Shell, key: str) -> None:
    """A daemon that the command starts keeps its output open."""
    ended = once(stopped, key, "--", "sh", "-c", "sleep 60 2>&- & echo $!")
    assert ended.returncode == 0
    os.kill(int(ended.stdout), signal.SIGKILL)


def test_command_has_our_input_and_a_default_sigpipe(stopped: Shell, key: str) -> None:
    ended = once(stopped, key, "--", "sh", "-c", "yes | head -1; cat", input="given\n")
    assert (ended.stdout, ended.stderr) == ("y\ngiven\n", "")
