"""The running server's private door, and what to do when nobody is behind it.

Exactly one process writes. A command that changes something asks the server if one runs, else it
takes the server's place for a moment. That choice is made here and nowhere else.
"""

import http.client
import json
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hookbox import errors
from hookbox.cli import terminal
from hookbox.cli.box import Box
from hookbox.errors import OperatorError, StoreBusy
from hookbox.store import database
from hookbox.store.connections import Transaction
from hookbox.store.state import SOCKET_NAME, prepare_state

ANSWER_MAX_S = 10.0  # the longest thing asked for is one commit behind a busy disk

Fields = Mapping[str, Any]


class SocketConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: Path, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


def change(
    box: Box, action: str, fields: Fields, offline: Callable[[Transaction], Fields]
) -> Fields:
    """Have the running server do `action`, or do `offline` in a transaction of our own.

    Raises StoreBusy for a server that holds the lock but does not answer (yet, or any more).
    """
    answer = ask(box.state, action, fields)
    if answer is not None:
        return answer
    prepare_state(box.state)
    with database.exclusive(box.state) as run:
        return run(offline)


def flush(box: Box) -> bool:
    """Have the counts written that the running server holds in memory; whether one runs."""
    try:
        return ask(box.state, "flush", {}) is not None
    except StoreBusy as error:
        terminal.say(f"{error}; what was counted in the last minute may be missing")
        return True


def ask(state: Path, action: str, fields: Fields, timeout_s: float = ANSWER_MAX_S) -> Fields | None:
    """What the running server answers; None when none runs. Raises what it raised."""
    connection = SocketConnection(state / SOCKET_NAME, timeout_s)
    try:
        connection.request(
            "POST",
            f"/v1/control/{action}",
            json.dumps(fields),
            {"Content-Type": "application/json"},
        )
        response = connection.getresponse()
        return _understood(response.status, response.read())
    except (FileNotFoundError, ConnectionRefusedError):
        return None
    except (TimeoutError, ConnectionError, http.client.HTTPException) as error:
        raise StoreBusy(f"the running server did not answer ({error!r})") from error
    finally:
        connection.close()


def _understood(status: int, body: bytes) -> Fields:
    answer: dict[str, Any] = json.loads(body)
    if status == 200:
        return answer
    named = getattr(errors, str(answer.get("kind")), OperatorError)
    raise named(answer["error"])
