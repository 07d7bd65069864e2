"""Poll: one round through a sender's own list of events, from the saved cursor to its end.

An answer that is no page never moves the cursor, and what it says decides when to ask again. A
cursor that expired is forgotten, and the round goes on from the beginning. Pages that lead nowhere
new end it after a few.
"""

import logging
from collections.abc import Callable
from functools import partial

from hookbox.clock import Clock
from hookbox.errors import (
    CursorExpired,
    CursorInvalid,
    FeedDenied,
    FeedError,
    FeedThrottled,
    Overloaded,
    StoreError,
)
from hookbox.flows.fetch import Fetcher
from hookbox.flows.in_order import InOrder
from hookbox.flows.poll_gaps import Gaps
from hookbox.flows.poll_pages import Pages
from hookbox.flows.polling import End, Round, Walk
from hookbox.flows.reconcile import Reconciler
from hookbox.flows.sources import Source
from hookbox.store import cursors
from hookbox.store.writer import Writer

log = logging.getLogger("hookbox.poll")

PAGES_MAX = 100  # 10,000 events of the smallest page; then whoever else waits has a turn
STALLS_MAX = 3  # pages that lead nowhere: one may be a hiccup
BEGINNING = "start"  # instead of a cursor: everything that the sender still keeps


class Rounds:
    """Makes rounds. `stored` is called after each commit that brought something new."""

    def __init__(
        self,
        writer: Writer,
        fetcher: Fetcher,
        in_order: InOrder,
        clock: Clock,
        stored: Callable[[], None],
    ) -> None:
        self._writer, self._fetcher, self._in_order = writer, fetcher, in_order
        self._clock = clock
        self._pages = Pages(writer, clock, stored)
        self._gaps = Gaps(writer, fetcher, self._pages, clock)
        self._reconciler = Reconciler(writer, fetcher, self._pages, clock, stored)

    async def go(self, source: Source, begin: str | None = None) -> Round:
        """One round, from the saved cursor or from `begin`. Never raises for anything that a sender
        or the disk can do.
        """
        polling = source.polling
        assert polling is not None, "only sources that are polled"
        done = Round(source=source.name)
        walk = Walk(
            source_id=source.id,
            polling=polling,
            round=done,
            started_at=self._clock.now(),
            limit=polling.limit,
        )
        try:
            await self._begin(walk, begin)
            await self._walk(walk)
            if done.end is End.CAUGHT_UP:
                await self._caught_up(walk)
        except FeedThrottled as error:
            done.end, done.told, done.retry_after_s = End.THROTTLED, str(error), error.retry_after_s
        except (CursorInvalid, FeedDenied) as error:
            done.end, done.told = End.STOPPED, str(error)
        except (FeedError, StoreError, Overloaded) as error:
            done.end, done.told = End.FAILED, str(error)
        done.cursor = walk.cursor
        await self._record(walk)
        return done

    async def _begin(self, walk: Walk, begin: str | None) -> None:
        reading = partial(cursors.cursor, source_id=walk.source_id, url=walk.polling.url)
        saved = await self._writer.write(reading)
        if begin is None:
            walk.start(saved)
            await self._gaps.ask_again(walk)
        else:
            walk.start(None if begin == BEGINNING else begin)
            await self._gaps.note_skipped(walk, saved)

    async def _walk(self, walk: Walk) -> None:
        """Page after page, until there are no more or they lead nowhere."""
        done = walk.round
        while done.pages < PAGES_MAX:
            try:
                fetched = await self._fetcher.page(walk.polling, walk.place(self._clock.now()))
            except CursorExpired as error:
                await self._gaps.start_anew(walk, error)
                continue
            done.pages += 1
            walk.limit = fetched.limit
            await self._pages.store(walk, fetched)
            walk.follow(fetched.page)
            if fetched.page.fault:
                done.end, done.told = End.STUCK, fetched.page.fault
                return
            if not fetched.page.more:
                return
            if walk.stalls == STALLS_MAX:
                done.end, done.told = End.STUCK, f"{STALLS_MAX} pages led nowhere new"
                return
        done.end = End.MORE
        if not walk.brought:
            done.end, done.told = End.STUCK, f"{PAGES_MAX} pages held not one event"

    async def _caught_up(self, walk: Walk) -> None:
        await self._in_order.admit_overdue(walk.source_id, walk.started_at)
        reached = await self._reconciler.reconcile(walk)
        walk.round.reconciled, walk.round.told = reached.recorded, reached.told

    async def _record(self, walk: Walk) -> None:
        """How it went, once in the log and in the store."""
        done = walk.round
        if done.end in (End.STOPPED, End.STUCK):
            log.error("poll %s source=%s error=%s", done.end, done.source, done.told)
        elif done.told:
            log.warning("poll %s source=%s error=%s", done.end, done.source, done.told)
        elif done.new:
            log.info("polled source=%s pages=%d new=%d", done.source, done.pages, done.new)
        recording = partial(
            cursors.record,
            source_id=walk.source_id,
            now=self._clock.now(),
            caught_up=done.end is End.CAUGHT_UP,
            trouble=done.told or None,
            stopped=done.end is End.STOPPED,
        )
        try:
            await self._writer.write(recording)
        except StoreError as error:
            log.warning("round not recorded source=%s error=%s", done.source, error)
