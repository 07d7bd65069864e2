"""Actions: what commands ask of the running server, by name, and only through the socket."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from hookbox.runtime import Runtime
from hookbox.store.decisions import Word

Fields = dict[str, Any]
Action = Callable[[Fields], Awaitable[Fields]]


def word(runtime: Runtime, fields: Mapping[str, Any]) -> Word:
    """Whose decision it is, and why."""
    return runtime.decisions.word(str(fields["who"]), str(fields["reason"]))
