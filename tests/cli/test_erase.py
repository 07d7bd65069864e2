"""`hookbox recipients erase`, with and without a server."""

import json

import pytest

from hookbox.cli.door import SOCKET_NAME, SocketConnection
from hookbox.store import database
from tests.cli.shell import Shell, delivery
from tests.witness.server import Server

WHY = ("--reason", "asked us to")


def left(shell: Shell) -> list[str]:
    files = [each for each in shell.state.iterdir() if each.is_file()]
    return [each.name for each in files if b"ann@example.com" in each.read_bytes().lower()]


def filled(shell: Shell) -> None:
    shell.receive(
        delivery("a", "email.complained", to="Ann@example.com"),
        delivery("b", to="bob@example.com"),
        delivery("c", "email.complained", to="bob@example.com"),
    )


def is_forgotten_but_suppressed(shell: Shell) -> None:
    assert left(shell) == []
    assert shell("suppressions", "check", "ANN@example.com").exit_code == 3
    assert shell("suppressions", "check", "joann@example.com").exit_code == 0
    [story] = shell.lines("recipients", "show", "ann@example.com")
    assert (story["suppressed"], story["reason"]) == (True, "complaint")
    assert (story["timeline"], story["statuses"]) == ([], [])


def may_be_mailed(shell: Shell, address: str) -> bool:
    """As a program asks the running server."""
    connection = SocketConnection(shell.state / SOCKET_NAME, 5)
    connection.request("GET", f"/v1/can-send?to={address}")
    [told] = json.loads(connection.getresponse().read())["data"]
    connection.close()
    return bool(told["can_send"])


def test_erased_address_must_not_be_mailed(shell: Shell) -> None:
    filled(shell)
    done = shell("recipients", "erase", "ann@example.com", *WHY)
    assert done.exit_code == 0, done.output
    assert "ann@" not in done.output
    is_forgotten_but_suppressed(shell)


def test_rebuild_afterwards_finds_no_difference(shell: Shell) -> None:
    filled(shell)
    shell("recipients", "erase", "ann@example.com", *WHY)
    done = shell("rebuild", "--dry-run")
    assert "everything is as it would be worked out today" in done.stderr


def test_running_server_erases_and_answers_so(server: Server, serving: Shell) -> None:
    assert server.terminate() == 0
    filled(serving)
    server.start()
    [done] = serving.lines("recipients", "erase", "ann@example.com", *WHY)
    assert (done["pending"], done["folded"]) == (0, True)
    is_forgotten_but_suppressed(serving)
    assert not may_be_mailed(serving, "ann@example.com")
    assert may_be_mailed(serving, "joann@example.com")
    lift = serving("suppressions", "lift", "ann@example.com", "--reason", "wrote to us")
    assert lift.exit_code == 0, lift.output
    assert may_be_mailed(serving, "ann@example.com")


def test_reason_is_asked_for(shell: Shell) -> None:
    assert shell("recipients", "erase", "ann@example.com").exit_code == 2


def test_what_is_no_address_is_refused(shell: Shell) -> None:
    filled(shell)
    done = shell("recipients", "erase", "everybody", *WHY)
    assert (done.exit_code, "not an address" in done.stderr) == (1, True)


def test_list_for_others_leaves_erased_ones_out(shell: Shell) -> None:
    filled(shell)
    shell("recipients", "erase", "ann@example.com", *WHY)
    assert [row["address"] for row in shell.lines("suppressions", "export")] == ["bob@example.com"]
    assert "1 left out" in shell("suppressions", "export").stderr


def test_key_of_the_names_is_nothing_to_be_dropped(shell: Shell) -> None:
    filled(shell)
    shell("recipients", "erase", "ann@example.com", *WHY)
    assert "erasure" not in shell("secret", "list").output


@pytest.mark.parametrize("command", [["suppressions", "check"], ["recipients", "show"]])
def test_without_the_key_nobody_is_told_that_they_may_be_mailed(
    shell: Shell, command: list[str]
) -> None:
    filled(shell)
    shell("recipients", "erase", "ann@example.com", *WHY)
    (shell.state / "hookbox.key").unlink()
    done = shell(*command, "ann@example.com")
    assert (done.exit_code, "hookbox.key is missing" in done.stderr) == (1, True)
    with database.reading(shell.state) as transaction:
        assert transaction.execute("SELECT count(*) FROM secret").fetchone()[0] == 1
