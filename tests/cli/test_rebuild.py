"""`hookbox rebuild`, with the server stopped or running."""

import http.client
import itertools
import json
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

from hookbox.assembly import fingerprint
from hookbox.cli import door
from hookbox.errors import OperatorError
from hookbox.settings import load
from hookbox.store import database
from tests.cli.shell import Shell, delivery
from tests.witness.server import Server

ANN = "ann@example.com"

# As if the provider had been misread when these were applied.
DAMAGE = """
UPDATE status SET rank = 20, kind = 'sent';
UPDATE notification SET kind = 'sent', effect = 'status sent';
DELETE FROM suppression_cause;
DELETE FROM suppression;
"""
INVENT = """
UPDATE delivery SET body = CAST(replace(CAST(body AS TEXT), 'complained', 'delivered') AS BLOB);
"""


def change(shell: Shell, script: str) -> None:
    """Behind the box's back, while it is stopped."""
    with database.exclusive(shell.state) as run:
        for statement in filter(str.strip, script.split(";")):
            run(lambda transaction, statement=statement: transaction.execute(statement))


@pytest.fixture
def filled(shell: Shell) -> Shell:
    shell.receive(
        delivery("a", "email.complained", to="Ann@Example.com"),
        delivery("b", "email.delivered", to="bob@example.com"),
    )
    return shell


def test_sound_ledger_is_left_as_it_is(filled: Shell) -> None:
    result = filled("rebuild")
    assert result.exit_code == 0, result.output
    assert result.stdout == ""
    assert "everything is as it would be worked out today" in result.stderr
    assert filled.lines("rebuild") == []


def test_dry_run_shows_and_changes_nothing(filled: Shell) -> None:
    before = filled.lines("recipients", "list"), filled.lines("suppressions", "list")
    change(filled, DAMAGE)
    [status, suppression, other] = filled.lines("rebuild", "--dry-run")
    assert {**status, "before": "", "after": ""} == {
        "change": "changed",
        "what": "status",
        "address": ANN,
        "scope": None,
        "source": "std",
        "message_id": "m-a",
        "before": "",
        "after": "",
        "loosens": False,
    }
    assert (status["before"].split()[0], status["after"].split()[0]) == ("sent", "complained")
    assert (other["what"], suppression["what"]) == ("suppression", "status")
    shown = filled("rebuild", "--dry-run")
    assert shown.exit_code == 0
    assert "nothing was changed: a dry run" in shown.stderr
    assert "1 added, 0 removed, 2 changed; events that are read otherwise: 2" in shown.stderr
    assert filled.lines("suppressions", "list") == []
    assert filled("rebuild").exit_code == 0
    recipients, [suppressed] = before
    assert filled.lines("recipients", "list") == recipients
    [again] = filled.lines("suppressions", "list")
    assert again | {"id": suppressed["id"]} == suppressed


def test_loosening_wants_a_word(filled: Shell) -> None:
    change(filled, INVENT)
    refused = filled("rebuild", "--json")
    assert refused.exit_code == 1
    assert "--allow-loosening" in refused.stderr
    assert [json.loads(line)["loosens"] for line in refused.stdout.splitlines()] == [False, True]
    assert len(filled.lines("suppressions", "list")) == 1
    assert filled("rebuild", "--dry-run").exit_code == 0
    allowed = filled("rebuild", "--allow-loosening")
    assert allowed.exit_code == 0, allowed.output
    assert filled.lines("suppressions", "list") == []
    [lifted] = filled.lines("suppressions", "list", "--all")
    assert lifted["lift_reason"].startswith("rebuild")
    assert filled("suppressions", "check", ANN).exit_code == 0


def test_long_list_of_differences_does_not_fill_the_screen(shell: Shell) -> None:
    shell.receive(*(delivery(f"k{n}", to=f"u{n}@x.org") for n in range(60)))
    change(shell, "DELETE FROM status")
    result = shell("rebuild", "--dry-run")
    assert "and 10 more" in result.stderr
    assert len(shell.lines("rebuild", "--dry-run")) == 60


def test_box_without_database_says_so_and_exits_1(shell: Shell) -> None:
    result = shell("rebuild")
    assert result.exit_code == 1
    assert "no database" in result.stderr


# --- beside a running server


@pytest.fixture
def damaged(server: Server, serving: Shell) -> Shell:
    """A running box whose ledger is wrong."""
    assert serving("simulate", "std", "complained", "--to", ANN).exit_code == 0
    assert server.terminate() == 0
    change(serving, DAMAGE)
    server.start()
    return serving


def held(shell: Shell) -> dict[str, Any]:
    """A rebuild that has got as far as the standstill; what the swap then takes."""
    fields = {"settings": fingerprint(load(shell.config, shell.state))}
    answer = door.ask(shell.state, "rebuild.hold", fields)
    assert answer is not None
    word = {"who": "eve", "reason": "a test"}
    return {"scratch": "rebuild-1.db", "position": answer["position"], **word}


def test_running_server_takes_it_over(damaged: Shell) -> None:
    assert damaged("suppressions", "check", ANN).exit_code == 0
    result = damaged("rebuild")
    assert result.exit_code == 0, result.output
    assert "taken over" in result.stderr
    assert damaged("suppressions", "check", ANN).exit_code == 3
    assert damaged.lines("rebuild") == []
    assert list(damaged.state.glob("rebuild-*")) == []


def test_server_applies_again_after_a_rebuild_that_changed_nothing(serving: Shell) -> None:
    assert serving("rebuild", "--dry-run").exit_code == 0
    assert serving("rebuild").exit_code == 0
    assert serving("simulate", "std", "complained", "--to", ANN).exit_code == 0
    assert serving("suppressions", "check", ANN).exit_code == 3


def test_events_are_stored_but_not_applied_during_the_standstill(
    server: Server, serving: Shell
) -> None:
    held(serving)
    sent = delivery("k", "email.complained", to=ANN)
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    headers = {name.decode(): value.decode() for name, value in sent.headers}
    connection.request("POST", "/hooks/std", sent.body, headers)
    assert connection.getresponse().status == 200
    connection.close()
    assert [event["state"] for event in serving.lines("events", "list")] == ["pending"]
    door.ask(serving.state, "rebuild.end", {})
    assert serving("simulate", "std", "opened", "--to", ANN).exit_code == 0, "and so it was applied"
    assert serving("suppressions", "check", ANN).exit_code == 3


def test_one_rebuild_at_a_time_is_finished(serving: Shell) -> None:
    held(serving)
    result = serving("rebuild")
    assert result.exit_code == 1
    assert "another rebuild" in result.stderr


def test_swap_without_a_standstill_changes_nothing(damaged: Shell) -> None:
    fields = held(damaged)
    door.ask(damaged.state, "rebuild.end", {})
    with pytest.raises(OperatorError, match="nothing was changed"):
        door.ask(damaged.state, "rebuild.swap", fields)
    assert damaged("suppressions", "check", ANN).exit_code == 0


def test_swap_of_a_scratch_ledger_that_is_gone_changes_nothing(damaged: Shell) -> None:
    with pytest.raises(OperatorError, match="nothing was changed"):
        door.ask(damaged.state, "rebuild.swap", held(damaged))
    held(damaged)  # the one before is over


def test_stop_does_not_wait_for_a_rebuild(server: Server, serving: Shell) -> None:
    held(serving)
    assert server.terminate() == 0


def test_server_with_another_configuration_is_left_alone(damaged: Shell) -> None:
    with damaged.config.open("a") as file:
        file.write("\n# a remark\n")
    result = damaged("rebuild")
    assert result.exit_code == 1
    assert "SIGHUP" in result.stderr
    assert damaged("suppressions", "check", ANN).exit_code == 0


def test_rebuild_beside_a_sender_finds_nothing_to_change(server: Server, serving: Shell) -> None:
    """What is applied between the first look and the last is no difference."""
    with sending(server) as sent:
        for number in range(3):
            result = serving("rebuild", "--json")
            assert (result.exit_code, result.stdout) == (0, ""), result.output
            add = ("suppressions", "add", f"u{number}@x.org", "--reason", "meanwhile")
            assert serving(*add).exit_code == 0
    assert sent
    assert set(sent) == {200}


@contextmanager
def sending(server: Server) -> Iterator[list[int]]:
    """Somebody sends one event after the other; the statuses that were answered."""
    answers: list[int] = []
    over = threading.Event()

    def send() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", server.port)
        with closing(connection):
            for number in itertools.takewhile(lambda _: not over.is_set(), itertools.count()):
                kind = ("email.delivered", "email.complained", "email.sent")[number % 3]
                event = delivery(f"k{number}", kind, to=f"u{number % 7}@x.org")
                headers = {name.decode(): value.decode() for name, value in event.headers}
                connection.request("POST", "/hooks/std", event.body, headers)
                answer = connection.getresponse()
                answer.read()
                answers.append(answer.status)

    sender = threading.Thread(target=send)
    sender.start()
    try:
        yield answers
    finally:
        over.set()
        sender.join()
