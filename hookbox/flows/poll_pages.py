"""What a polled page brings, and the cursor behind it: stored together or not at all.

The cursor is never ahead of the work, whenever the power goes. Both ways share the unique index of
events, so what a webhook brought is a repeat here.
"""

import logging
from collections.abc import Callable, Sequence
from functools import partial

from hookbox.clock import Clock
from hookbox.errors import StoreRejected
from hookbox.flows.fetch import Fetched
from hookbox.flows.polling import Round, Walk, sequence
from hookbox.model import Admission, Drive, Rotten, Slot, SplitEvent, Via
from hookbox.providers.feed import Page
from hookbox.rules.reach import parsed
from hookbox.rules.sequences import Range, missing
from hookbox.store import admissions, cursors, early, gaps
from hookbox.store.connections import Transaction
from hookbox.store.proposals import DeliveryRow, Proposal
from hookbox.store.writer import Writer

log = logging.getLogger("hookbox.poll")


class Pages:
    """Stores pages. `stored` is called after each commit that brought something new."""

    def __init__(self, writer: Writer, clock: Clock, stored: Callable[[], None]) -> None:
        self._writer, self._clock, self._stored = writer, clock, stored

    async def store(self, walk: Walk, fetched: Fetched, *, moving: bool = True) -> None:
        """The page's events, and the cursor where the walk is `moving`. Raises StoreError, with
        the cursor as it was.
        """
        page = fetched.page
        offered = proposal(walk, fetched.body, page.events, page.rotten, self._clock.now())
        if not offered.rows and page.cursor in (None, walk.cursor):
            return

        def work(transaction: Transaction) -> Admission:
            found = self.admit(transaction, [offered] if offered.rows else [])
            self._beside(transaction, walk, page, moving=moving)
            return found

        try:
            found = await self._writer.write(work)
        except StoreRejected as error:
            # One piece cannot be stored: each alone, and that one's bytes are set aside. The cursor
            # follows when all of them are durable.
            log.error("page refused by the store, trying its pieces error=%s", error)
            found = await self._writer.admit(offered.pieces())
            await self._writer.write(partial(self._beside, walk=walk, page=page, moving=moving))
        _count(walk.round, found)
        if found.new:
            self._stored()

    def admit(self, transaction: Transaction, proposals: Sequence[Proposal]) -> Admission:
        """Admit in a transaction that does more; what became of the first of them."""
        if not proposals:
            return Admission()
        return admissions.admit(transaction, proposals, self._writer.ids, self._clock.now())[0]

    def _beside(self, transaction: Transaction, walk: Walk, page: Page, *, moving: bool) -> None:
        """What goes with the events: whoever was early, jumps and what fills them, the cursor."""
        source_id, now = walk.source_id, self._clock.now()
        if walk.polling.drive is Drive.CURSOR:
            keys = [event.key for event in page.events]
            self.admit(transaction, early.take(transaction, source_id, keys))
        if page.sequences:
            gaps.fill(transaction, source_id, page.sequences, now)
        if not moving:
            return
        opened = gaps.open_jumps(transaction, source_id, _jumps(walk, page), now)
        if opened:
            log.warning("events missing source=%s ranges=%s", walk.round.source, opened[:5])
        if page.cursor is not None:
            cursors.save(transaction, source_id, walk.polling.url, page.cursor, now)


def proposal(
    walk: Walk, body: bytes, events: Sequence[SplitEvent], rotten: Sequence[Rotten], now: int
) -> Proposal:
    """What was asked for, as a delivery. Nobody signed it; that it came from its host by TLS is all
    the proof there is.
    """
    row = DeliveryRow(
        source_id=walk.source_id,
        received_at=now,
        signed_at=None,
        via=Via.POLL,
        verified_by=Slot.NONE,
        remote=parsed(walk.polling.url).host,
        headers="{}",
        body=body,
    )
    return Proposal(delivery=row, events=events, rotten=rotten)


def _jumps(walk: Walk, page: Page) -> list[Range]:
    """What is missing between the cursor that was asked with and the end of the page, which may
    be one without any event.
    """
    before = sequence(walk.cursor)
    if not walk.counts or (before is None and not page.sequences):
        return []
    first = min(page.sequences) if before is None else before + 1
    last = max(0, sequence(page.cursor) or 0, *page.sequences)
    return missing(first, last, page.sequences)


def _count(done: Round, found: Admission) -> None:
    done.new += found.new
    done.duplicate += found.duplicate
    done.conflicting += found.conflicting
    done.quarantined += found.quarantined
