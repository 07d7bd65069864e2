"""Server-sent events of the running server, read from its private door."""

import contextlib
import http.client
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hookbox.cli.door import SocketConnection
from hookbox.errors import OperatorError
from hookbox.store.state import SOCKET_NAME

SILENCE_MAX_S = 40.0  # the server says something every 15 s


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """How far the reader has come, and the event that it came to; None where nothing is new."""

    id: int
    document: dict[str, Any] | None


def read(state: Path, path: str) -> Iterator[Sent]:
    """What is sent until the connection ends, however it does. Raises OperatorError when no server
    is there, or it refuses.
    """
    with contextlib.closing(SocketConnection(state / SOCKET_NAME, SILENCE_MAX_S)) as connection:
        try:
            yield from _events(_answer(connection, path))
        except (ConnectionError, TimeoutError, http.client.HTTPException):
            return


def _answer(connection: SocketConnection, path: str) -> http.client.HTTPResponse:
    try:
        connection.request("GET", path)
    except (FileNotFoundError, ConnectionRefusedError) as error:
        raise OperatorError("no server runs here; start it with: hookbox serve") from error
    response = connection.getresponse()
    if response.status != 200:
        raise OperatorError(f"the server says: {json.loads(response.read())['error']}")
    return response


def _events(lines: Iterable[bytes]) -> Iterator[Sent]:
    """Blank lines end events; a line without a name is a comment."""
    fields: dict[str, str] = {}
    for line in lines:
        name, _, text = line.decode().rstrip("\n").partition(": ")
        if name:
            fields[name] = text
            continue
        if "id" in fields:
            told = fields.get("data")
            yield Sent(id=int(fields["id"]), document=None if told is None else json.loads(told))
        fields = {}
