"""`hookbox suppressions check`: the answer that a script acts on."""

import json

import pytest

from hookbox.rules.suppression import Cause
from hookbox.store import database, suppressions
from hookbox.store.decisions import Verb, Word
from hookbox.store.suppressions import Wanted
from tests.cli.shell import Shell, delivery

SINCE = 1_700_000_000_000


def suppress(shell: Shell, *addresses: str, scope: str = "") -> None:
    """As a person would, while nobody serves."""
    wanted = [
        Wanted(address=address, cause=Cause.MANUAL, since=SINCE, scope=scope)
        for address in addresses
    ]
    shell.state.mkdir(exist_ok=True)
    with database.exclusive(shell.state) as run:
        word = Word(who="eve", reason="a test", at=SINCE)
        run(lambda transaction: suppressions.add(transaction, wanted, Verb.ADD, word))


def test_answer_names_the_event_behind_it(shell: Shell) -> None:
    shell.receive(delivery("k", "email.complained", to="Ann@Example.com"))
    result = shell("suppressions", "check", "ann@example.com", "--json")
    assert result.exit_code == 3
    told = json.loads(result.stdout)
    assert told.pop("since").endswith("Z")
    assert told == {
        "address": "ann@example.com",
        "suppressed": True,
        "reason": "complaint",
        "event_id": 1,
        "source": "std",
        "scope": "",
    }
    shown = shell("suppressions", "check", "ann@example.com")
    assert shown.exit_code == 3
    assert "do not mail, complaint since" in shown.stdout
    assert "event 1 of std" in shown.stdout


def test_exit_code_is_3_when_any_must_not_be_mailed_and_0_otherwise(shell: Shell) -> None:
    suppress(shell, "no@x.org")
    assert shell("suppressions", "check", "yes@x.org", "also@x.org").exit_code == 0
    assert shell("suppressions", "check", "yes@x.org", "no@x.org", "also@x.org").exit_code == 3


def test_what_is_no_address_is_not_to_be_mailed_and_says_so(shell: Shell) -> None:
    suppress(shell, "no@x.org")
    result = shell("suppressions", "check", "nonsense", "--json")
    assert (result.exit_code, json.loads(result.stdout)["reason"]) == (1, "not_an_address")
    assert json.loads(result.stdout)["suppressed"] is False
    assert "not an address" in shell("suppressions", "check", "nonsense").stdout
    assert shell("suppressions", "check", "nonsense", "no@x.org").exit_code == 3


@pytest.mark.parametrize("words", [(), ("-",)])
def test_addresses_come_from_the_standard_input_one_a_line(
    shell: Shell, words: tuple[str, ...]
) -> None:
    suppress(shell, "no@x.org")
    typed = "yes@x.org\r\n\n  NO@x.org  \nAnn <no@X.ORG>"
    result = shell("suppressions", "check", *words, "--json", typed=typed)
    assert result.exit_code == 3
    told = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(line["address"], line["suppressed"]) for line in told] == [
        ("yes@x.org", False),
        ("NO@x.org", True),
        ("Ann <no@X.ORG>", True),
    ]


def test_input_longer_than_a_chunk_keeps_its_order(shell: Shell) -> None:
    suppress(shell, "u12345@x.org")
    typed = "\n".join(f"u{number}@x.org" for number in range(12_346))
    result = shell("suppressions", "check", "--json", typed=typed)
    assert result.exit_code == 3
    told = [json.loads(line) for line in result.stdout.splitlines()]
    assert [line["address"] for line in told] == typed.split("\n")
    assert [line["address"] for line in told if line["suppressed"]] == ["u12345@x.org"]


def test_empty_input_is_nobody_to_worry_about(shell: Shell) -> None:
    suppress(shell, "no@x.org")
    assert shell("suppressions", "check", typed="").exit_code == 0


def test_input_that_is_no_text_is_answered_all_the_same(shell: Shell) -> None:
    suppress(shell, "no@x.org")
    result = shell("suppressions", "check", "--json", typed=b"\xff\xfe@x.org\nno@x.org\n")
    assert result.exit_code == 3
    assert len(result.stdout.splitlines()) == 2


def test_scope_asks_about_one_list_and_the_global_one(shell: Shell) -> None:
    suppress(shell, "news@x.org", scope="news")
    suppress(shell, "all@x.org")
    check = ("suppressions", "check")
    assert shell(*check, "news@x.org").exit_code == 3
    assert shell(*check, "news@x.org", "--scope", "news").exit_code == 3
    assert shell(*check, "news@x.org", "--scope", "shop").exit_code == 0
    assert shell(*check, "all@x.org", "--scope", "shop").exit_code == 3


def test_box_without_database_says_so_and_exits_1(shell: Shell) -> None:
    result = shell("suppressions", "check", "ann@example.com")
    assert result.exit_code == 1
    assert "no database" in result.stderr
