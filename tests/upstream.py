"""A sender's event list on a real HTTP server: pages, and every other answer it may give."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlsplit

from tests.servers import Respond, answering, http_server

PATH = "/v1/projects/p1/events"
TOKEN = "key-of-the-project"

Event = dict[str, object]


def event(sequence: int, key: str = "", **about: object) -> Event:
    """An event as the list shows it; in a webhook it has neither number nor time."""
    return {
        "id": key or f"evt_{sequence}",
        "type": "message.delivery_updated",
        "project_sequence": sequence,
        "occurred_at": "2023-11-14T22:00:00Z",
        "data": {
            "message_id": f"msg_{sequence}",
            "recipient": f"r{sequence}@example.com",
            "status": "delivered",
            **about,
        },
    }


def as_webhook(listed: Event) -> Event:
    """The same event as a webhook brings it."""
    own = {name: listed[name] for name in ("id", "type", "data")}
    return {**own, "api_version": "2026-06-01"}


def page(*events: Event, cursor: object = None, more: bool = False) -> bytes:
    return json.dumps({"data": events, "next_cursor": cursor, "has_more": more}).encode()


def telling(status: str, code: str, *headers: str) -> Respond:
    """An error as this sender tells it."""
    return answering(status, json.dumps({"error": {"code": code}}).encode(), *headers)


@dataclass
class Upstream:
    """The list. `script` answers come first, one request each; then the events do."""

    events: dict[int, Event] = field(default_factory=dict)
    retained_from: int = 0  # a cursor before that has expired
    script: list[Respond] = field(default_factory=list)
    other: Callable[[str], bytes] | None = None  # what lies at other paths
    asked: list[str | None] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    heads: list[bytes] = field(default_factory=list)
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}{PATH}"

    def add(self, *events: Event) -> None:
        for each in events:
            self.events[int(str(each["project_sequence"]))] = each

    async def respond(self, head: bytes, writer: asyncio.StreamWriter) -> None:
        self.heads.append(head)
        target = urlsplit(head.split(b" ")[1].decode())
        query = parse_qs(target.query)
        self.paths.append(target.path)
        if target.path != PATH:
            body = self.other(target.path) if self.other else b""
            await answering("200 OK" if body else "404 Not Found", body)(head, writer)
            return
        cursor = query.get("cursor", [None])[0]
        self.asked.append(cursor)
        if self.script:
            await self.script.pop(0)(head, writer)
        elif cursor is not None and int(cursor) + 1 < self.retained_from:
            await telling("410 Gone", "cursor_expired")(head, writer)
        else:
            await answering("200 OK", self._page(cursor, int(query["limit"][0])))(head, writer)

    def _page(self, cursor: str | None, limit: int) -> bytes:
        after = max(int(cursor or 0), self.retained_from - 1)
        ahead = sorted(number for number in self.events if number > after)
        given = ahead[:limit]
        last = str(given[-1]) if given else cursor
        events = (self.events[number] for number in given)
        return page(*events, cursor=last, more=len(ahead) > limit)


@asynccontextmanager
async def upstream() -> AsyncIterator[Upstream]:
    made = Upstream()
    async with http_server(made.respond) as seen:
        made.port = seen.port
        yield made
