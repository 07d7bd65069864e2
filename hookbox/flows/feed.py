"""The feed as its readers wait for it: woken by the worker, never by looking again and again."""

import asyncio
import contextlib
from dataclasses import replace
from functools import partial

from hookbox.flows.signal import Signal
from hookbox.store import feed
from hookbox.store.documents import Document, documents
from hookbox.store.feed import FeedPage, Wanted
from hookbox.store.reader import Reader


class Feed:
    """From `start` to `stop`; `end` sends those home who wait. Its reader is its own, so that
    nobody who asks "may I mail this?" waits behind a page.
    """

    def __init__(self, reader: Reader) -> None:
        self.applied = Signal()  # rung when there may be more to read
        self.over = asyncio.Event()  # the box stops, nobody waits any more
        self._reader = reader

    async def start(self) -> None:
        """Raises StoreError."""
        await self._reader.start()

    async def stop(self) -> None:
        await self._reader.stop()

    def end(self) -> None:
        """From now on nobody waits: the box stops."""
        self.over.set()
        self.applied.ring()

    async def page(self, wanted: Wanted, wait_s: float = 0) -> FeedPage:
        """What can be read, as soon as there is something; after `wait_s` an empty page. Raises
        StoreError.
        """
        ring = self.applied.next()
        found = await self._look(wanted)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                while not (found.documents or found.has_more or self.over.is_set()):
                    await ring.wait()
                    ring = self.applied.next()
                    found = await self._look(replace(wanted, after=found.next_cursor))
        return found

    async def _look(self, wanted: Wanted) -> FeedPage:
        return await self._reader.read(partial(feed.page, wanted=wanted))

    async def event(self, event_id: int) -> Document | None:
        """One event, None when there is no such. Raises StoreError."""
        found = await self._reader.read(partial(documents, ids=[event_id]))
        return found.get(event_id)

    async def last(self) -> int:
        """The cursor after which comes only what is not stored yet. Raises StoreError."""
        return await self._reader.read(feed.end)
