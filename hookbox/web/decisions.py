"""What commands ask of the running server about addresses and events. Only through the socket."""

from functools import partial

from hookbox.assembly import fingerprint
from hookbox.control import Control
from hookbox.errors import OperatorError
from hookbox.rules.suppression import Cause
from hookbox.runtime import Runtime
from hookbox.store.decisions import Verb
from hookbox.store.suppressions import Wanted
from hookbox.web.actions import Action, Fields, word


def decision_actions(runtime: Runtime) -> dict[str, Action]:
    """Action name -> what it does."""
    decisions, told = runtime.decisions, partial(word, runtime)

    async def add(fields: Fields) -> Fields:
        wanted = [Wanted(**{**each, "cause": Cause(each["cause"])}) for each in fields["wanted"]]
        return {"added": await decisions.suppress(wanted, Verb(fields["verb"]), told(fields))}

    async def lift(fields: Fields) -> Fields:
        await decisions.lift(fields["address"], fields["scope"], told(fields))
        return {}

    async def forget(fields: Fields) -> Fields:
        return {"event_id": await decisions.forget(fields["source"], fields["key"], told(fields))}

    async def replay(fields: Fields) -> Fields:
        ids = [int(each) for each in fields["event_ids"]]
        replays = await decisions.replay(ids, [str(each) for each in fields["to"]], told(fields))
        return {"queued": replays.queued, "refused": replays.refused}

    async def renew_token(_: Fields) -> Fields:
        Control(runtime).renew_token()
        return {"token": runtime.token}

    return {
        "suppressions.add": add,
        "suppressions.lift": lift,
        "events.forget": forget,
        "events.replay": replay,
        "token.renew": renew_token,
    }


def rebuild_actions(runtime: Runtime) -> dict[str, Action]:
    """What a rebuild needs of the running server: a standstill and the swap."""

    async def hold(fields: Fields) -> Fields:
        if fields["settings"] != fingerprint(runtime.settings):
            raise OperatorError(
                "the server runs with another configuration than the file says; have it read the "
                "file first (SIGHUP)"
            )
        return {"position": await runtime.standstill.begin()}

    async def swap(fields: Fields) -> Fields:
        position = int(fields["position"])
        done = await runtime.standstill.swap(fields["scratch"], position, word(runtime, fields))
        return {"rows": done}

    async def go_on(_: Fields) -> Fields:
        runtime.standstill.end()
        return {}

    return {"rebuild.hold": hold, "rebuild.swap": swap, "rebuild.end": go_on}
