"""The pull door: a program reads events at its own pace, and keeps the cursor itself."""

import re
from typing import Any

from litestar import Request, get
from litestar.datastructures import MultiDict
from litestar.exceptions import NotFoundException, ValidationException
from litestar.handlers import BaseRouteHandler
from litestar.types import ASGIApp

from hookbox.model import Kind
from hookbox.runtime import Runtime
from hookbox.store.documents import Document
from hookbox.store.feed import LIMIT_DEFAULT, LIMIT_MAX, Wanted
from hookbox.web.guards import with_token
from hookbox.web.tail import Tail
from hookbox.web.waiting import Places, while_there

Fields = dict[str, Any]
Asked = MultiDict[str]
Caller = Request[Any, Any, Any]

WAIT_MAX_S = 30
ID_MAX = 2**63 - 1
# Together two thirds of the door's connections: the rest is for who asks and goes.
POLLS_MAX = 16
TAILS_MAX = 16
SECONDS = re.compile(r"[0-9]{1,2}(\.[0-9]{1,3})?", re.ASCII)
KINDS = frozenset(kind.value for kind in Kind)
READ_BY = ("after", "limit", "kinds", "wait")
FOLLOWED_BY = ("after", "kinds")


def feed_doors(runtime: Runtime) -> list[BaseRouteHandler]:
    """Pages, one event, and the tail."""
    guards = [with_token(runtime)]
    polls, tails = Places(POLLS_MAX), Places(TAILS_MAX)

    @get("/v1/events", guards=guards)
    async def read(request: Caller) -> Fields:
        """A page; with `wait`, as soon as there is something to read."""
        asked = _known(request.query_params, READ_BY)
        wanted, wait_s = _wanted(asked), _wait_s(asked)
        if not wait_s:
            page = await runtime.feed.page(wanted)
        else:
            with polls.taken():
                waited = await while_there(request.receive, runtime.feed.page(wanted, wait_s))
            if waited is None:
                return {}  # to nobody
            page = waited
        return {
            "data": page.documents,
            "next_cursor": page.next_cursor,
            "has_more": page.has_more,
        }

    @get("/v1/events/{event_id:int}", guards=guards)
    async def show(event_id: int) -> Document:
        """One event."""
        found = None if abs(event_id) > ID_MAX else await runtime.feed.event(event_id)
        if found is None:
            raise NotFoundException(f"there is no event {event_id}")
        return found

    @get("/v1/events/tail", guards=guards)
    async def follow(request: Caller) -> ASGIApp:
        """Events as they come, from an id on, else from now on."""
        wanted = _wanted(_known(request.query_params, FOLLOWED_BY))
        seen = request.headers.get("last-event-id") or request.query_params.get("after")
        after = await runtime.feed.last() if seen is None else _id("Last-Event-ID", seen)
        return Tail(runtime.feed, tails, Wanted(after=after, kinds=wanted.kinds))

    return [read, show, follow]


def _known(asked: Asked, names: tuple[str, ...]) -> Asked:
    """What a misspelt parameter asks for would be left out without a word."""
    for name in asked:
        if name not in names:
            raise ValidationException(f"{name!r} is not asked here; there are {', '.join(names)}")
    return asked


def _wanted(asked: Asked) -> Wanted:
    limit = _once(asked, "limit", str(LIMIT_DEFAULT))
    if not 1 <= _number(limit) <= LIMIT_MAX:
        raise ValidationException(f"limit is a number from 1 to {LIMIT_MAX}")
    return Wanted(
        after=_id("after", _once(asked, "after", "0")), limit=int(limit), kinds=_kinds(asked)
    )


def _id(name: str, text: str) -> int:
    """An id that SQLite can hold."""
    number = _number(text)
    if not 0 <= number <= ID_MAX:
        raise ValidationException(f"{name} is the id of an event, or 0 for the beginning")
    return number


def _number(text: str) -> int:
    """A plain number that is not too long to be meant; -1 for anything else."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else -1


def _kinds(asked: Asked) -> frozenset[str]:
    """Repeated, or separated by commas."""
    parts = (part.strip() for each in asked.getall("kinds", []) for part in each.split(","))
    kinds = frozenset(part for part in parts if part)
    if unknown := sorted(kinds - KINDS):
        raise ValidationException(f"no kind is called {unknown[0]!r}; there are: {', '.join(Kind)}")
    return kinds


def _wait_s(asked: Asked) -> float:
    text = _once(asked, "wait", "0")
    if not SECONDS.fullmatch(text) or float(text) > WAIT_MAX_S:
        raise ValidationException(f"wait is a number of seconds from 0 to {WAIT_MAX_S}")
    return float(text)


def _once(asked: Asked, name: str, otherwise: str) -> str:
    """The one value of a parameter."""
    given = asked.getall(name, [otherwise])
    if len(given) > 1:
        raise ValidationException(f"{name} is asked more than once")
    return given[0]
