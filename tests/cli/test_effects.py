"""Effects over HTTP: claim, renew, complete, abandon, look; on the port and through the socket."""

import http.client
import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import pytest

from hookbox.cli.door import SocketConnection
from hookbox.store.state import SOCKET_NAME
from tests.cli.shell import Shell
from tests.witness.server import Server

CLAIM = {"do": "claim", "who": "mailer", "lease": "5m", "if_unknown": "stop"}


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    told: dict[str, Any]
    headers: Mapping[str, str]


def asked(shell: Shell, path: str, body: object = None, raw: bytes | None = None) -> Answer:
    """Through the socket: POST with a body, GET without."""
    connection = SocketConnection(shell.state / SOCKET_NAME, 5)
    content = raw if body is None else json.dumps(body)
    try:
        connection.request(
            "GET" if content is None else "POST",
            f"/v1/effects/{path}",
            content,
            {"Content-Type": "application/json"},
        )
        answer = connection.getresponse()
        return Answer(answer.status, json.loads(answer.read()), answer.headers)
    finally:
        connection.close()


def won(shell: Shell, path: str, **other: str) -> str:
    """The token of a claim."""
    answer = asked(shell, path, {**CLAIM, **other})
    assert (answer.status, answer.told["outcome"]) == (200, "won"), answer
    token: str = answer.told["token"]
    return token


def test_effect_from_claim_to_result(running: Shell, key: str) -> None:
    path = quote(key)
    token = won(running, path)
    assert asked(running, path).told["outcome"] == "in_progress"
    assert asked(running, path, {"do": "renew", "token": token}).told["outcome"] == "renewed"
    done = asked(running, path, {"do": "complete", "token": token, "result": "message 7"})
    assert (done.status, done.told["outcome"]) == (200, "done")
    again = asked(running, path, CLAIM)
    assert (again.status, again.told["outcome"], again.told["result"]) == (200, "done", "message 7")
    assert "token" not in again.told
    assert set(again.told) == {
        *("key", "outcome", "claimed_by", "claimed_at", "lease_until", "completed_at", "result")
    }


def test_in_progress_says_who_has_it_and_when_to_ask_again(running: Shell, key: str) -> None:
    won(running, quote(key))
    second = asked(running, quote(key), {**CLAIM, "who": "another"})
    assert (second.status, second.told["outcome"]) == (409, "in_progress")
    assert second.told["claimed_by"] == "mailer"
    assert 290 < int(second.headers["Retry-After"]) <= 300


def test_unknown_is_answered_by_the_callers_policy(running: Shell, key: str) -> None:
    late = won(running, quote(key), lease="1s")
    while (second := asked(running, quote(key), CLAIM)).told["outcome"] == "in_progress":
        assert second.headers["Retry-After"] == "1"
    assert (second.status, second.told["outcome"]) == (409, "unknown")
    assert "Retry-After" not in second.headers
    retried = asked(running, quote(key), {**CLAIM, "who": "retrier", "if_unknown": "retry"})
    assert (retried.status, retried.told["outcome"]) == (200, "won")
    assert retried.told["unknown_before"]["claimed_by"] == "mailer"
    fenced = asked(running, quote(key), {"do": "complete", "token": late, "result": "late"})
    assert (fenced.status, fenced.told["outcome"]) == (409, "fenced")
    assert (fenced.told["claimed_by"], fenced.told["result"]) == ("retrier", None)


def test_abandoned_effect_may_be_claimed_at_once(running: Shell, key: str) -> None:
    token = won(running, quote(key))
    abandoned = asked(running, quote(key), {"do": "abandon", "token": token})
    assert (abandoned.status, abandoned.told) == (200, {"key": key, "outcome": "abandoned"})
    won(running, quote(key))


@pytest.mark.parametrize("do", ["complete", "renew", "abandon"])
def test_unknown_key_is_not_found(running: Shell, key: str, do: str) -> None:
    assert asked(running, quote(key)).status == 404
    assert asked(running, quote(key), {"do": do, "token": "t"}).status == 404


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"{", b"[]", b"3", b"null", b"{}", b'"claim"', b'{"do": 3}', b'{"do": "dance"}'),
        *(
            json.dumps({**CLAIM, **wrong}).encode()
            for wrong in (
                {"lease": "soon"},
                {"lease": 5},
                {"lease": "25h"},
                {"if_unknown": "hope"},
                {"if_unknown": None},
                {"who": ""},
                {"who": ["mailer"]},
                {"who": "a\nb"},
                {"who": None},
                {"if_unkown": "retry"},
                {"token": "mine"},
            )
        ),
        b"[" * 100_000,
        b'{"do": "renew", "token": "t", "lease": "1h"}',
        b'{"do": "complete"}',
        b'{"do": "complete", "token": 7}',
        b'{"do": "complete", "token": "t", "result": {}}',
        b'{"do": "complete", "token": "t", "result": "\\ud800"}',
        b'{"do": "complete", "token": "t", "result": "' + b"x" * 65_537 + b'"}',
    ],
    ids=lambda body: body[:60].decode(),
)
def test_what_cannot_be_read_is_400_and_claims_nothing(running: Shell, body: bytes) -> None:
    answer = asked(running, "malformed", raw=body)
    assert answer.status == 400
    assert answer.told["error"]
    assert asked(running, "malformed").status == 404


@pytest.mark.parametrize("path", ["", "%ff", "a%00b", "%0a", "k" * 201, quote("é") * 201])
def test_key_that_cannot_be_taken_is_400(running: Shell, path: str) -> None:
    assert asked(running, path, CLAIM).status == 400


@pytest.mark.parametrize(
    "keys",
    [
        ("a/b", "a//b", "/a/b", "a/b/", "a/./b", "a/../b", "a%2Fb"),
        ("é" * 200, "e\u0301", "é", "E"),
        (" ", "  ", "+", "?", "#", "%", "%20"),
    ],
)
def test_different_keys_are_never_one(running: Shell, keys: tuple[str, ...]) -> None:
    for key in keys:
        won(running, quote(key, safe=""))
    for key in keys:
        assert asked(running, quote(key, safe="")).told["key"] == key


def test_slash_in_a_key_may_stand_as_it_is(running: Shell) -> None:
    won(running, "reply/17")
    assert asked(running, "reply%2F17").told["outcome"] == "in_progress"


def test_port_asks_for_the_token(running: Shell, shared_server: Server) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", shared_server.local_port, timeout=5)
    token = running("token").stdout.strip()
    for headers, status in (({}, 401), ({"Authorization": f"Bearer {token}"}, 404)):
        connection.request("GET", "/v1/effects/never-claimed", headers=headers)
        answer = connection.getresponse()
        answer.read()
        assert answer.status == status
    connection.close()


def test_of_many_who_claim_at_once_one_wins(running: Shell, key: str) -> None:
    outcomes: list[str] = []

    def claim() -> None:
        outcomes.append(asked(running, quote(key), CLAIM).told["outcome"])

    threads = [threading.Thread(target=claim) for _ in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["in_progress"] * 31 + ["won"]
