"""`hookbox secret`: never an argument, never shown, and refused where it could prove nothing."""

import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable

import pytest

from hookbox.cli import door
from hookbox.cli.slots import when_to_drop
from hookbox.flows.receive import Outcome
from hookbox.store.views import Line, iso
from tests.cli.shell import Shell, delivery
from tests.witness.client import SECRET, SECRET_BYTES

OTHER_BYTES = b"another secret of thirty-two byt"
OTHER = "whsec_YW5vdGhlciBzZWNyZXQgb2YgdGhpcnR5LXR3byBieXQ="


def held(shell: Shell) -> dict[str, Line]:
    """The slots of the `sealed` source."""
    lines = shell.lines("secret", "list")
    return {line["slot"]: line for line in lines if line["owner"] == "source.sealed"}


def proves(shell: Shell, key: str, secret: bytes) -> bool:
    outcomes = shell.receive(delivery(key, source="sealed", signed=secret))
    return outcomes == [Outcome.ACCEPTED]


def test_secret_is_read_from_standard_input_and_proves(shell: Shell) -> None:
    assert not proves(shell, "a", SECRET_BYTES)
    result = shell("secret", "set", "sealed", typed=f"{SECRET}\n")
    assert result.exit_code == 0, result.output
    assert SECRET not in result.output
    assert proves(shell, "b", SECRET_BYTES)


@pytest.mark.parametrize("verb", ["set", "rotate"])
def test_secret_never_accepted_as_argument(shell: Shell, verb: str) -> None:
    result = shell("secret", verb, "sealed", SECRET, typed="")
    assert result.exit_code == 2
    assert "as an argument" in result.stderr
    assert SECRET not in result.output
    assert not shell.state.exists()


def test_secret_in_a_setting_is_refused_and_not_repeated(shell: Shell) -> None:
    before = shell.config.read_text()
    result = shell("source", "add", "shop", "svix", "--set", f"secret={SECRET}")
    assert result.exit_code == 1
    assert SECRET not in result.output
    assert shell.config.read_text() == before


@pytest.mark.parametrize(
    "typed",
    ["", "\n", "  \t\n", "whsec_\n", "whsec_c2hvcnQ=", "whsec_!!!", "whsk_" + "A" * 44, "\x00"],
)
@pytest.mark.parametrize("verb", ["set", "rotate"])
def test_secret_that_proves_nothing_is_refused(shell: Shell, verb: str, typed: str) -> None:
    assert shell("secret", "set", "sealed", typed=SECRET).exit_code == 0
    result = shell("secret", verb, "sealed", typed=typed)
    assert result.exit_code == 1
    assert "stays as it is" in result.stderr
    assert list(held(shell)) == ["current"]
    assert proves(shell, "a", SECRET_BYTES)


@pytest.mark.parametrize("typed", [b"\xff\xfe", b"a" * 70_000], ids=["no text", "a log"])
def test_what_is_no_secret_at_all_is_refused(shell: Shell, typed: bytes) -> None:
    assert shell("secret", "set", "sealed", typed=typed).exit_code == 1


def test_rotated_secret_proves_beside_the_old_one(shell: Shell) -> None:
    shell("secret", "set", "sealed", typed=SECRET)
    assert shell("secret", "rotate", "sealed", typed=OTHER).exit_code == 0
    assert proves(shell, "a", SECRET_BYTES)
    assert proves(shell, "b", OTHER_BYTES)
    assert [(slot, line["accepted"]) for slot, line in held(shell).items()] == [
        ("current", 1),
        ("previous", 1),
    ]
    assert shell("secret", "drop", "sealed").exit_code == 0
    assert not proves(shell, "c", SECRET_BYTES)
    assert proves(shell, "d", OTHER_BYTES)


def test_rotating_again_does_not_silently_forget_what_may_still_be_needed(shell: Shell) -> None:
    shell("secret", "set", "sealed", typed=SECRET)
    shell("secret", "rotate", "sealed", typed=OTHER)
    again = shell("secret", "rotate", "sealed", typed=SECRET)
    assert again.exit_code == 1
    assert "keep it for another" in again.stderr
    assert shell("secret", "rotate", "sealed", "--force", typed=SECRET).exit_code == 0


def test_rotating_without_a_secret_exits_1(shell: Shell) -> None:
    assert shell("secret", "rotate", "sealed", typed=SECRET).exit_code == 1


def test_dropping_what_is_not_there_exits_1(shell: Shell) -> None:
    shell("secret", "set", "sealed", typed=SECRET)
    assert shell("secret", "drop", "sealed").exit_code == 1
    assert shell("secret", "drop", "sealed", "--slot", "current").exit_code == 0


def test_generated_secret_is_the_whole_output(shell: Shell) -> None:
    """So that it can be piped to where the sender reads it."""
    made = shell("secret", "set", "sealed", "--generate").stdout
    assert re.fullmatch(r"whsec_[A-Za-z0-9+/=]{40,}\n", made)


def test_secret_that_the_configuration_refers_to_is_not_set_beside_it(shell: Shell) -> None:
    result = shell("secret", "set", "std", typed=OTHER)
    assert result.exit_code == 1
    assert "env:STD_SECRET" in result.stderr


def test_unknown_source_exits_1_and_names_the_known_ones(shell: Shell) -> None:
    result = shell("secret", "set", "shop", typed=SECRET)
    assert result.exit_code == 1
    assert "sealed, std" in result.stderr


def test_list_says_where_secrets_lie_and_never_what_they_are(shell: Shell) -> None:
    result = shell("secret")
    assert re.search(r"^source\.std +current +env:STD_SECRET ", result.stdout, re.MULTILINE)
    assert re.search(r"^source\.sealed +current +missing ", result.stdout, re.MULTILINE)
    assert "hookbox secret set sealed" in result.stdout
    shell("secret", "set", "sealed", typed=OTHER)
    result = shell("secret")
    assert re.search(r"^source\.sealed +current +sealed store +20", result.stdout, re.MULTILINE)
    assert SECRET not in result.output
    assert OTHER not in result.output


def test_secret_of_a_removed_source_is_still_listed(shell: Shell) -> None:
    shell("secret", "set", "sealed", typed=SECRET)
    shell.config.write_text("")
    assert "nothing in the configuration uses it" in shell("secret").stdout


DESTINATIONS = """
[destination.app]
type = "http"
url = "http://127.0.0.1:3000/in"

[destination.ref]
type = "http"
url = "http://127.0.0.1:3001/in"
secret = "env:STD_SECRET"

[destination.script]
type = "exec"
command = "true"
"""


@pytest.fixture
def sending(shell: Shell) -> Shell:
    """A box with destinations that was never started."""
    shell.config.write_text(shell.config.read_text() + DESTINATIONS)
    return shell


def slots_of(shell: Shell, owner: str) -> dict[str, Line]:
    lines = shell.lines("secret", "list")
    return {line["slot"]: line for line in lines if line["owner"] == owner}


def test_secret_of_a_destination_is_revealed_alone(sending: Shell) -> None:
    """The receiving program needs it."""
    assert sending("secret", "set", "app", "--destination", typed=OTHER).exit_code == 0
    result = sending("secret", "reveal", "app")
    assert (result.exit_code, result.stdout, result.stderr) == (0, f"{OTHER}\n", "")
    assert sending("secret", "reveal", "ref").stdout == f"{SECRET}\n"


def test_secret_of_a_destination_that_was_never_served_is_not_there_yet(sending: Shell) -> None:
    result = sending("secret", "reveal", "app")
    assert result.exit_code == 1
    assert "made when the server starts" in result.stderr
    assert not sending.state.exists()


@pytest.mark.parametrize("name", ["std", "sealed", "nobody"])
def test_secret_of_a_source_is_never_revealed(sending: Shell, name: str) -> None:
    sending("secret", "set", "sealed", typed=OTHER)
    result = sending("secret", "reveal", name)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert "there are: app, ref, script" in result.stderr


def test_destination_that_signs_nothing_has_no_secret(sending: Shell) -> None:
    for words in (("reveal", "script"), ("set", "script", "--destination")):
        result = sending("secret", *words, typed=OTHER)
        assert result.exit_code == 1
        assert "signs nothing" in result.stderr
    assert slots_of(sending, "destination.script") == {}


def test_destination_that_is_taken_for_a_source_is_known(sending: Shell) -> None:
    result = sending("secret", "rotate", "app", typed=OTHER)
    assert result.exit_code == 1
    assert "add --destination" in result.stderr


def test_rotated_secret_of_a_destination_keeps_the_old_one(sending: Shell) -> None:
    sending("secret", "set", "app", "--destination", typed=OTHER)
    made = sending("secret", "rotate", "app", "--destination", "--generate").stdout
    assert re.fullmatch(r"whsec_[A-Za-z0-9+/=]{40,}\n", made)
    assert sending("secret", "reveal", "app").stdout == made
    found = slots_of(sending, "destination.app")
    assert list(found) == ["current", "previous"]
    assert "until the receiving program has the new one" in str(found["previous"]["advice"])
    again = sending("secret", "rotate", "app", "--destination", "--generate")
    assert again.exit_code == 1
    assert "--force" in again.stderr
    assert sending("secret", "drop", "app", "--destination").exit_code == 0
    assert list(slots_of(sending, "destination.app")) == ["current"]


@pytest.mark.parametrize("typed", ["", "short", "whsec_c2hvcnQ=", "whpk_" + "A" * 44])
def test_unusable_secret_of_a_destination_is_refused(sending: Shell, typed: str) -> None:
    result = sending("secret", "set", "app", "--destination", typed=typed)
    assert result.exit_code == 1
    assert "stays as it is" in result.stderr
    assert not typed or typed not in result.output


def test_source_and_destination_of_one_name_have_their_own_secrets(sending: Shell) -> None:
    sending.config.write_text(
        sending.config.read_text().replace("destination.app", "destination.sealed")
    )
    sending("secret", "set", "sealed", typed=SECRET)
    sending("secret", "set", "sealed", "--destination", typed=OTHER)
    assert sending("secret", "reveal", "sealed").stdout == f"{OTHER}\n"
    assert proves(sending, "a", SECRET_BYTES)


def test_list_says_where_secrets_of_destinations_lie(sending: Shell) -> None:
    found = slots_of(sending, "destination.app")["current"]
    assert (found["kept"], found["advice"]) == ("missing", "it is made when the server starts")
    assert slots_of(sending, "destination.ref")["current"]["kept"] == "env:STD_SECRET"


def test_running_server_takes_secrets_of_destinations(serving: Shell) -> None:
    serving.config.write_text(serving.config.read_text() + DESTINATIONS)
    assert door.ask(serving.state, "reload", {}) is not None
    first = serving("secret", "reveal", "app").stdout
    assert first.startswith("whsec_")
    assert serving("secret", "rotate", "app", "--destination", typed=OTHER).exit_code == 0
    assert serving("secret", "reveal", "app").stdout == f"{OTHER}\n"
    result = serving("secret", "drop", "nobody", "--destination")
    assert result.exit_code == 1


NOW = 1_800_000_000_000
HOUR_MS = 3_600_000


@pytest.mark.parametrize(
    ("set_ago_h", "used_ago_h", "expected"),
    [
        (25, None, "safe to drop: no delivery has needed it for 25 h"),
        (23, None, "keep it for another 60 min"),
        (72, 1, "keep it for another 23 h"),
        (72, 48, "safe to drop: no delivery has needed it for 2 d"),
        (None, 30, "safe to drop"),
        (None, None, "not used so far"),
    ],
)
def test_previous_secret_may_go_once_no_retry_can_carry_it(
    set_ago_h: int | None, used_ago_h: int | None, expected: str
) -> None:
    """A retry horizon (24 h here) after the change, and after the last delivery that needed it."""

    def ago(hours: int | None) -> str | None:
        return None if hours is None else iso(NOW - hours * HOUR_MS)

    current: Line = {"set_at": ago(set_ago_h)}
    previous: Line = {"last_used_at": ago(used_ago_h)}
    assert when_to_drop(current, previous, 24 * 3600, NOW).startswith(expected)


def test_secret_typed_at_a_terminal_is_not_echoed(shell: Shell) -> None:
    """On a real pseudo-terminal, with the program as it is installed."""
    outer, inner = pty.openpty()
    command = [sys.executable, "-m", "hookbox", "--config", str(shell.config)]
    command += ["--state", str(shell.state), "secret", "set", "sealed"]
    child = subprocess.Popen(
        command, stdin=inner, stdout=inner, stderr=inner, start_new_session=True
    )
    os.close(inner)
    shown = read_until(outer, lambda text: b"secret of sealed" in text)
    os.write(outer, f"{SECRET}\n".encode())
    shown += read_until(outer, lambda text: b"is set" in text)
    assert child.wait() == 0, shown
    os.close(outer)
    assert SECRET.encode() not in shown
    assert proves(shell, "a", SECRET_BYTES)


def read_until(terminal: int, enough: Callable[[bytes], bool]) -> bytes:
    shown = b""
    while not enough(shown):
        shown += os.read(terminal, 1024)
    return shown
