"""`hookbox purge`, with and without a server."""

from hookbox.store import database
from tests.cli.shell import Shell, delivery
from tests.witness.server import Server

DAY_S = 86_400


def filled(shell: Shell) -> None:
    """Three events that are old in different ways, and one of today."""
    shell.receive(
        delivery("old", "email.complained", to="old@example.com", ago_s=100 * DAY_S),
        delivery("middling", to="mid@example.com", ago_s=40 * DAY_S),
        delivery("young", to="young@example.com", ago_s=DAY_S),
        delivery("today"),
    )


def contents(shell: Shell) -> dict[str, bool]:
    with database.reading(shell.state) as transaction:
        rows = transaction.execute("SELECT key, content IS NOT NULL AS there FROM events")
        return {row["key"]: bool(row["there"]) for row in rows}


LEFT = {"middling": False, "young": True, "today": True}


def test_what_is_old_enough_goes_and_suppressions_stay(shell: Shell) -> None:
    filled(shell)
    [told] = shell.lines("purge")
    assert (told["events"], told["bodies"]) == (1, 1)
    assert contents(shell) == LEFT
    assert shell("suppressions", "check", "old@example.com").exit_code == 3
    [story] = shell.lines("recipients", "show", "old@example.com")
    assert [row["status"] for row in story["statuses"]] == ["complained"]


def test_dry_run_says_so_and_changes_nothing(shell: Shell) -> None:
    filled(shell)
    [told] = shell.lines("purge", "--dry-run")
    assert (told["events"], told["bodies"], told["dry_run"]) == (1, 2, True)
    assert sorted(contents(shell).values()) == [True] * 4
    said = shell("purge", "--dry-run")
    assert "nothing was changed" in said.stderr
    assert "events, with their identity" in said.stdout


def test_nothing_old_is_no_failure(shell: Shell) -> None:
    shell.receive(delivery("today"))
    said = shell("purge")
    assert (said.exit_code, said.stdout) == (0, "")
    assert "nothing is old enough" in said.stderr


def test_running_server_purges_when_asked(server: Server, serving: Shell) -> None:
    assert server.terminate() == 0
    filled(serving)
    server.start()
    [told] = serving.lines("purge")
    assert (told["events"], told["bodies"]) == (1, 1)
    assert contents(serving) == LEFT
