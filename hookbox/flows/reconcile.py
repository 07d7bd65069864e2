"""Reconcile: when events are gone for good, the sender's own state still tells how things ended.

After an expired cursor the messages of every inbox that the ledger knows are read, and where the
sender knows more than the ledger, that is recorded as an event of its own, so that it is applied,
shown and worked out anew like any other. It takes several rounds where there are many inboxes.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from urllib.parse import quote

from hookbox.clock import Clock
from hookbox.errors import FeedError, FeedThrottled, StoreError
from hookbox.flows.fetch import Fetcher
from hookbox.flows.poll_pages import Pages, proposal
from hookbox.flows.polling import Walk
from hookbox.providers.feed import State
from hookbox.rules.lifecycle import RANKS
from hookbox.store import gaps, places
from hookbox.store.connections import Transaction
from hookbox.store.gaps import Gap
from hookbox.store.places import MessageStatus
from hookbox.store.writer import Writer

log = logging.getLogger("hookbox.poll")

INBOXES_MAX = 50  # a round
PAGES_MAX = 20  # of one inbox: 2,000 messages, newest first
INBOX = "{inbox_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciled:
    """How far it came. `told` says what is left to do, where a person has to do it."""

    recorded: int = 0
    told: str = ""


class Reconciler:
    """Reads states and records what differs. `stored` is called after commits with news."""

    def __init__(
        self,
        writer: Writer,
        fetcher: Fetcher,
        pages: Pages,
        clock: Clock,
        stored: Callable[[], None],
    ) -> None:
        self._writer, self._fetcher, self._pages = writer, fetcher, pages
        self._clock, self._stored = clock, stored

    async def reconcile(self, walk: Walk) -> Reconciled:
        """As much as fits into a round, where an expired cursor left a gap. Never raises for what
        the sender answers: the gap stays open, and the next round goes on.
        """
        read = partial(gaps.open_ones, source_id=walk.source_id)
        expired = [gap for gap in await self._writer.write(read) if gap.reason == gaps.EXPIRED]
        if not expired:
            return Reconciled()
        polling = walk.polling
        if polling.feed.states is None or polling.read_url is None:
            return Reconciled(told=_by_hand(walk, expired[0]))
        return await self._all_inboxes(walk, expired)

    async def _all_inboxes(self, walk: Walk, expired: list[Gap]) -> Reconciled:
        """The newest gap was opened when least was known: its pass serves the older ones too."""
        position, recorded = expired[-1].position, 0
        inboxes = partial(places.inboxes, source_id=walk.source_id, limit=INBOXES_MAX)
        found = await self._writer.write(partial(inboxes, after=position))
        for inbox_id in found:
            try:
                recorded += await self._inbox(walk, inbox_id)
            except (FeedThrottled, StoreError):
                raise
            except FeedError as error:
                told = f"the messages of inbox {inbox_id} cannot be read: {error}"
                return Reconciled(recorded=recorded, told=told)
            note = partial(gaps.note_position, gap_id=expired[-1].id, position=inbox_id)
            await self._writer.write(note)
        if len(found) == INBOXES_MAX:
            return Reconciled(recorded=recorded, told="more inboxes are read in the next round")

        def close(transaction: Transaction) -> None:
            for gap in expired:
                gaps.close(transaction, gap.id, self._clock.now())

        await self._writer.write(close)
        log.info("reconciled source=%s recorded=%d", walk.round.source, recorded)
        return Reconciled(recorded=recorded)

    async def _inbox(self, walk: Walk, inbox_id: str) -> int:
        assert walk.polling.read_url is not None, "asked only where it is set"
        url = walk.polling.read_url.replace(INBOX, quote(inbox_id, safe=""))
        place = replace(walk.place(self._clock.now()), url=url, cursor=None, onward="")
        recorded = 0
        for _ in range(PAGES_MAX):
            page, body = await self._fetcher.states(walk.polling, place)
            recorded += await self._record(walk, page.states, body)
            if page.cursor in (None, place.cursor):
                break
            place = replace(place, cursor=page.cursor)
        return recorded

    async def _record(self, walk: Walk, states: tuple[State, ...], body: bytes) -> int:
        """What the sender knows more of than the ledger, as events."""

        def work(transaction: Transaction) -> int:
            messages = {state.message_id for state in states}
            known = places.statuses(transaction, walk.source_id, messages)
            behind = [state.event for state in states if _knows_more(state, known)]
            if not behind:
                return 0
            offered = proposal(walk, body, behind, (), self._clock.now())
            return self._pages.admit(transaction, [offered]).new

        recorded = await self._writer.write(work) if states else 0
        if recorded:
            self._stored()
        return recorded


def _knows_more(state: State, known: dict[MessageStatus, int]) -> bool:
    rank = RANKS.get((state.kind, state.bounce_class), 0)
    return rank > known.get(MessageStatus.of(state.message_id, state.recipient), 0)


def _by_hand(walk: Walk, gap: Gap) -> str:
    since = "" if gap.first is None else f" from {gap.first} on"
    return (
        f"events{since} are no longer kept by the sender; see at the sender what became of those "
        f"messages, then: hookbox poll {walk.round.source} --close-gaps"
    )
