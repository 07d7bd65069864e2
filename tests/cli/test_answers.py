"""The private door's answers: may this address be mailed? Through the socket and on the port."""

import http.client
import json
import stat
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

import pytest

from hookbox.cli.door import SocketConnection
from hookbox.store.state import SOCKET_NAME
from tests.cli.shell import Shell
from tests.witness.client import SECRET
from tests.witness.server import Server

PATH = "/v1/can-send"


class Asker:
    """A program on this machine that asks the running box."""

    def __init__(self, shell: Shell, server: Server) -> None:
        self.shell, self.server = shell, server

    def token(self) -> str:
        return self.shell("token").stdout.strip()

    def by_socket(self, *to: str, **more: str) -> list[dict[str, Any]]:
        """The answers about these addresses."""
        connection = SocketConnection(self.server.state / SOCKET_NAME, 5)
        status, answer = self._answer(connection, "GET", _query(to, more), {}, None)
        assert status == 200
        return answer["data"]

    def on_port(
        self,
        path: str = f"{PATH}?to=ann@example.com",
        *,
        token: str | None = None,
        body: str | None = None,
        **headers: str,
    ) -> tuple[int, Any]:
        """Status and answer on the loopback port."""
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        if body is not None:
            headers["Content-Type"] = "application/json"
        connection = http.client.HTTPConnection("127.0.0.1", self.server.local_port, timeout=5)
        method = "GET" if body is None else "POST"
        return self._answer(connection, method, path, headers, body)

    def _answer(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: str | None,
    ) -> tuple[int, Any]:
        try:
            connection.request(method, path, body, dict(headers))
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()


def _query(to: tuple[str, ...], more: Mapping[str, str]) -> str:
    return f"{PATH}?{urlencode([*(('to', each) for each in to), *more.items()])}"


@pytest.fixture(scope="module")
def asker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asker]:
    """One box for all questions, in which one address has complained."""
    with Server(tmp_path_factory.mktemp("box") / "state") as server:
        shell = Shell(config=server.config, state=server.state)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("STD_SECRET", SECRET)
            asked = shell("simulate", "std", "complained", "--to", "Ann@Example.com")
        assert asked.exit_code == 0, asked.output
        yield Asker(shell, server)


def test_no_comes_with_its_reason_and_the_event_behind_it(asker: Asker) -> None:
    [told] = asker.by_socket("ann@example.com")
    assert told.pop("since").endswith("Z")
    assert told == {
        "address": "ann@example.com",
        "can_send": False,
        "reason": "complaint",
        "event_id": 1,
        "source": "std",
        "scope": "",
    }


def test_every_address_is_answered_in_the_order_of_the_question(asker: Asker) -> None:
    told = asker.by_socket("bob@example.com", "Ann <ANN@example.com>", "nonsense")
    assert [(each["can_send"], each["reason"]) for each in told] == [
        (True, None),
        (False, "complaint"),
        (False, "not_an_address"),
    ]


def test_port_answers_with_the_token_only(asker: Asker) -> None:
    token = asker.token()
    assert asker.on_port(token=token)[0] == 200
    for wrong in (None, "", token[:-1], f"{token}x", "Bearer", "\u00e9"):
        status, told = asker.on_port(token=wrong)
        assert (status, "data" in told) == (401, False)
    assert asker.on_port(Authorization=f"Basic {token}")[0] == 401
    assert asker.on_port(Authorization=token)[0] == 401


def test_token_does_not_open_the_port_to_web_pages_or_for_commands(asker: Asker) -> None:
    token = asker.token()
    assert asker.on_port(token=token, Host="evil.example")[0] == 403
    assert asker.on_port(token=token, Origin="http://evil.example")[0] == 403
    assert asker.on_port("/v1/control/flush", token=token, body="{}")[0] == 401


def test_renewed_token_counts_at_once_and_the_old_one_no_more(asker: Asker) -> None:
    old = asker.token()
    new = asker.shell("token", "--new").stdout.strip()
    assert new == asker.token() != old
    assert asker.on_port(token=new)[0] == 200
    assert asker.on_port(token=old)[0] == 401


def test_token_is_for_its_owner_only_and_outlives_a_restart(asker: Asker) -> None:
    token = asker.token()
    assert stat.S_IMODE((asker.server.state / "token").stat().st_mode) == 0o600
    asker.server.terminate()
    asker.server.start()
    assert asker.on_port(token=token)[0] == 200


def test_box_that_never_ran_has_no_token_to_print(shell: Shell) -> None:
    result = shell("token")
    assert result.exit_code == 1
    assert "no token" in result.stderr
    made = shell("token", "--new").stdout.strip()
    assert shell("token").stdout.strip() == made


def test_token_that_anybody_could_guess_is_none(shell: Shell) -> None:
    shell.state.mkdir()
    (shell.state / "token").write_text("\n")
    result = shell("token")
    assert result.exit_code == 1
    assert "token --new" in result.stderr


@pytest.mark.parametrize(
    "body",
    ['["ann@example.com", "bob@example.com"]', '{"to": ["ann@example.com", "bob@example.com"]}'],
)
def test_long_lists_are_posted(asker: Asker, body: str) -> None:
    status, told = asker.on_port(PATH, token=asker.token(), body=body)
    assert status == 200
    assert [each["can_send"] for each in told["data"]] == [False, True]


@pytest.mark.parametrize("body", ["{", "3", "[]", "[3]", '{"to": [null]}', "{}", '{"to": {}}'])
def test_question_that_cannot_be_read_is_no_answer(asker: Asker, body: str) -> None:
    status, told = asker.on_port(PATH, token=asker.token(), body=body)
    assert status == 400
    assert "data" not in told


def test_question_is_bounded(asker: Asker) -> None:
    many = json.dumps([f"u{number}@x.org" for number in range(5_001)])
    assert asker.on_port(PATH, token=asker.token(), body=many)[0] == 400
    assert asker.on_port(PATH, token=asker.token())[0] == 400


def test_scope_asks_about_one_list_and_the_global_one(asker: Asker) -> None:
    add = ("suppressions", "add", "news@x.org", "--reason", "a test", "--scope", "news")
    assert asker.shell(*add).exit_code == 0
    assert asker.by_socket("news@x.org")[0]["can_send"] is False
    assert asker.by_socket("news@x.org", scope="news")[0]["can_send"] is False
    assert asker.by_socket("news@x.org", scope="shop")[0]["can_send"] is True
    assert asker.by_socket("ann@example.com", scope="shop")[0]["can_send"] is False


def test_tag_whose_plus_sign_was_not_escaped_is_understood(asker: Asker) -> None:
    add = ("suppressions", "add", "ann+shop@x.org", "--reason", "a test")
    assert asker.shell(*add).exit_code == 0
    status, told = asker.on_port(f"{PATH}?to=ann+shop@x.org", token=asker.token())
    assert status == 200
    assert told["data"][0]["address"] == "ann+shop@x.org"
    assert told["data"][0]["can_send"] is False


@pytest.mark.parametrize(
    "address",
    [
        '"x@y, z"@example.com',
        "o'brien@example.com",
        "'; DROP TABLE suppression; --@example.com",
        "%@example.com",
        "a\0b@example.com",
        "a\ud800b@example.com".encode("utf-8", "surrogatepass").decode("latin-1"),
    ],
)
def test_hostile_address_is_one_address_or_none(asker: Asker, address: str) -> None:
    [told] = asker.by_socket(address)
    assert told["address"] == address
    assert told["reason"] in (None, "not_an_address")
    assert asker.by_socket("ann@example.com")[0]["can_send"] is False
