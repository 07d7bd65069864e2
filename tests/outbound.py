"""A guard over every socket: a test says where the process may go, and hears where it went.

It listens to the interpreter's own audit events, so no client, library or resolver gets past it.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class Outbound:
    """What was connected to and looked up while the guard was up, and what is allowed."""

    allowed: set[tuple[str, int]] = field(default_factory=set)
    connects: list[object] = field(default_factory=list)
    lookups: list[str] = field(default_factory=list)


class NotAllowed(BaseException):
    """Beyond every `except Exception`: nothing may swallow it."""


_guards: list[Outbound] = []


def _audit(event: str, arguments: tuple[object, ...]) -> None:
    if not _guards:
        return
    guard = _guards[-1]
    if event == "socket.getaddrinfo":
        guard.lookups.append(str(arguments[0]))
        raise NotAllowed(f"looked up {arguments[0]}")
    if event in ("socket.connect", "socket.sendto"):
        address = arguments[1]
        where = address[:2] if isinstance(address, tuple) else address
        guard.connects.append(where)
        if where not in guard.allowed:
            raise NotAllowed(f"connected to {where}")


sys.addaudithook(_audit)


@contextmanager
def guarded(*allowed: tuple[str, int]) -> Iterator[Outbound]:
    """Inside, the process may connect to these addresses and to nothing else."""
    guard = Outbound(allowed=set(allowed))
    _guards.append(guard)
    try:
        yield guard
    finally:
        _guards.remove(guard)
