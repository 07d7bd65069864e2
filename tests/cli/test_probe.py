"""`hookbox probe`, at a real server that a real sender posts to."""

import re

from tests.cli.shell import Shell
from tests.witness.client import hook, load
from tests.witness.server import Server


def sent(server: Server, key: str) -> int:
    """The status that a delivery of this event was answered with."""
    [answer] = load(server.port, [hook(key)], connections=1).answers
    return answer.status


def test_probed_delivery_is_answered_our_fault_and_stored(serving: Shell, server: Server) -> None:
    started = serving("probe", "std")
    assert started.exit_code == 0, started.output
    assert re.fullmatch(
        r"the next verified delivery is stored, and answered 503: our fault\n"
        r"Standard Webhooks should come again in 5 s; "
        r"the probe ends after 3 d at the latest\n"
        r"what came of it: .* probe std --show\n",
        started.stdout,
    )
    assert sent(server, "a") == 503
    assert [line["key"] for line in serving.lines("events")] == ["a"]


def test_retry_is_shown_beside_what_is_declared(serving: Shell, server: Server) -> None:
    serving("probe", "std")
    assert [sent(server, key) for key in "aba"] == [503, 200, 200]
    told = serving("probe", "std", "--show").stdout
    assert re.search(r"^because +every failed delivery came again$", told, re.MULTILINE)
    assert re.search(r"^1  \S+ \S+  our fault +-  a$", told, re.MULTILINE)
    assert re.search(r"^2  \S+ \S+  accepted +\d\.\d s  a$", told, re.MULTILINE)
    assert re.search(r"^body on the retry +the same bytes +unknown +-$", told, re.MULTILINE)
    assert re.search(r"^event id on the retry +the same +header +yes$", told, re.MULTILINE)


def test_sender_that_comes_too_early_does_not_agree(serving: Shell, server: Server) -> None:
    """5 s are declared, and a quarter more or less, but never less than 5 s."""
    serving("probe", "std")
    assert [sent(server, key) for key in "aa"] == [503, 200]
    [line] = serving.lines("probe", "std", "--show")
    agrees = {each["question"]: each["agrees"] for each in line["findings"]}
    assert agrees["time until the next attempt"] is True
    assert [each["answered"] for each in line["requests"]] == ["busy", "ok"]
    assert line["requests"][0]["gap_s"] is None
    assert 0 <= line["requests"][1]["gap_s"] < 5


def test_probe_under_way_is_shown_rather_than_started(serving: Shell, server: Server) -> None:
    serving("probe", "std", "--fail", "2")
    told = serving("probe", "std").stdout
    assert re.search(r"^deliveries to fail +2$", told, re.MULTILINE)
    assert told.endswith("\nnothing has come yet\n")
    assert sent(server, "a") == 503
    assert "should come again in 5 s" in serving("probe", "std").stdout
    again = serving("probe", "std", "--fail", "1")
    assert again.exit_code == 1
    assert "under way" in again.stderr


def test_stopped_probe_fails_nothing_any_more(serving: Shell, server: Server) -> None:
    serving("probe", "std")
    told = serving("probe", "std", "--stop")
    assert re.search(r"^because +stopped$", told.stdout, re.MULTILINE)
    assert sent(server, "a") == 200
    assert "no probe of std is under way" in serving("probe", "std", "--stop").stderr


def test_simulated_event_does_not_use_the_probe_up(serving: Shell, server: Server) -> None:
    serving("probe", "std")
    assert serving("simulate", "std", "bounced", "--to", "ann@example.com").exit_code == 0
    assert sent(server, "a") == 503


def test_show_works_beside_a_stopped_server(serving: Shell, server: Server) -> None:
    serving("probe", "std")
    sent(server, "a")
    assert server.terminate() == 0
    assert "our fault" in serving("probe", "std", "--show").stdout
    stop = serving("probe", "std", "--stop")
    assert stop.exit_code == 1
    assert "no server is running" in stop.stderr


def test_what_cannot_be_probed_says_why(serving: Shell) -> None:
    assert "no source is called 'shop'" in serving("probe", "shop").stderr
    assert "was never probed" in serving("probe", "std", "--show").stderr
    assert serving("probe", "std", "--show", "--stop").exit_code == 2
    assert serving("probe", "std", "--fail", "6").exit_code == 2
