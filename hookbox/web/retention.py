"""What commands ask of the running server about what it keeps. Only through the socket."""

from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Any

from hookbox.runtime import Runtime

Fields = dict[str, Any]
Action = Callable[[Fields], Awaitable[Fields]]

SLICE_MAX_S = 5.0  # the command waits for ten


def retention_actions(runtime: Runtime) -> dict[str, Action]:
    """Action name -> what it does."""

    async def purge(fields: Fields) -> Fields:
        seconds = min(SLICE_MAX_S, float(fields["seconds"]))
        took, done = await runtime.retention.purge_some(seconds)
        return {"took": dict(took), "done": done}

    async def erase(fields: Fields) -> Fields:
        word = runtime.decisions.word(str(fields["who"]), str(fields["reason"]))
        return asdict(await runtime.erasures.erase(str(fields["address"]), word))

    return {"retention.purge": purge, "recipients.erase": erase}
