"""`hookbox once`: a command runs under a claim, and its end says whether the effect happened."""

import json
import signal
import subprocess
from pathlib import Path

import pytest

from tests.cli.once import begun, once, state
from tests.cli.shell import Shell


def test_second_call_prints_the_first_ones_output_and_runs_nothing(
    box: Shell, tmp_path: Path, key: str
) -> None:
    place = tmp_path / "sent"
    send = f"echo x >> {place}; echo message 7; echo noise >&2"
    first = once(box, key, "--", "sh", "-c", send)
    assert (first.returncode, first.stdout, first.stderr) == (0, "message 7\n", "noise\n")
    second = once(box, key, "--", "sh", "-c", send)
    assert (second.returncode, second.stdout, second.stderr) == (0, "message 7\n", "")
    assert place.read_text() == "x\n"
    assert state(box, key)["result"] == "message 7\n"


@pytest.mark.parametrize("code", [1, 3, 75, 78, 255])
def test_command_that_fails_gives_the_claim_up_and_its_code_is_handed_on(
    box: Shell, code: int, key: str
) -> None:
    failed = once(box, key, "--", "sh", "-c", f"echo so far; exit {code}")
    assert (failed.returncode, failed.stdout) == (code, "so far\n")
    assert "did not happen" in failed.stderr
    assert box("once", "--show", key).exit_code == 1
    assert once(box, key, "--", "true").returncode == 0


@pytest.mark.parametrize(
    ("command", "code"), [("no-such-command", 127), ("/etc/passwd", 126), ("", 127)]
)
def test_command_that_cannot_be_started_did_not_happen(
    stopped: Shell, command: str, code: int, key: str
) -> None:
    assert once(stopped, key, "--", command).returncode == code
    assert once(stopped, key, "--", "true").returncode == 0


def test_command_that_is_killed_leaves_an_unknown_effect(box: Shell, key: str) -> None:
    killed = once(box, key, "--lease", "1s", "--", "sh", "-c", "kill -9 $$")
    assert killed.returncode == 128 + signal.SIGKILL
    assert "may have happened" in killed.stderr
    assert "when its lease is over" in killed.stderr
    again = once(box, key, "--", "true")
    while again.returncode == 75:  # a second, in which others wait for a word from it
        assert "in progress" in again.stderr
        again = once(box, key, "--", "true")
    assert again.returncode == 1
    for verdict in ("done", "undone"):
        assert f" once --settle {verdict} '{key}' --reason WHY\n" in again.stderr
    assert "--if-unknown retry" in again.stderr
    assert state(box, key)["outcome"] == "unknown"
    retried = once(box, key, "--if-unknown", "retry", "--json", "--", "echo", "twice then")
    told = json.loads(retried.stdout)
    assert (told["outcome"], told["result"], told["has_run"]) == ("done", "twice then\n", True)


@pytest.mark.parametrize(("verdict", "runs"), [("done", False), ("undone", True)])
def test_person_settles_what_is_unknown(box: Shell, verdict: str, runs: bool, key: str) -> None:
    once(box, key, "--lease", "1s", "--", "sh", "-c", "kill -9 $$")
    settle = ("once", "--settle", verdict, key, "--reason", "saw the sent folder")
    while box(*settle).exit_code:  # in progress, for a second
        pass
    assert once(box, key, "--", "echo", "ran").stdout == ("ran\n" if runs else "")
    assert box(*settle).exit_code == 1


def test_result_is_shown_where_there_is_one(box: Shell, key: str) -> None:
    """A person who settles knows of none."""
    once(box, key, "--lease", "1s", "--", "sh", "-c", "kill -9 $$")
    while box("once", "--settle", "done", key, "--reason", "saw it").exit_code:
        pass
    assert "Result" not in box("once", "--show", key).stdout
    once(box, f"{key}-2", "--", "echo", "message 7")
    assert box("once", "--show", f"{key}-2").stdout.endswith("\nResult\nmessage 7\n")


def test_what_is_in_progress_says_who_and_until_when(box: Shell, key: str) -> None:
    wait = ("sh", "-c", "echo go; read x")
    with begun(box, key, "--who", "the mailer", "--", *wait, stdin=subprocess.PIPE) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "go\n"
        second = once(box, key, "--", "true")
        assert second.returncode == 75
        assert "the mailer" in second.stderr
        assert state(box, key)["lease_until"]
        first.communicate("\n")


def test_holder_that_was_too_slow_is_told_that_its_claim_is_gone(box: Shell, key: str) -> None:
    """It stood still until somebody who would rather do it twice took over."""
    wait = ("sh", "-c", "echo go; read x")
    with begun(box, key, "--lease", "1s", "--", *wait, stdin=subprocess.PIPE) as slow:
        assert slow.stdout is not None
        assert slow.stdout.readline() == "go\n"
        slow.send_signal(signal.SIGSTOP)
        while state(box, key)["outcome"] == "in_progress":
            pass
        retried = once(box, key, "--if-unknown", "retry", "--", "echo", "mine")
        assert retried.returncode == 0
        slow.send_signal(signal.SIGCONT)
        _, errors = slow.communicate("\n")
    assert slow.returncode == 1
    assert "no longer its own" in errors
    assert state(box, key)["result"] == "mine\n"


def test_lease_is_renewed_while_the_command_runs(box: Shell, tmp_path: Path, key: str) -> None:
    """For longer than it is, and though nobody reads the output."""
    noise = "yes | head -c 300000; while kill -0 $PPID && [ ! -e go ]; do :; done"
    long = ("sh", "-c", f"cd {tmp_path}; {noise}")
    with begun(box, key, "--lease", "1s", "--", *long) as running:
        while box("once", "--show", key).exit_code:
            pass
        leases = set[str]()
        while len(leases) < 5:
            leases.add(state(box, key)["lease_until"])
            assert state(box, key)["outcome"] == "in_progress"
        (tmp_path / "go").touch()
        output, _ = running.communicate()
    assert running.returncode == 0
    assert len(output) == 300_000
    assert len(state(box, key)["result"]) == 65_536


@pytest.mark.parametrize(
    "wrong",
    [
        (),
        ("k",),
        ("", "--", "true"),
        ("k" * 201, "--", "true"),
        ("a\nb", "--", "true"),
        ("k", "--lease", "2d", "--", "true"),
        ("k", "--lease", "soon", "--", "true"),
        ("k", "--if-unknown", "hope", "--", "true"),
        ("k", "--show", "--", "true"),
        ("k", "--settle", "done"),
        ("k", "--settle", "done", "--reason", " "),
        ("k", "--reason", "why", "--", "true"),
    ],
)
def test_wrong_usage_claims_nothing(stopped: Shell, wrong: tuple[str, ...]) -> None:
    assert stopped("once", *wrong).exit_code == 2
    assert stopped("once", "--show", "k").exit_code == 1


def test_ledger_is_not_made_where_there_is_no_box(shell: Shell) -> None:
    """In a wrong place it would let everything happen again."""
    result = shell("once", "k", "--", "true")
    assert result.exit_code == 1
    assert "--state" in result.stderr
    assert not shell.state.exists()
