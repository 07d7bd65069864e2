"""What the list did not bring: jumps that are asked for again, cursors that expired, places that a
person skipped.
"""

import logging
from functools import partial

from hookbox.clock import Clock
from hookbox.errors import CursorExpired, CursorInvalid, FeedDenied
from hookbox.flows.fetch import Fetcher
from hookbox.flows.poll_pages import Pages
from hookbox.flows.polling import Walk, sequence
from hookbox.store import cursors, gaps
from hookbox.store.connections import Transaction
from hookbox.store.gaps import Gap
from hookbox.store.writer import Writer

log = logging.getLogger("hookbox.poll")

ASKED_MAX = 5  # a round; each costs a request
ASKED_FOR_MS = 24 * 3_600_000  # a number that came to nobody for a day stays missing for good
ALARM_AFTER_MS = 3_600_000


class Gaps:
    """Opens gaps, and asks for what is in them."""

    def __init__(self, writer: Writer, fetcher: Fetcher, pages: Pages, clock: Clock) -> None:
        self._writer, self._fetcher, self._pages, self._clock = writer, fetcher, pages, clock
        self._alarmed: set[int] = set()

    async def ask_again(self, walk: Walk) -> None:
        """What was missing may have come late: ask for it once more, the cursor staying where it
        is. Raises FeedError.
        """
        if walk.cursor is None or not walk.counts:
            return
        read = partial(gaps.open_ones, source_id=walk.source_id)
        jumps = [gap for gap in await self._writer.write(read) if gap.reason == gaps.JUMP]
        young = [gap for gap in jumps if gap.opened_at > walk.started_at - ASKED_FOR_MS]
        for gap in young[:ASKED_MAX]:
            await self._ask(walk, gap)
        for gap in jumps:
            if gap.opened_at <= walk.started_at - ALARM_AFTER_MS:
                self._alarm(walk, gap)

    async def _ask(self, walk: Walk, gap: Gap) -> None:
        assert gap.first is not None, "jumps know where they begin"
        assert gap.last is not None, "and where they end"
        there = Walk(
            source_id=walk.source_id,
            polling=walk.polling,
            round=walk.round,
            started_at=walk.started_at,
            limit=min(walk.limit, gap.last - gap.first + 1),
            cursor=str(gap.first - 1) if gap.first > 1 else None,
        )
        try:
            fetched = await self._fetcher.page(there.polling, there.place(self._clock.now()))
        except (CursorExpired, CursorInvalid) as error:
            log.warning("a gap cannot be asked for source=%s error=%s", walk.round.source, error)
            return
        await self._pages.store(there, fetched, moving=False)

    def _alarm(self, walk: Walk, gap: Gap) -> None:
        """Once for each start of the box."""
        if gap.id not in self._alarmed:
            self._alarmed.add(gap.id)
            log.error(
                "events stay missing source=%s from=%s to=%s "
                "(a credential that sees some inboxes only needs scoped = true)",
                walk.round.source,
                gap.first,
                gap.last,
            )

    async def start_anew(self, walk: Walk, error: CursorExpired) -> None:
        """The events after the cursor are gone. It is never used again, wherever the list begins
        by now; every event that is known stays known.
        """
        expired = walk.cursor
        if expired is None:
            raise FeedDenied(f"{error}, although it was asked from the beginning") from error
        number = sequence(expired) if walk.polling.feed.sequential else None
        first, now = None if number is None else number + 1, self._clock.now()

        def work(transaction: Transaction) -> None:
            gaps.open_one(transaction, walk.source_id, gaps.EXPIRED, first, None, now)
            cursors.forget(transaction, walk.source_id)

        await self._writer.write(work)
        log.error("cursor expired source=%s cursor=%s", walk.round.source, expired)
        walk.start(None)

    async def note_skipped(self, walk: Walk, saved: str | None) -> None:
        """A person begins elsewhere. Events that are skipped by it are on record; an earlier place
        is only read again.
        """
        before, begin = sequence(saved), sequence(walk.cursor)
        if not walk.counts or before is None or begin is None or begin <= before:
            return
        now = self._clock.now()
        await self._writer.write(
            lambda t: gaps.open_one(t, walk.source_id, gaps.BY_HAND, before + 1, begin, now)
        )
