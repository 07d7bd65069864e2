"""`hookbox events`, on what a real box has received."""

import hmac
import re

import pytest

from hookbox.clock import SystemClock
from hookbox.model import Delivery, Kind
from hookbox.store import database
from tests.cli.shell import Shell, delivery
from tests.witness.client import SECRET

ESCAPES = "\x1b[31mred\x1b]0;title\x07\x9b2J\u202e"


@pytest.fixture
def filled(shell: Shell) -> Shell:
    """Six events: five delivered, oldest first, and one bounced."""
    shell.receive(*(delivery(f"k{n}", to=f"p{n}@example.com") for n in range(5)))
    shell.receive(delivery("k5", "email.bounced", to="Ben@example.com"))
    return shell


def ids(shell: Shell, *words: str) -> list[int]:
    return [line["id"] for line in shell.lines("events", "list", *words)]


def test_newest_event_comes_last_next_to_the_prompt(filled: Shell) -> None:
    assert ids(filled) == [1, 2, 3, 4, 5, 6]
    assert ids(filled, "--limit", "2") == [5, 6]


def test_noun_alone_lists(filled: Shell) -> None:
    assert filled("events").stdout == filled("events", "list").stdout
    assert filled("events", "--kind", "bounced").stdout.count("\n") == 2


def test_after_and_before_turn_the_pages(filled: Shell) -> None:
    assert ids(filled, "--limit", "2", "--after", "0") == [1, 2]
    assert ids(filled, "--limit", "2", "--after", "2") == [3, 4]
    assert ids(filled, "--limit", "2", "--before", "5") == [3, 4]
    assert ids(filled, "--after", "6") == []


def test_full_page_says_how_to_see_more(filled: Shell) -> None:
    assert "--before 5" in filled("events", "--limit", "2").stderr
    assert "--after 2" in filled("events", "--limit", "2", "--after", "0").stderr
    assert not filled("events").stderr


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--kind", "bounced"), [6]),
        (("--state", "applied"), [1, 2, 3, 4, 5, 6]),
        (("--state", "pending"), []),
        (("--recipient", "ben@EXAMPLE.com"), [6]),
        (("--recipient", "nobody@example.com"), []),
        (("--key", "k2"), [3]),
        (("--source", "std", "--key", "k2"), [3]),
        (("--source", "sealed"), []),
        (("--since", "1h"), [1, 2, 3, 4, 5, 6]),
        (("--since", "2100-01-01"), []),
        (("--since", "2001-01-01T10:00+02:00", "--kind", "delivered", "--limit", "1"), [5]),
    ],
)
def test_filter_keeps_only_what_was_asked_for(
    filled: Shell, words: tuple[str, ...], expected: list[int]
) -> None:
    assert ids(filled, *words) == expected


def test_since_counts_from_the_receive_time(shell: Shell) -> None:
    shell.receive(delivery("old", ago_s=7200), delivery("new"))
    assert ids(shell, "--since", "1h") == [2]
    assert ids(shell, "--since", "3h") == [1, 2]


def test_event_of_several_recipients_is_found_by_each(shell: Shell) -> None:
    """The list joins their addresses; the filter must not depend on that."""
    shell.receive(delivery("k"))
    with database.exclusive(shell.state) as run:
        run(lambda t: t.execute("UPDATE event SET recipient = 'ann@example.com, cy@example.com'"))
    assert ids(shell, "--recipient", "ann@example.com") == [1]


def test_json_has_the_fields_of_the_view_in_its_order(filled: Shell) -> None:
    with database.reading(filled.state) as transaction:
        view = [dict(row) for row in transaction.execute("SELECT * FROM events ORDER BY id")]
    lines = filled.lines("events", "list")
    assert lines == view
    assert list(lines[0]) == list(view[0])
    assert filled.lines("events", "show", "6") == view[-1:]


def test_unknown_source_exits_1_and_names_the_known_ones(filled: Shell) -> None:
    result = filled("events", "--source", "shop")
    assert result.exit_code == 1
    assert "'shop'" in result.stderr
    assert "sealed, std" in result.stderr
    assert not result.stdout


@pytest.mark.parametrize("words", [("--kind", "bounce"), ("--since", "soon"), ("--limit", "0")])
def test_value_that_cannot_be_meant_is_wrong_usage(shell: Shell, words: tuple[str, str]) -> None:
    result = shell("events", *words)
    assert result.exit_code == 2
    assert "Traceback" not in result.output


def test_kind_that_does_not_exist_is_answered_with_those_that_do(shell: Shell) -> None:
    assert all(kind in shell("events", "--kind", "bounce").stderr for kind in Kind)


def test_show_tells_what_the_event_says_and_what_was_done(filled: Shell) -> None:
    told = filled("events", "show", "6").stdout
    assert re.search(r"^proved by +the current secret$", told, re.MULTILINE)
    assert re.search(r"^Ben@example\.com +bounced +undetermined ", told, re.MULTILINE)
    assert re.search(r"^ +6 +apply +0 +completed +1 ", told, re.MULTILINE)
    assert '"email": "Ben@example.com"' in told


def test_show_of_an_event_that_is_not_there_exits_1(filled: Shell) -> None:
    result = filled("events", "show", "99")
    assert result.exit_code == 1
    assert "no event 99" in result.stderr


def test_repeats_are_counted_where_a_person_looks(filled: Shell) -> None:
    filled.receive(delivery("k5", "email.bounced", to="Ben@example.com"))
    assert re.search(
        r"^repeats +1, the last one ", filled("events", "show", "6").stdout, re.MULTILINE
    )


PARCELS = """
[source.parcels]
provider = "hmac"
secret = "env:STD_SECRET"
secret_encoding = "utf8"
signed = "{body}"
signature = "header:x-signature"
id = "/id"
natural_key = ["/order"]
"""


def parcel(body: bytes) -> Delivery:
    """A delivery of a sender that may leave the id out."""
    signature = hmac.digest(SECRET.encode(), body, "sha256").hex().encode()
    headers = ((b"x-signature", signature),)
    return Delivery(source="parcels", headers=headers, body=body, received_at=SystemClock().now())


def test_event_without_an_id_of_the_senders_is_marked_and_counted(shell: Shell) -> None:
    shell.config.write_text(shell.config.read_text() + PARCELS)
    shell.receive(parcel(b'{"id": "a", "order": 1}'), parcel(b'{"order": 2}'))
    assert [line["synthesised"] for line in shell.lines("events")] == [0, 1]
    assert "key made" not in shell("events", "show", "1").stdout
    assert re.search(r"(?m)^key made +from the content", shell("events", "show", "2").stdout)
    counted = {line["source"]: line["synthesised"] for line in shell.lines("stats")}
    assert counted == {"parcels": 1, "sealed": 0, "std": 0}


PLANTED = """
UPDATE event
SET key = ?1, raw_kind = ?1, recipient = ?1, message_id = ?1, content = CAST(?1 AS BLOB)
"""


def test_escape_sequences_in_stored_text_are_shown_escaped(shell: Shell) -> None:
    """A terminal obeys what it is sent: no byte of a sender's may reach it as a command."""
    shell.receive(delivery("event"), delivery("aside", body=ESCAPES.encode()))
    with database.exclusive(shell.state) as run:
        run(lambda t: t.execute(PLANTED, (ESCAPES,)))
    for noun in ("events", "quarantine"):
        for words in (
            (noun,),
            (noun, "--json"),
            (noun, "show", "1"),
            (noun, "show", "1", "--json"),
        ):
            result = shell(*words)
            assert result.exit_code == 0, result.output
            assert result.output.replace("\n", "").isprintable(), words
        assert r"\x1b[31mred\x1b]0;title\x07\x9b2J\u202e" in shell(noun, "show", "1").stdout


def test_empty_box_says_what_to_try(shell: Shell) -> None:
    shell.receive()
    assert "simulate" in shell("events").stderr
    assert shell("events", "--kind", "bounced").stderr == "no such events\n"
    assert shell.lines("events", "list") == []


def test_box_that_was_never_started_says_how_to_start_it(shell: Shell) -> None:
    result = shell("events")
    assert result.exit_code == 1
    assert "hookbox serve" in result.stderr
