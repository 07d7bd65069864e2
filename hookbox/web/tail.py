"""The tail: events as they come in, as server-sent events, for as long as somebody reads them.

An event is written after the reader has taken those before it, so that a slow one costs a page of
memory and a place. Each one carries its id, with which a reader that was cut off goes on.
"""

import logging
from dataclasses import replace

from litestar.serialization import encode_json
from litestar.types import Receive, Scope, Send

from hookbox.errors import StoreError
from hookbox.flows.feed import Feed
from hookbox.store.documents import Document
from hookbox.store.feed import Wanted
from hookbox.web.waiting import Places, while_there

log = logging.getLogger("hookbox.tail")

HEARTBEAT_S = 15.0  # proxies give up on a silent answer after 30 s and more
HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),  # nginx would keep events until it has a few kilobytes
]


class Tail:
    """The answer to one reader, an ASGI app of its own."""

    def __init__(self, feed: Feed, places: Places, wanted: Wanted) -> None:
        self._feed, self._places, self._wanted = feed, places, wanted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Until the reader hangs up or the box stops. Raises ServiceUnavailableException."""
        with self._places.taken():
            await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
            await while_there(receive, self._follow(send))
            await _write(send, b"", more=False)

    async def _follow(self, send: Send) -> None:
        """Page by page. A box that cannot look ends the answer; its reader comes back."""
        wanted = self._wanted
        await _write(send, _heartbeat(wanted.after))
        while not self._feed.over.is_set():
            try:
                page = await self._feed.page(wanted, HEARTBEAT_S)
            except StoreError as error:
                log.warning("tail ends after=%d error=%s", wanted.after, error)
                return
            for document in page.documents:
                await _write(send, _told(document))
                if self._feed.over.is_set():
                    return
            if not page.documents:
                await _write(send, _heartbeat(page.next_cursor))
            wanted = replace(wanted, after=page.next_cursor)


def _told(document: Document) -> bytes:
    """An event of its kind; what could not be applied is a plain `message`."""
    named = f"event: {document['kind']}\n" if document["kind"] else ""
    return f"id: {document['id']}\n{named}data: ".encode() + encode_json(document) + b"\n\n"


def _heartbeat(cursor: int) -> bytes:
    """A comment, and how far the reader has come although nothing was for it."""
    return f": nothing new\nid: {cursor}\n\n".encode()


async def _write(send: Send, piece: bytes, *, more: bool = True) -> None:
    await send({"type": "http.response.body", "body": piece, "more_body": more})
