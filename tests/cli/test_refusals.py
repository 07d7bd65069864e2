"""`hookbox refusals` and `hookbox stats`."""

import re

import pytest

from hookbox.cli.refusals import skew
from hookbox.flows.receive import Outcome
from hookbox.store import database
from tests.cli.shell import Shell, delivery


@pytest.fixture
def filled(shell: Shell) -> Shell:
    """Two stale, one from the future, one forged, one without a secret to prove it."""
    outcomes = shell.receive(
        delivery("a", skew_s=4000),
        delivery("b", skew_s=4000),
        delivery("c", skew_s=-4000),
        delivery("d", signed=b"somebody else's secret, of 32 b."),
        delivery("e", source="sealed"),
    )
    assert outcomes == [Outcome.REFUSED] * 4 + [Outcome.BUSY]
    return shell


def test_refusals_say_why_how_often_and_by_how_much(filled: Shell) -> None:
    told = filled("refusals").stdout
    assert re.search(r"^std +stale +2 +400[01] s behind +192\.0\.2\.7 +2", told, re.MULTILINE)
    assert re.search(r"^std +future +1 +(3999|4000) s ahead ", told, re.MULTILINE)
    assert re.search(r"^std +signature_wrong +1 +- ", told, re.MULTILINE)
    assert re.search(r"^sealed +no_secret +1 +- ", told, re.MULTILINE)


def test_refusals_as_json_are_the_minutes_of_the_view(filled: Shell) -> None:
    with database.reading(filled.state) as transaction:
        view = [dict(row) for row in transaction.execute("SELECT * FROM refusals")]
    lines = filled.lines("refusals")
    assert sorted(map(str, lines)) == sorted(map(str, view))
    assert [line["reason"] for line in filled.lines("refusals", "--source", "sealed")] == [
        "no_secret"
    ]


def test_refusals_before_the_time_asked_for_are_left_out(filled: Shell) -> None:
    assert filled.lines("refusals", "--since", "2100-01-01") == []
    assert "nobody was refused" in filled("refusals", "--since", "2100-01-01").stderr


def test_refusals_of_an_unknown_source_name_the_known_ones(filled: Shell) -> None:
    result = filled("refusals", "--source", "shop")
    assert result.exit_code == 1
    assert "sealed, std" in result.stderr


@pytest.mark.parametrize(
    ("skew_s", "words"),
    [(312.4, "312 s behind"), (-312.4, "312 s ahead"), (0.0, "0 s behind"), (None, "-")],
)
def test_skew_is_told_from_the_senders_side(skew_s: float | None, words: str) -> None:
    assert skew(skew_s) == words


def test_stats_count_what_each_source_did(filled: Shell) -> None:
    filled.receive(delivery("k"), delivery("k"), delivery("rotten", body=b"{"))
    sealed, std = filled.lines("stats")
    assert std["source"] == "std"
    assert (std["events"], std["duplicates"], std["quarantined"]) == (1, 1, 1)
    assert (std["refused_24h"], std["pending"], std["queue_age_s"]) == (4, 0, None)
    assert std["last_event_at"] == filled.lines("events", "list")[0]["received_at"]
    assert (sealed["events"], sealed["last_event_at"], sealed["refused_24h"]) == (0, None, 1)
    assert re.search(r"^std +1 +1 +0 +1 +4 +2", filled("stats").stdout, re.MULTILINE)


def test_stats_tell_how_long_the_oldest_job_has_waited(shell: Shell) -> None:
    shell.receive(delivery("a"), delivery("b"))
    back = "UPDATE job SET state = 'available', finished_at = NULL, run_at = run_at - 600000"
    with database.exclusive(shell.state) as run:
        run(lambda t: t.execute(back))
    std = shell.lines("stats")[1]
    assert std["pending"] == 2
    assert std["queue_age_s"] in range(600, 660)
    assert re.search(r" 2 +10 min$", shell("stats").stdout, re.MULTILINE)
