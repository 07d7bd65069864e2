"""Answers for programs on this machine: may this address be mailed?

Asked before every mail, so the answer comes from a read connection that is always open. Whoever
gets no answer, or another status than 200, must not mail.
"""

from typing import Annotated, Any

from litestar import get, post
from litestar.exceptions import ValidationException
from litestar.handlers import BaseRouteHandler
from litestar.params import QueryParameter

from hookbox.rules.addresses import bare
from hookbox.rules.instants import written
from hookbox.runtime import Runtime
from hookbox.store import suppressions
from hookbox.store.suppressions import Verdict
from hookbox.web.guards import with_token

Fields = dict[str, Any]
Scope = Annotated[str | None, QueryParameter(name="scope")]

PATH = "/v1/can-send"
ADDRESSES_MAX = 5_000  # one statement of about 20 ms, during which other questions wait


def answers(runtime: Runtime) -> list[BaseRouteHandler]:
    """The questions that a program may ask."""

    async def answer(addresses: list[str], scope: str | None) -> Fields:
        if not 0 < len(addresses) <= ADDRESSES_MAX:
            raise ValidationException(f"ask about 1 to {ADDRESSES_MAX} addresses at a time")
        names = runtime.erasures.pseudonyms
        found = await runtime.reader.read(
            lambda transaction: suppressions.verdicts(transaction, addresses, scope, names)
        )
        return {"data": [_line(verdict) for verdict in found]}

    @get(PATH, guards=[with_token(runtime)])
    async def ask(to: list[str] | None = None, within: Scope = None) -> Fields:
        """One address, or a few: `?to=a@example.com&to=b@example.com`."""
        return await answer([_unescaped(each) for each in to or []], within)

    @post(PATH, guards=[with_token(runtime)], status_code=200)
    async def ask_many(data: Any, within: Scope = None) -> Fields:
        """A list of addresses, bare or under `to`."""
        return await answer(_asked(data), within)

    return [ask, ask_many]


def _unescaped(text: str) -> str:
    """A `+` that was not written as %2B arrives as a blank, and `ann+shop@` is a common address."""
    tagged = text.replace(" ", "+")
    return tagged if bare(text) is None and bare(tagged) else text


def _asked(body: object) -> list[str]:
    """The addresses of a request's body."""
    asked = body.get("to") if isinstance(body, dict) else body
    if isinstance(asked, str):
        return [asked]
    if isinstance(asked, list) and all(isinstance(each, str) for each in asked):
        return asked
    raise ValidationException('send a JSON list of addresses, or {"to": [...]}')


def _line(verdict: Verdict) -> Fields:
    return {
        "address": verdict.address,
        "can_send": verdict.can_send,
        "reason": verdict.reason,
        "since": None if verdict.since is None else written(verdict.since),
        "event_id": verdict.event_id,
        "source": verdict.source,
        "scope": verdict.scope,
    }
