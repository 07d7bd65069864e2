"""The pull door and the tail, on the sockets of the running program."""

import contextlib
import http.client
import json
import socket
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import pytest

from hookbox.cli.door import SocketConnection
from hookbox.model import Kind
from hookbox.store.state import SOCKET_NAME
from hookbox.web.feed import POLLS_MAX, TAILS_MAX
from tests.serve.test_life import until
from tests.serve.wire import post, signed
from tests.witness import client
from tests.witness.server import Server

PATIENCE_S = 20


def send(server: Server, *keys: str, kind: str = "delivered") -> None:
    for key in keys:
        body = json.dumps({"type": f"email.{kind}", "data": {"to": ["ann@example.com"]}}).encode()
        assert post(server.port, "/hooks/std", body, signed(key, body)).status == 200


def send_large(server: Server, count: int) -> None:
    """More than sockets hold for a reader that does not read."""
    hooks = (client.hook(f"large-{n}", bytes_min=900_000) for n in range(count))
    assert len(client.load(server.port, hooks, connections=2).acknowledged) == count


def token(server: Server) -> dict[str, str]:
    return {"Authorization": f"Bearer {(server.state / 'token').read_text().strip()}"}


def ask(server: Server, path: str, headers: dict[str, str] | None = None) -> tuple[int, Any]:
    """Status and answer on the loopback port."""
    connection = http.client.HTTPConnection("127.0.0.1", server.local_port, timeout=PATIENCE_S)
    with contextlib.closing(connection):
        connection.request("GET", path, headers=token(server) if headers is None else headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())


def page(server: Server, query: str) -> tuple[list[int], int, bool]:
    """Ids, cursor, and whether there is more."""
    status, told = ask(server, f"/v1/events?{query}")
    assert status == 200, told
    return [each["id"] for each in told["data"]], told["next_cursor"], told["has_more"]


def settled(server: Server, count: int) -> None:
    """Wait until so many events can be read."""
    until(lambda: page(server, f"after={count - 1}&limit=1")[0] == [count])


class Follower:
    """A reader of the tail."""

    def __init__(self, server: Server, query: str = "", **headers: str) -> None:
        self._connection = http.client.HTTPConnection(
            "127.0.0.1", server.local_port, timeout=PATIENCE_S
        )
        self._connection.request(
            "GET", f"/v1/events/tail?{query}", headers={**token(server), **headers}
        )
        self.answer = self._connection.getresponse()

    def read(self) -> dict[str, str]:
        """The next event, or the next sign of life."""
        fields: dict[str, str] = {}
        while (line := self.answer.readline().decode()) != "\n":
            assert line.endswith("\n"), "it ended"
            name, _, text = line[:-1].partition(": ")
            fields[name] = text
        return fields

    def rest(self) -> bytes:
        return self.answer.read()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A box with six events: 1 to 4 delivered, 5 opened, 6 bounced."""
    with Server(tmp_path_factory.mktemp("filled") / "state") as server:
        send(server, "a", "b", "c", "d")
        send(server, "e", kind="opened")
        send(server, "f", kind="bounced")
        settled(server, 6)
        yield server


# --- pages


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", ([1, 2, 3, 4, 5, 6], 6, False)),
        ("limit=2", ([1, 2], 2, True)),
        ("after=2&limit=2", ([3, 4], 4, True)),
        ("after=4&limit=2", ([5, 6], 6, False)),
        ("after=6", ([], 6, False)),
        ("after=900", ([], 900, False)),
        ("kinds=bounced", ([6], 6, False)),
        ("kinds=opened,bounced", ([5, 6], 6, False)),
        ("kinds=opened&kinds=bounced&limit=1", ([5], 5, True)),
        ("kinds=complained", ([], 6, False)),
        ("after=6&wait=0.05", ([], 6, False)),
        ("after=2&wait=30&limit=1", ([3], 3, True)),
        (f"after={2**63 - 1}", ([], 2**63 - 1, False)),
    ],
)
def test_pages_follow_the_cursor(
    filled: Server, query: str, expected: tuple[list[int], int, bool]
) -> None:
    assert page(filled, query) == expected


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("limit=0", "from 1 to 100"),
        ("limit=101", "from 1 to 100"),
        ("limit=ten", "from 1 to 100"),
        ("limit=%D9%A1", "from 1 to 100"),
        ("limit=1&limit=2", "more than once"),
        ("after=-1", "id of an event"),
        ("after=", "id of an event"),
        (f"after={2**63}", "id of an event"),
        ("after=" + "9" * 5_000, "id of an event"),
        ("wait=31", "from 0 to 30"),
        ("wait=nan", "from 0 to 30"),
        ("wait=-1", "from 0 to 30"),
        ("kind=bounced", "after, limit, kinds, wait"),
        ("kinds=bounce", "'bounce'"),
    ],
)
def test_what_cannot_be_meant_is_told_in_a_sentence(filled: Server, query: str, told: str) -> None:
    status, answer = ask(filled, f"/v1/events?{query}")
    assert status == 400
    assert told in answer["error"]


def test_unknown_kind_is_answered_with_those_that_there_are(filled: Server) -> None:
    _, answer = ask(filled, "/v1/events?kinds=bounce")
    assert all(kind in answer["error"] for kind in Kind)


def test_one_event_is_asked_for_by_its_id(filled: Server) -> None:
    status, event = ask(filled, "/v1/events/6")
    assert (status, event["id"], event["kind"], event["key"]) == (200, 6, "bounced", "f")
    assert [each["recipient"] for each in event["notifications"]] == ["ann@example.com"]
    assert event == ask(filled, "/v1/events?after=5")[1]["data"][0]
    for missing in ("7", "0", "-1", "9" * 30, "x"):
        assert ask(filled, f"/v1/events/{missing}")[0] == 404


@pytest.mark.parametrize("path", ["/v1/events", "/v1/events/1", "/v1/events/tail?after=0"])
def test_events_are_for_those_with_the_token_and_for_no_web_page(filled: Server, path: str) -> None:
    assert ask(filled, path, {})[0] == 401
    assert ask(filled, path, {**token(filled), "Origin": "http://evil.example"})[0] == 403
    assert ask(filled, path, {**token(filled), "Host": "evil.example"})[0] == 403
    socket_door = SocketConnection(filled.state / SOCKET_NAME, PATIENCE_S)
    with contextlib.closing(socket_door):
        socket_door.request("GET", path)
        assert socket_door.getresponse().status == 200


def test_whoever_waits_is_answered_as_soon_as_an_event_is_applied(server: Server) -> None:
    answers: list[tuple[list[int], int, bool]] = []
    threads = [
        threading.Thread(target=lambda: answers.append(page(server, "wait=30&kinds=bounced")))
        for _ in range(5)
    ]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    send(server, "a")
    send(server, "b", kind="bounced")
    for thread in threads:
        thread.join()
    assert answers == [([2], 2, False)] * 5
    assert time.monotonic() - began < 15


def test_places_of_those_who_wait_are_limited_and_free_when_they_hang_up(server: Server) -> None:
    waiting = []
    for _ in range(POLLS_MAX):
        connection = http.client.HTTPConnection("127.0.0.1", server.local_port)
        connection.request("GET", "/v1/events?wait=30", headers=token(server))
        waiting.append(connection)
    until(lambda: ask(server, "/v1/events?wait=0.01")[0] == 503)
    assert page(server, "") == ([], 0, False)  # who does not wait needs no place
    waiting.pop().close()
    until(lambda: ask(server, "/v1/events?wait=0.01")[0] == 200)
    send(server, "a")
    for connection in waiting:
        assert json.loads(connection.getresponse().read())["next_cursor"] == 1
        connection.close()


# --- the tail


def test_tail_tells_where_it_begins_and_each_event_on_a_line(filled: Server) -> None:
    with Follower(filled, "after=4") as tail:
        assert tail.answer.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert tail.read() == {"": "nothing new", "id": "4"}
        told = [tail.read() for _ in range(2)]
    assert [(each["id"], each["event"]) for each in told] == [("5", "opened"), ("6", "bounced")]
    assert [json.loads(each["data"]) for each in told] == ask(filled, "/v1/events?after=4")[1][
        "data"
    ]


def test_reader_that_comes_back_goes_on_after_the_last_id(filled: Server) -> None:
    with Follower(filled, "after=0", **{"Last-Event-ID": "5"}) as tail:
        assert [tail.read()["id"] for _ in range(2)] == ["5", "6"]
    with Follower(filled, **{"Last-Event-ID": "x"}) as tail:
        assert tail.answer.status == 400


def test_tail_begins_with_what_comes_next_and_keeps_to_its_kinds(server: Server) -> None:
    send(server, "a", kind="bounced")
    settled(server, 1)
    with Follower(server, "kinds=bounced,complained") as tail:
        assert tail.read()["id"] == "1"
        send(server, "b")
        send(server, "c", kind="bounced")
        assert tail.read()["id"] == "3"


def test_event_that_could_not_be_applied_is_a_plain_message(server: Server) -> None:
    """Nobody knows what it says, so it has no kind."""
    send(server, "a")
    settled(server, 1)
    server.terminate()
    connection = sqlite3.connect(server.database)
    with connection:
        connection.execute("UPDATE event SET state = 'quarantined', kind = NULL")
    connection.close()
    server.start()
    with Follower(server, "after=0") as tail:
        tail.read()
        told = tail.read()
    assert set(told) == {"id", "data"}
    assert json.loads(told["data"])["state"] == "quarantined"


def test_tails_are_limited_and_their_places_free_when_they_hang_up(server: Server) -> None:
    with contextlib.ExitStack() as stack:
        tails = [stack.enter_context(Follower(server)) for _ in range(TAILS_MAX)]
        with Follower(server) as refused:
            assert refused.answer.status == 503
            assert refused.answer.headers["retry-after"]
        assert ask(server, "/healthz")[0] == 200
        tails.pop().__exit__()

        def free() -> bool:
            with Follower(server) as tail:
                return tail.answer.status == 200

        until(free)
        send(server, "a")
        for tail in tails:
            assert [tail.read()["id"] for _ in range(2)] == ["0", "1"]


def test_stop_ends_who_waits_and_does_not_wait_for_them(server: Server) -> None:
    """The tail's answer is whole, so that its reader knows to come back."""
    polled: list[tuple[list[int], int, bool]] = []
    poll = threading.Thread(target=lambda: polled.append(page(server, "after=7&wait=30")))
    poll.start()
    with Follower(server) as tail:
        tail.read()
        began = time.monotonic()
        assert server.terminate() == 0
        assert time.monotonic() - began < 5
        tail.rest()
    poll.join()
    assert polled == [([], 7, False)]
    assert "ERROR" not in server.log_text()


def test_reader_that_reads_nothing_holds_up_neither_events_nor_the_stop(server: Server) -> None:
    send_large(server, 20)
    settled(server, 20)
    lazy = socket.create_connection(("127.0.0.1", server.local_port))
    with lazy:
        fields = "".join(f"{name}: {text}\r\n" for name, text in token(server).items())
        lazy.sendall(
            f"GET /v1/events/tail?after=0 HTTP/1.1\r\nHost: 127.0.0.1\r\n{fields}\r\n".encode()
        )
        assert lazy.recv(10) == b"HTTP/1.1 2"
        with Follower(server, "after=20") as brisk:
            brisk.read()
            send(server, "next")
            assert brisk.read()["id"] == "21"
        began = time.monotonic()
        assert server.terminate() == 0
        assert time.monotonic() - began < 10


def test_tail_of_a_long_past_holds_a_page_of_it_at_most(server: Server) -> None:
    """Eight times all that they have not read would be 200 MB."""
    send_large(server, 30)
    settled(server, 30)
    held_before = _resident_bytes(server)
    connections = []
    fields = "".join(f"{name}: {text}\r\n" for name, text in token(server).items())
    for _ in range(8):
        lazy = socket.create_connection(("127.0.0.1", server.local_port))
        lazy.sendall(
            f"GET /v1/events/tail?after=0 HTTP/1.1\r\nHost: 127.0.0.1\r\n{fields}\r\n".encode()
        )
        assert lazy.recv(10) == b"HTTP/1.1 2"
        connections.append(lazy)
    assert all(ask(server, "/healthz")[0] == 200 for _ in range(100))
    grown = _resident_bytes(server) - held_before
    for lazy in connections:
        lazy.close()
    assert grown < 8 * 8 * 1024 * 1024


def _resident_bytes(server: Server) -> int:
    pages = int(Path(f"/proc/{server.pid}/statm").read_text().split()[1])
    return pages * 4096
