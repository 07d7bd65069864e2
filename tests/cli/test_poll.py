"""`hookbox poll`: the list is read now, by the server that runs or in its place."""

import json
import os
import signal
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from hookbox.clock import SystemClock
from hookbox.store import database
from tests.cli.shell import Shell
from tests.upstream import TOKEN, event, page
from tests.witness.client import SECRET
from tests.witness.server import Server


class Listed:
    """A list of events on a thread of its own, since commands wait for it."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, bytes]] = []
        self.asked: list[str | None] = []
        self.port = 0

    def next(self, cursor: str | None) -> tuple[int, bytes]:
        self.asked.append(cursor)
        return self.answers.pop(0) if self.answers else (200, page(cursor=cursor))


@contextmanager
def listing() -> Iterator[Listed]:
    listed = Listed()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            cursor = parse_qs(urlsplit(self.path).query).get("cursor", [None])[0]
            status, body = listed.next(cursor)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    listed.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield listed
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Listed]:
    monkeypatch.setenv("AGENT_KEY", TOKEN)
    with listing() as made:
        yield made


def settings(listed: Listed, **more: str) -> str:
    lines = "".join(f"{name} = {value}\n" for name, value in more.items())
    return (
        '[source.agent]\nprovider = "efa"\n[source.agent.poll]\n'
        f'url = "http://127.0.0.1:{listed.port}/v1/projects/p1/events"\n'
        f'token = "env:AGENT_KEY"\n{lines}'
    )


@pytest.fixture
def polling(shell: Shell, listed: Listed) -> Shell:
    """A box that polls and was never started."""
    shell.config.write_text(settings(listed))
    return shell


def test_list_is_read_while_no_server_runs(polling: Shell, listed: Listed) -> None:
    listed.answers = [(200, page(event(1), event(2), cursor="2"))]
    result = polling("poll", "agent", "--once")
    assert result.exit_code == 0, result.output
    assert "new events  2" in result.stdout
    assert "cursor      2" in result.stdout
    assert [line["via"] for line in polling.lines("events")] == ["poll", "poll"]
    assert polling("poll", "agent").exit_code == 0
    assert listed.asked == [None, "2"]


def test_program_is_told_in_one_object(polling: Shell, listed: Listed) -> None:
    listed.answers = [(200, page(event(1), cursor="1"))]
    [line] = polling.lines("poll", "agent")
    assert (line["end"], line["new"], line["cursor"]) == ("caught_up", 1, "1")


@pytest.mark.parametrize(
    ("answer", "code", "words"),
    [
        ((401, b""), 1, "the sender answers 401"),
        ((400, b'{"error":{"code":"invalid_cursor"}}'), 1, "invalid_cursor"),
        ((429, b""), 75, "the sender answers 429"),
        ((500, b""), 75, "the sender answers 500"),
        ((200, b"{"), 75, "a page cannot be read"),
    ],
)
def test_exit_code_tells_what_can_be_tried_again(
    polling: Shell, listed: Listed, answer: tuple[int, bytes], code: int, words: str
) -> None:
    listed.answers = [answer]
    result = polling("poll", "agent", "--once")
    assert result.exit_code == code
    assert words in result.stderr


def test_pages_that_lead_nowhere_fail(polling: Shell, listed: Listed) -> None:
    listed.answers = [(200, page(cursor=None, more=True))] * 9
    result = polling("poll", "agent", "--once")
    assert result.exit_code == 1
    assert "3 pages led nowhere new" in result.stderr


def test_person_begins_elsewhere(polling: Shell, listed: Listed) -> None:
    assert polling("poll", "agent", "--from", "1400").exit_code == 0
    assert polling("poll", "agent", "--from", "start").exit_code == 0
    assert listed.asked == ["1400", None]
    result = polling("poll", "agent", "--from", "yesterday")
    assert result.exit_code == 1
    assert "whole numbers" in result.stderr


def test_gaps_are_closed_by_hand(polling: Shell, listed: Listed) -> None:
    listed.answers = [(200, page(event(1), event(5), cursor="5"))]
    polling("poll", "agent")
    assert "1 gap closed" in polling("poll", "agent", "--close-gaps").stdout
    assert polling("poll", "agent", "--close-gaps", "--once").exit_code == 2


def test_source_without_a_list_is_a_matter_of_configuration(polling: Shell) -> None:
    polling.config.write_text('[source.agent]\nprovider = "efa"\n')
    result = polling("poll", "agent")
    assert result.exit_code == 78
    assert "no `poll` table" in result.stderr
    assert "line 1" in result.stderr


def test_unknown_source_is_told(polling: Shell) -> None:
    result = polling("poll", "agnet")
    assert result.exit_code == 1
    assert "there are: agent" in result.stderr


def written(provider: str, *more: str, token: str = "AGENT_KEY") -> str:
    lines = (
        *("[source.agent]", f'provider = "{provider}"', "[source.agent.poll]"),
        *('url = "https://x.example/"', f'token = "env:{token}"', *more),
    )
    return "\n".join(lines)


REFUSED = [
    (written("sendgrid"), 3, "poll", "has no list of events that can be polled"),
    (written("mailgun", 'drive = "cursor"'), 6, "poll.drive", "no sequence that could decide"),
    (written("mailgun", "scoped = true"), 6, "poll.scoped", "does not number its events"),
    (written("mailgun", 'every = "5s"'), 6, "poll.every", "every 15 s at most"),
    (written("mailgun", 'read = "https://x.example/{inbox_id}"'), 6, "poll.read", "cannot be read"),
    (written("efa", "limit = 101"), 6, "poll.limit", "100 events a page at most"),
    (written("efa", 'items = "/x"'), 6, "poll.items", "no setting `items`"),
    (written("efa", token="NOWHERE"), 5, "poll.token", "NOWHERE is not set"),
]


@pytest.mark.parametrize(("text", "line", "where", "words"), REFUSED)
@pytest.mark.parametrize("command", ["check", "poll"])
def test_list_that_cannot_be_asked_is_refused_with_its_line(
    polling: Shell, command: str, text: str, line: int, where: str, words: str
) -> None:
    polling.config.write_text(text)
    result = polling(command, *(("agent",) if command == "poll" else ()))
    assert result.exit_code == 78
    assert f"line {line}: source.agent.{where}" in result.stderr
    assert words in result.stderr


@pytest.mark.parametrize("spoilt", ["the-key\nsecond", "the-k\u00e9y", "the-key\x01"], ids=ascii)
def test_key_that_no_header_can_carry_is_refused_and_not_shown(
    polling: Shell, monkeypatch: pytest.MonkeyPatch, spoilt: str
) -> None:
    monkeypatch.setenv("AGENT_KEY", spoilt)
    polling.config.write_text(written("efa"))
    result = polling("check")
    assert result.exit_code == 78
    assert "line 5: source.agent.poll.token: env:AGENT_KEY holds more" in result.stderr
    assert "the-k" not in result.output


def test_running_server_is_asked_and_polls_on_a_signal(
    tmp_path: Path, listed: Listed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One process writes; the command only says so. SIGUSR1 has every list read."""
    monkeypatch.setenv("STD_SECRET", SECRET)
    started = settings(listed, every='"1d"')
    with Server(tmp_path / "state", settings=started, env={"AGENT_KEY": TOKEN}) as server:
        serving = Shell(config=server.config, state=server.state)
        wait_for(lambda: len(listed.asked) == 1)
        listed.answers = [(200, page(event(1), cursor="1"))]
        [line] = serving.lines("poll", "agent", "--once")
        assert (line["new"], line["cursor"]) == (1, "1")
        wait_for(lambda: serving.lines("events")[0]["state"] == "applied")
        listed.answers = [(200, page(event(2), cursor="2"))]
        os.kill(server.pid, signal.SIGUSR1)
        wait_for(lambda: len(serving.lines("events")) == 2)
        [stats] = [line for line in serving.lines("stats") if line["source"] == "agent"]
        assert (stats["cursor"], stats["gaps"], stats["loss"]) == ("2", 0, "safe")


def wait_for(done: Callable[[], bool], seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_outage_is_shown_with_what_to_do(polling: Shell, listed: Listed) -> None:
    polling("poll", "agent")
    now = SystemClock().now()
    connection = sqlite3.connect(polling.state / database.FILE_NAME)
    with connection:
        times = (now - 100 * 3_600_000, now)
        connection.execute("INSERT INTO outage (from_at, to_at) VALUES (?, ?)", times)
        connection.execute("UPDATE source SET since = 0")
    connection.close()
    told = polling("stats").stdout
    assert "at risk" in told
    assert "hookbox poll agent" in told
    assert json.loads(polling("stats", "--json").stdout)["loss"] == "at risk"
    polling("poll", "agent")
    assert "recovered by poll" in polling("stats").stdout
