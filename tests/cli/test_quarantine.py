"""`hookbox quarantine`, with the server stopped; test_door.py goes through a running one."""

import pytest

from hookbox.flows.receive import Outcome
from tests.cli.shell import Shell, delivery


@pytest.fixture
def filled(shell: Shell) -> Shell:
    """Entry 1 cannot be read; entry 2 contradicts event 1."""
    outcomes = shell.receive(
        delivery("rotten", body=b"{"),
        delivery("k"),
        delivery("k", "email.bounced"),
    )
    assert outcomes == [Outcome.QUARANTINED, Outcome.ACCEPTED, Outcome.QUARANTINED]
    return shell


def test_list_shows_what_waits_for_a_decision(filled: Shell) -> None:
    entries = filled.lines("quarantine", "list")
    assert [(entry["id"], entry["key"]) for entry in entries] == [(1, "rotten"), (2, "k")]
    assert entries[1]["reason"] == "payload_digest_conflict"
    assert filled("quarantine").stdout.count("\n") == 3
    assert filled.lines("quarantine", "list", "--source", "std", "--after", "1") == entries[1:]


def test_show_has_the_content(filled: Shell) -> None:
    told = filled("quarantine", "show", "2").stdout
    assert "payload_digest_conflict" in told
    assert '"type": "email.bounced"' in told
    assert [entry["content"] for entry in filled.lines("quarantine", "show", "1")] == ["{"]


def test_accepted_entry_becomes_an_event(filled: Shell) -> None:
    result = filled("quarantine", "accept", "2")
    assert result.exit_code == 0, result.output
    assert "events show 2" in result.stdout
    filled.receive()
    assert [e["kind"] for e in filled.lines("events", "list")] == ["delivered", "bounced"]
    assert [entry["id"] for entry in filled.lines("quarantine", "list")] == [1]
    [_, resolved] = filled.lines("quarantine", "list", "--all")
    assert resolved["resolution"] == "accepted as event 2"


def test_discarded_entry_keeps_the_reason(filled: Shell) -> None:
    result = filled("quarantine", "discard", "1", "2", "--reason", "their tests")
    assert result.exit_code == 0, result.output
    assert filled.lines("quarantine", "list") == []
    assert {e["resolution"] for e in filled.lines("quarantine", "list", "--all")} == {
        "discarded: their tests"
    }
    assert "discarded: their tests" in filled("quarantine", "show", "1").stdout


@pytest.mark.parametrize("words", [(), ("--reason", " ")])
def test_discard_wants_a_reason(filled: Shell, words: tuple[str, ...]) -> None:
    assert filled("quarantine", "discard", "1", *words).exit_code == 2
    assert len(filled.lines("quarantine", "list")) == 2


@pytest.mark.parametrize("words", [("accept", "1"), ("discard", "1", "--reason", "again")])
def test_entry_is_decided_once(filled: Shell, words: tuple[str, ...]) -> None:
    assert filled("quarantine", "discard", "1", "--reason", "first").exit_code == 0
    result = filled("quarantine", *words)
    assert result.exit_code == 1
    assert "resolved already" in result.stderr


@pytest.mark.parametrize(
    "words", [("show", "9"), ("accept", "9"), ("discard", "9", "--reason", "x")]
)
def test_entry_that_is_not_there_exits_1(filled: Shell, words: tuple[str, ...]) -> None:
    result = filled("quarantine", *words)
    assert result.exit_code == 1
    assert "no quarantine entry 9" in result.stderr
