"""Requests as they go over the wire, for tests that look at framing and statuses."""

import socket
import time
from dataclasses import dataclass

from standardwebhooks import Webhook

from tests.witness.client import SECRET


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes


def signed(
    key: str, body: bytes, *, secret: str = SECRET, at: float | None = None
) -> dict[str, str]:
    """Headers by the official library, so that nothing of ours signs what ours verifies."""
    from datetime import UTC, datetime

    moment = datetime.fromtimestamp(time.time() if at is None else at, UTC)
    return {
        "webhook-id": key,
        "webhook-timestamp": str(int(moment.timestamp())),
        "webhook-signature": Webhook(secret).sign(key, moment, body.decode("latin-1")),
    }


def head(method: str, path: str, headers: dict[str, str]) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def exchange(port: int, *pieces: bytes, timeout_s: float = 10.0, bodiless: bool = False) -> Answer:
    """Send the pieces one after the other and read one answer."""
    with socket.create_connection(("127.0.0.1", port), timeout=timeout_s) as connection:
        for piece in pieces:
            connection.sendall(piece)
        return read_answer(connection, bodiless=bodiless)


def read_answer(connection: socket.socket, *, bodiless: bool = False) -> Answer:
    received = b""
    while b"\r\n\r\n" not in received:
        more = connection.recv(65_536)
        if not more:
            return Answer(0, {}, received)
        received += more
    raw, _, body = received.partition(b"\r\n\r\n")
    first, *lines = raw.decode("latin-1").split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    status = int(first.split()[1])
    none = bodiless or status in (100, 204)
    length = 0 if none else int(headers.get("content-length", "0"))
    while len(body) < length:
        more = connection.recv(65_536)
        if not more:
            break
        body += more
    return Answer(status, headers, body)


def post(
    port: int, path: str, body: bytes, headers: dict[str, str], *, method: str = "POST"
) -> Answer:
    sized = {"Content-Length": str(len(body)), **headers}
    return exchange(port, head(method, path, sized) + body, bodiless=method == "HEAD")
