"""The public door of the running program, request by request."""

import gzip
import json
import socket
import sqlite3
import time
import uuid

import pytest

from tests.serve.wire import exchange, head, post, read_answer, signed
from tests.witness.server import Server

BODY = json.dumps({"type": "email.delivered", "data": {"to": ["zoë@example.com"]}}).encode()
UTF8 = '{"type":"email.delivered","data":{"to":["zoë@example.com"]}}'.encode()


def fresh() -> str:
    """An id that no other test uses."""
    return f"evt_{uuid.uuid4().hex}"


def rows(shared: Server, sql: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(f"file:{shared.database}?mode=ro", uri=True)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


@pytest.mark.parametrize("path", ["/hooks/std", "/hooks/std/", "/hooks/std?x=1", "/hooks/std/?"])
def test_hook_is_served_directly_with_and_without_slash(shared: Server, path: str) -> None:
    answer = post(shared.port, path, BODY, signed(fresh(), BODY))
    assert (answer.status, answer.body) == (200, b'{"status":"accepted"}')


@pytest.mark.parametrize(
    "path",
    ["/hooks//std", "//hooks/std", "/hooks/std//", "/hooks/STD", "/hooks/st%64", "/hooks/nope",
     "/hooks/", "/hooks", "/hooksstd", "/", "/healthz", "/v1/control/flush", "/hooks/std/x",
     "/hooks/../healthz"],
)  # fmt: skip
def test_everything_else_is_not_found_and_never_redirected(shared: Server, path: str) -> None:
    for method in ("POST", "GET", "HEAD", "OPTIONS"):
        answer = post(shared.port, path, b"", {}, method=method)
        assert answer.status == 404, (method, path)
        assert "location" not in answer.headers


def test_look_before_the_webhook_is_made_is_friendly(shared: Server) -> None:
    answers = {
        method: post(shared.port, "/hooks/std", b"", {}, method=method)
        for method in ("HEAD", "GET", "OPTIONS", "PUT", "DELETE", "PATCH")
    }
    statuses = {method: answer.status for method, answer in answers.items()}
    assert statuses == {
        "HEAD": 200, "GET": 200, "OPTIONS": 204, "PUT": 405, "DELETE": 405, "PATCH": 405,
    }  # fmt: skip
    assert answers["GET"].body == b""
    assert "POST" in answers["OPTIONS"].headers["allow"]


@pytest.mark.parametrize(
    "content_type",
    ["application/json", "text/plain; charset=UTF-8", "application/x-www-form-urlencoded",
     "application/octet-stream", "nonsense", None],
)  # fmt: skip
def test_content_type_decides_nothing(shared: Server, content_type: str | None) -> None:
    typed = {"Content-Type": content_type} if content_type is not None else {}
    answer = post(shared.port, "/hooks/std", BODY, {**signed(fresh(), BODY), **typed})
    assert answer.status == 200


def test_chunked_body_split_inside_a_character_and_a_key(shared: Server) -> None:
    chunks = b""
    for cut in (UTF8[:3], UTF8[3:41], UTF8[41:42], UTF8[42:]):
        chunks += b"%x\r\n%s\r\n" % (len(cut), cut)
    headers = {**_latin1_signed(fresh(), UTF8), "Transfer-Encoding": "chunked"}
    answer = exchange(shared.port, head("POST", "/hooks/std", headers), chunks, b"0\r\n\r\n")
    assert answer.status == 200


def _latin1_signed(key: str, body: bytes) -> dict[str, str]:
    import base64
    import hashlib
    import hmac

    from tests.witness.client import SECRET_BYTES

    stamp = str(int(time.time()))
    text = f"{key}.{stamp}.".encode() + body
    digest = hmac.new(SECRET_BYTES, text, hashlib.sha256).digest()
    return {
        "webhook-id": key,
        "webhook-timestamp": stamp,
        "webhook-signature": "v1," + base64.b64encode(digest).decode(),
    }


def test_expect_continue_is_answered_before_the_body(shared: Server) -> None:
    headers = {
        **signed(fresh(), BODY), "Content-Length": str(len(BODY)), "Expect": "100-continue",
    }  # fmt: skip
    with socket.create_connection(("127.0.0.1", shared.port), timeout=10) as connection:
        connection.sendall(head("POST", "/hooks/std", headers))
        assert read_answer(connection).status == 100
        connection.sendall(BODY)
        assert read_answer(connection).status == 200


def test_declared_length_above_the_cap_is_refused_before_the_body(shared: Server) -> None:
    headers = {"Content-Length": str(2 << 20)}
    answer = exchange(shared.port, head("POST", "/hooks/std", headers))
    assert answer.status == 413


def test_endless_chunks_are_cut_off_at_the_cap(shared: Server) -> None:
    with socket.create_connection(("127.0.0.1", shared.port), timeout=10) as connection:
        connection.sendall(head("POST", "/hooks/std", {"Transfer-Encoding": "chunked"}))
        chunk = b"10000\r\n" + b"x" * 65_536 + b"\r\n"
        sent = 0
        try:
            while sent < 64 << 20:
                connection.sendall(chunk)
                sent += len(chunk)
        except OSError:
            pass
        else:
            pytest.fail("64 MiB were taken")
    assert sent <= 16 << 20  # what the kernel holds on both sides, and our own cap
    assert post(shared.port, "/hooks/std", BODY, signed(fresh(), BODY)).status == 200


@pytest.mark.parametrize("header", ["webhook-id", "webhook-timestamp", "webhook-signature"])
def test_header_sent_twice_is_ambiguous_and_refused(shared: Server, header: str) -> None:
    headers = signed(fresh(), BODY)
    twice = head("POST", "/hooks/std", {**headers, "Content-Length": str(len(BODY))})
    twice = twice[:-2] + f"{header}: {headers[header]}\r\n\r\n".encode()
    assert exchange(shared.port, twice + BODY).status == 401


@pytest.mark.parametrize("byte", [b"\x80", b"\xe9", b"\xff", b"\t"])
def test_strange_bytes_in_a_header_are_a_refusal_and_never_our_failure(
    shared: Server, byte: bytes
) -> None:
    for header in ("webhook-id", "webhook-timestamp", "webhook-signature"):
        headers = {**signed(fresh(), BODY), "Content-Length": str(len(BODY))}
        headers[header] = f"a{byte.decode('latin-1')}b"
        answer = exchange(shared.port, head("POST", "/hooks/std", headers) + BODY)
        assert answer.status in (400, 401)
        assert answer.body in (b"", b'{"status":"refused"}')


def test_gzip_is_verified_as_received_and_inflated_afterwards(shared: Server) -> None:
    packed = gzip.compress(BODY, mtime=0)
    encoding = {"Content-Encoding": "gzip"}
    key = fresh()
    good = post(shared.port, "/hooks/std", packed, {**_latin1_signed(key, packed), **encoding})
    plain = post(shared.port, "/hooks/std", packed, {**_latin1_signed(key, BODY), **encoding})
    assert (good.status, plain.status) == (200, 401)
    assert rows(shared, f"SELECT content FROM events WHERE key = '{key}'") == [(BODY.decode(),)]


def test_authentic_bomb_is_kept_and_not_inflated_past_its_cap(shared: Server) -> None:
    bomb = gzip.compress(b"0" * (200 << 20), mtime=0)
    key = fresh()
    headers = {**_latin1_signed(key, bomb), "Content-Encoding": "gzip"}
    assert post(shared.port, "/hooks/std", bomb, headers).status == 200
    assert rows(shared, f"SELECT count(*) FROM quarantine WHERE key = '{key}'") == [(1,)]


def test_sender_that_hangs_up_costs_nobody_anything(shared: Server) -> None:
    for n in range(20):
        headers = {**signed(f"cut_{n}", BODY), "Content-Length": str(len(BODY))}
        with socket.create_connection(("127.0.0.1", shared.port), timeout=10) as connection:
            connection.sendall(head("POST", "/hooks/std", headers) + BODY[: 10 if n % 2 else None])
    assert post(shared.port, "/hooks/std", BODY, signed(fresh(), BODY)).status == 200
    stored = {key for (key,) in rows(shared, "SELECT key FROM events")}
    assert not stored & {f"cut_{n}" for n in range(1, 20, 2)}
    for n in range(0, 20, 2):
        answer = post(shared.port, "/hooks/std", BODY, signed(f"cut_{n}", BODY))
        assert answer.status == 200
    assert rows(shared, "SELECT count(*) FROM events WHERE key GLOB 'cut_*'") == [(10,)]


def test_stranger_learns_nothing_from_a_refusal(shared: Server) -> None:
    before = rows(shared, "SELECT count(*) FROM delivery")
    answer = post(shared.port, "/hooks/std", BODY, {**signed(fresh(), BODY), "webhook-id": "x"})
    assert (answer.status, answer.body) == (401, b'{"status":"refused"}')
    assert "server" not in answer.headers
    assert rows(shared, "SELECT count(*) FROM delivery") == before


def test_private_door_answers_health_to_its_own_name_only(shared: Server) -> None:
    def ask(path: str, host: str, **headers: str) -> int:
        lines = [f"GET {path} HTTP/1.1", f"Host: {host}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        return exchange(shared.local_port, "\r\n".join([*lines, "", ""]).encode()).status

    own = f"127.0.0.1:{shared.local_port}"
    assert ask("/healthz", own) == 200
    assert ask("/readyz", own) == 200
    assert ask("/healthz", "evil.example") == 403
    assert ask("/healthz", own, Origin="https://evil.example") == 403
    flush = exchange(
        shared.local_port,
        head(
            "POST", "/v1/control/flush", {"Content-Length": "2", "Content-Type": "application/json"}
        )
        + b"{}",
    )
    assert flush.status == 401
