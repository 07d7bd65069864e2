"""Effects that must happen once, for programs on this machine: claim, renew, complete, abandon.

    POST /v1/effects/KEY  {"do": "claim", "who": "mailer", "lease": "5m", "if_unknown": "stop"}
    GET  /v1/effects/KEY

The key stands in the path as it is, percent-encoded where it must be; two spellings that a router
would take for one place are two keys.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any
from urllib.parse import unquote

from litestar import Request, Response, get, post
from litestar.exceptions import NotFoundException, ValidationException
from litestar.handlers import BaseRouteHandler

from hookbox.errors import ConfigError
from hookbox.rules.effects import Answer, Claim, IfUnknown, Outcome, Verdict, check_result
from hookbox.runtime import Runtime
from hookbox.settings import duration
from hookbox.store import effects
from hookbox.store.connections import Transaction
from hookbox.web.actions import Action, Fields, word
from hookbox.web.guards import with_token
from hookbox.web.members import known_members

Work = Callable[[Transaction, int], Answer]  # what happens at an instant

PATH = "/v1/effects"
LEASE = "5m"
# What is done, and what belongs to it.
MEMBERS = {
    "claim": ("who", "lease", "if_unknown"),
    "renew": ("token",),
    "complete": ("token", "result"),
    "abandon": ("token",),
}
REFUSALS = {
    Outcome.IN_PROGRESS: 409,
    Outcome.UNKNOWN: 409,
    Outcome.FENCED: 409,
    Outcome.ABSENT: 404,
}


def routed(path: str) -> str:
    """The path as the router is to see it: without the key, which the handlers read themselves."""
    return PATH if path.startswith(f"{PATH}/") else path


def effect_routes(runtime: Runtime) -> list[BaseRouteHandler]:
    """What programs ask."""

    @get(PATH, guards=[with_token(runtime)])
    async def look(request: Request[Any, Any, Any]) -> Fields:
        """How an effect stands."""
        key, now = _key(request), runtime.clock.now()
        answer = await runtime.reader.read(partial(effects.look, key=key, now=now))
        if answer.outcome is Outcome.ABSENT:
            raise NotFoundException("nobody has claimed this")
        return dict(effects.line(key, answer))

    @post(PATH, guards=[with_token(runtime)], status_code=200)
    async def act(request: Request[Any, Any, Any], data: Any) -> Response[Fields]:
        """Claim, renew, complete or abandon."""
        key = _key(request)
        try:
            work = _work(key, _members(data), effects.new_token())
        except (ConfigError, ValueError) as error:
            raise ValidationException(str(error)) from error
        answer = await _done(runtime, work)
        told, status = dict(effects.line(key, answer)), REFUSALS.get(answer.outcome, 200)
        return Response(told, status_code=status, headers=_when(answer, runtime.clock.now()))

    return [look, act]


def effect_actions(runtime: Runtime) -> dict[str, Action]:
    """What `hookbox once` asks. It makes its own tokens, so that it can ask again when the server
    was restarted before it answered.
    """

    async def act(fields: Fields) -> Fields:
        key = fields["key"]
        return dict(effects.line(key, await _done(runtime, _work(key, fields, fields["token"]))))

    async def settle(fields: Fields) -> Fields:
        verdict = Verdict(fields["verdict"])
        await runtime.writer.write(
            partial(effects.settle, key=fields["key"], verdict=verdict, word=word(runtime, fields))
        )
        return {}

    return {"effects.act": act, "effects.settle": settle}


def _key(request: Request[Any, Any, Any]) -> str:
    """The key exactly as sent: what is no UTF-8 must not become one key with another's."""
    raw: bytes = request.scope["raw_path"]
    try:
        return unquote(raw.decode("ascii").removeprefix(PATH).removeprefix("/"), errors="strict")
    except UnicodeDecodeError as error:
        raise ValidationException("a key is UTF-8 text") from error


def _members(body: object) -> Fields:
    if not isinstance(body, dict) or str(body.get("do")) not in MEMBERS:
        raise ValueError(
            'send a JSON object, as in {"do": "claim", "who": "mailer"}; `do` is '
            f"one of {', '.join(MEMBERS)}"
        )
    return known_members(body, ("do", *MEMBERS[body["do"]]))


async def _done(runtime: Runtime, work: Work) -> Answer:
    """A lease begins when it is written down, not when somebody began to wait for that."""
    return await runtime.writer.write(lambda transaction: work(transaction, runtime.clock.now()))


def _work(key: str, asked: Fields, token: str) -> Work:
    """What was asked. `token` is for a claim; who holds one shows it."""
    match asked.get("do"):
        case "claim":
            claim = _claim(key, asked, token)
            return lambda t, now: effects.claim(t, claim, now)
        case "renew":
            shown = _text(asked, "token")
            return lambda t, now: effects.renew(t, key, shown, now)
        case "abandon":
            shown = _text(asked, "token")
            return lambda t, _: effects.abandon(t, key, shown)
        case "complete":
            shown, result = _text(asked, "token"), check_result(_text(asked, "result", ""))
            return lambda t, now: effects.complete(t, key, shown, result, now)
    raise ValueError("`do` is claim, renew, complete or abandon")


def _text(asked: Fields, name: str, default: str | None = None) -> str:
    value = asked.get(name, default)
    if not isinstance(value, str):
        raise ValueError(f"`{name}` must be given, as a text")
    return value


def _claim(key: str, asked: Fields, token: str) -> Claim:
    return Claim(
        key=key,
        token=token,
        who=_text(asked, "who"),
        lease_ms=duration(asked.get("lease", LEASE)) * 1000,
        if_unknown=IfUnknown(_text(asked, "if_unknown", IfUnknown.STOP)),
    )


def _when(answer: Answer, now: int) -> dict[str, str]:
    """When it is worth asking again. What is unknown stays so: only a person or "retry" helps."""
    if answer.outcome is not Outcome.IN_PROGRESS or answer.effect is None:
        return {}
    return {"Retry-After": str(max(1, math.ceil((answer.effect.lease_until - now) / 1000)))}
