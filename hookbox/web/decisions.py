"""What commands ask of the running server about addresses and events. Only through the socket."""

from collections.abc import Awaitable, Callable
from typing import Any

from hookbox.rules.suppression import Cause
from hookbox.runtime import Runtime
from hookbox.store.decisions import Verb, Word
from hookbox.store.suppressions import Wanted

Fields = dict[str, Any]
Action = Callable[[Fields], Awaitable[Fields]]


def decision_actions(runtime: Runtime) -> dict[str, Action]:
    """Action name -> what it does."""
    decisions = runtime.decisions

    def word(fields: Fields) -> Word:
        return decisions.word(str(fields["who"]), str(fields["reason"]))

    async def add(fields: Fields) -> Fields:
        wanted = [Wanted(**{**each, "cause": Cause(each["cause"])}) for each in fields["wanted"]]
        return {"added": await decisions.suppress(wanted, Verb(fields["verb"]), word(fields))}

    async def lift(fields: Fields) -> Fields:
        await decisions.lift(fields["address"], fields["scope"], word(fields))
        return {}

    async def forget(fields: Fields) -> Fields:
        return {"event_id": await decisions.forget(fields["source"], fields["key"], word(fields))}

    async def replay(fields: Fields) -> Fields:
        return {"replay": await decisions.replay(int(fields["event_id"]), word(fields))}

    async def renew_token(_: Fields) -> Fields:
        runtime.renew_token()
        return {"token": runtime.token}

    return {
        "suppressions.add": add,
        "suppressions.lift": lift,
        "events.forget": forget,
        "events.replay": replay,
        "token.renew": renew_token,
    }
