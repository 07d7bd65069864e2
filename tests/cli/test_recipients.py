"""`hookbox recipients`, and the second chances of `hookbox events`."""

import json
import re
from pathlib import Path

import pytest

from hookbox.store import database
from tests.cli.shell import Shell, delivery

ANN = "ann@example.com"
TWO_SENDERS = """\
[source.std]
provider = "standardwebhooks"
secret = "env:STD_SECRET"

[source.other]
provider = "standardwebhooks"
secret = "env:STD_SECRET"
suppress_ambiguous = true
"""


def told(kind: str, at: str, *, message: str = "m1", to: object = ANN, **more: object) -> bytes:
    """What a sender writes about one message."""
    facts = {"email": to, "message_id": message, **more}
    return json.dumps({"type": f"email.{kind}", "timestamp": at, "data": facts}).encode()


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    config = tmp_path / "hookbox.toml"
    config.write_text(TWO_SENDERS)
    return Shell(config=config, state=tmp_path / "state")


@pytest.fixture
def filled(shell: Shell) -> Shell:
    """A complaint, then a late report of the delivery, by two senders that know one person."""
    shell.receive(
        delivery("c", body=told("complained", "2024-05-01T10:12:00Z")),
        delivery("d", body=told("delivered", "2024-05-01T10:00:00Z")),
        delivery(
            "b",
            source="other",
            body=told("delivered", "2024-05-01T09:00:00Z", to="ANN@Example.com"),
        ),
        delivery("x", body=told("delivered", "2024-05-01T10:00:00Z", to="bob@example.com")),
    )
    return shell


def test_story_is_one_timeline_over_all_sources_in_the_order_of_happening(filled: Shell) -> None:
    [story] = filled.lines("recipients", "show", "Ann <ann@EXAMPLE.com>")
    assert [(line["source"], line["kind"]) for line in story["timeline"]] == [
        ("other", "delivered"), ("std", "delivered"), ("std", "complained"),
    ]  # fmt: skip
    assert story["timeline"][1]["effect"] == "late delivered ignored: already complained"
    for line in story["timeline"]:
        assert line["occurred_at"] < line["received_at"]
    assert story["suppressed"] is True
    assert [row["status"] for row in story["statuses"]] == ["complained", "delivered"]


def test_story_is_told_side_by_side(filled: Shell) -> None:
    shown = filled("recipients", "show", ANN).stdout
    assert re.search(r"^may be mailed +no: complaint$", shown, re.MULTILINE)
    assert re.search(r"^OCCURRED +RECEIVED +SOURCE +KIND", shown, re.MULTILINE)
    assert "late delivered ignored: already complained" in shown


def test_story_tells_later_causes_lifts_and_who_decided(filled: Shell) -> None:
    filled.receive(delivery("h", body=told("bounced", "2024-06-01T00:00:00Z", message="m2",
                                           bounce={"type": "Permanent"})))  # fmt: skip
    filled("suppressions", "lift", ANN, "--reason", "wrote to us")
    filled("suppressions", "add", ANN, "--reason", "asked on the phone")
    [story] = filled.lines("recipients", "show", ANN)
    lifted, again = story["suppressions"]
    assert [cause["reason"] for cause in lifted["causes"]] == ["complaint", "hard_bounce"]
    assert (lifted["reason"], lifted["lift_reason"]) == ("complaint", "wrote to us")
    assert [cause["decision"] for cause in again["causes"]] == ["asked on the phone"]
    shown = filled("recipients", "show", ANN).stdout
    assert "wrote to us" in shown
    assert "asked on the phone" in shown


def test_story_of_somebody_whom_an_event_only_may_mean(shell: Shell) -> None:
    """`other` lets such events count; the timeline then says why its candidates are suppressed."""
    both = [ANN, "bob@example.com"]
    body = told("complained", "2024-05-01T10:00:00Z", to=both)
    shell.receive(delivery("k", source="other", body=body))
    for address in both:
        [story] = shell.lines("recipients", "show", address)
        assert story["suppressed"] is True
        assert [line["ambiguous"] for line in story["timeline"]] == [1]
    [story] = shell.lines("recipients", "show", "bob@example.com")
    assert len(story["statuses"]) == 1


def test_story_of_somebody_unknown_exits_1(filled: Shell) -> None:
    result = filled("recipients", "show", "nobody@example.com")
    assert result.exit_code == 1
    assert "nothing is known" in result.stderr


def test_long_story_says_that_there_is_more(filled: Shell) -> None:
    result = filled("recipients", "show", ANN, "--limit", "2")
    assert "--limit 4" in result.stderr
    [story] = filled.lines("recipients", "show", ANN, "--limit", "2")
    assert [line["kind"] for line in story["timeline"]] == ["delivered", "complained"]


def test_story_knows_where_the_messages_are(filled: Shell) -> None:
    with database.exclusive(filled.state) as run:
        run(lambda t: t.execute("INSERT INTO message_place VALUES (1, 'm1', 'in_7', 'th_9')"))
    [story] = filled.lines("recipients", "show", ANN)
    [place] = story["places"]
    assert (place["inbox_id"], place["thread_id"]) == ("in_7", "th_9")
    assert "in_7" in filled("recipients", "show", ANN).stdout


def test_list_narrows_and_turns_pages(filled: Shell) -> None:
    every = filled.lines("recipients", "list")
    assert [row["event_id"] for row in every] == [1, 3, 4]
    listed = ("recipients", "list")
    assert filled.lines(*listed, "--status", "complained") == every[:1]
    assert filled.lines(*listed, "--source", "other") == every[1:2]
    assert filled.lines(*listed, "--address", "Ann@example.com") == every[:2]
    assert filled.lines(*listed, "--message", "m1", "--limit", "1") == every[2:]
    assert filled.lines(*listed, "--before", "4", "--limit", "1") == every[1:2]
    assert filled.lines(*listed, "--after", "0", "--limit", "1") == every[:1]
    assert "bob@example.com" in filled("recipients").stdout
    assert filled(*listed, "--source", "nobody").exit_code == 1


def test_page_never_ends_inside_an_event(shell: Shell) -> None:
    """One event moved three recipients; a page that ended among them would lose the others."""
    everybody = [f"{name}@x.org" for name in "abc"]
    shell.receive(delivery("k", source="other", body=told("sent", "2024-05-01", to=everybody)))
    assert len(shell.lines("recipients", "list", "--limit", "1")) == 3
    assert len(shell.lines("recipients", "list", "--limit", "1", "--after", "0")) == 3


def test_events_of_a_recipient_are_found_by_any_spelling(filled: Shell) -> None:
    events = filled.lines("events", "list", "--recipient", "Ann <ANN@example.com>")
    assert [event["id"] for event in events] == [1, 2, 3]


# --- second chances


def test_replay_is_numbered_and_counts_nothing_twice(filled: Shell) -> None:
    before = filled.lines("recipients", "list"), filled.lines("suppressions", "list")
    for number in (1, 2):
        result = filled("events", "replay", "1", "--json")
        assert json.loads(result.stdout) == {"event_id": 1, "target": "apply", "replay": number}
        filled.receive()
    assert (filled.lines("recipients", "list"), filled.lines("suppressions", "list")) == before
    shown = filled("events", "show", "1").stdout
    assert re.findall(r"apply +(\d) +completed", shown) == ["0", "1", "2"]


def test_queued_event_cannot_be_replayed_and_says_so(filled: Shell) -> None:
    assert filled("events", "replay", "1").exit_code == 0
    result = filled("events", "replay", "1")
    assert result.exit_code == 1
    assert "queued already" in result.stderr


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            "UPDATE job SET state = 'running', instance = 1, token = 1, finished_at = NULL",
            "being worked on",
        ),
        ("UPDATE delivery SET body = NULL", "no longer kept"),
        ("DELETE FROM job; DELETE FROM notification; DELETE FROM event", "no event 1"),
    ],
)
def test_replay_that_cannot_be_says_why(filled: Shell, change: str, said: str) -> None:
    with database.exclusive(filled.state) as run:
        for statement in change.split(";"):
            run(lambda transaction, statement=statement: transaction.execute(statement))
    result = filled("events", "replay", "1")
    assert result.exit_code == 1
    assert said in result.stderr


def test_quarantined_event_is_let_through_rather_than_replayed(filled: Shell) -> None:
    with database.exclusive(filled.state) as run:
        run(lambda t: t.execute(
            "INSERT INTO quarantine_entry (source_id, key, digest, reason, delivery_id, event_id,"
            " received_at) SELECT source_id, key, digest, 'apply_failed', delivery_id, id, 0"
            " FROM event WHERE id = 1"
        ))  # fmt: skip
    result = filled("events", "replay", "1")
    assert result.exit_code == 1
    assert "quarantine accept 1" in result.stderr


def test_forgotten_event_is_news_when_its_sender_replays_it(filled: Shell) -> None:
    again = delivery("c", body=told("complained", "2024-05-01T10:12:00Z"))
    filled.receive(again)
    assert len(filled.lines("events", "list")) == 4
    forget = ("events", "forget", "c", "--source", "std")
    assert filled(*forget).exit_code == 2, "a reason is needed"
    result = filled(*forget, "--reason", "read wrongly before the mend")
    assert result.exit_code == 0, result.output
    filled.receive(again)
    events = filled.lines("events", "list")
    assert [(event["id"], event["key"]) for event in events][::4] == [
        (1, "c~forgotten-1"),
        (5, "c"),
    ]
    assert {event["state"] for event in events} == {"applied"}
    [kept] = filled.lines("suppressions", "list")
    assert kept["event_id"] == 1
    assert filled(*forget, "--reason", "once more").exit_code == 0
    result = filled("events", "forget", "c", "--source", "std", "--reason", "too often")
    assert result.exit_code == 1
    assert "no event with the key c" in result.stderr


def test_every_decision_is_kept_with_who_and_why(filled: Shell) -> None:
    filled("events", "forget", "c", "--source", "std", "--reason", "a mend")
    filled("events", "replay", "2")
    with database.reading(filled.state) as transaction:
        rows = transaction.execute("SELECT verb, who, reason, event_id FROM decision ORDER BY id")
        kept = [tuple(row) for row in rows]
    assert [(verb, event_id) for verb, _, _, event_id in kept] == [("forget", 1), ("replay", 2)]
    assert all(who and reason for _, who, reason, _ in kept)
