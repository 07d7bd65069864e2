"""The outbox at the private door: what commands ask, and replays for programs."""

from collections.abc import Collection
from typing import Any

from litestar import Response, post
from litestar.exceptions import ValidationException
from litestar.handlers import BaseRouteHandler

from hookbox.errors import OperatorError
from hookbox.runtime import Runtime
from hookbox.store.reprocess import APPLY_ONLY
from hookbox.web.actions import Action, Fields, word
from hookbox.web.feed import ID_MAX
from hookbox.web.guards import with_token
from hookbox.web.members import known_members


def outbox_actions(runtime: Runtime) -> dict[str, Action]:
    """Action name -> what it does."""
    decisions = runtime.decisions

    async def retry(fields: Fields) -> Fields:
        if "destination" in fields:
            return {"retried": await decisions.retry_exhausted(str(fields["destination"]))}
        ids = [int(each) for each in fields["ids"]]
        await decisions.retry(ids)
        return {"retried": len(ids)}

    async def cancel(fields: Fields) -> Fields:
        await decisions.cancel([int(each) for each in fields["ids"]], word(runtime, fields))
        return {}

    async def pause(fields: Fields) -> Fields:
        given = word(runtime, fields)
        return {"held": await decisions.pause(str(fields["destination"]), given)}

    async def resume(fields: Fields) -> Fields:
        return {"released": await decisions.resume(str(fields["destination"]))}

    return {
        "outbox.retry": retry,
        "outbox.cancel": cancel,
        "outbox.pause": pause,
        "outbox.resume": resume,
    }


def replays(runtime: Runtime) -> BaseRouteHandler:
    """The door for programs that want an event handled again."""

    @post("/v1/events/{event_id:int}/replay", guards=[with_token(runtime)], status_code=200)
    async def replay(event_id: int, data: Any = None) -> Response[Fields]:
        """`{"to": ["app"], "reason": "…"}`, both optional; without `to` it is applied again and
        goes on from there.
        """
        if abs(event_id) > ID_MAX:
            raise OperatorError(f"no event {event_id}")
        to, reason = _wanted({} if data is None else data)
        _check_destinations(runtime, to)
        asked = runtime.decisions.word("a program", reason)
        done = await runtime.decisions.replay([event_id], to, asked)
        told = {"queued": done.queued, "refused": done.refused}
        return Response(told, status_code=200 if done.queued else 409)

    return replay


def _wanted(data: Any) -> tuple[list[str], str]:
    """Where to and why. What a misspelt member asks for would be brought everywhere instead."""
    members = known_members(data, ("to", "reason"))
    to, reason = members.get("to", []), members.get("reason", "asked for by a program")
    if not (isinstance(to, list) and all(isinstance(each, str) for each in to)):
        raise ValidationException("`to` is a list of destinations")
    if not isinstance(reason, str):
        raise ValidationException("`reason` is a text")
    return to, reason


def _check_destinations(runtime: Runtime, names: Collection[str]) -> None:
    known = {destination.name for destination in runtime.settings.destinations}
    for name in names:
        if name not in known and name != APPLY_ONLY:
            there = ", ".join(sorted(known)) or "none"
            raise OperatorError(f"no destination is called {name!r}; there are: {there}")
