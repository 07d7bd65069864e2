"""In order: sources whose event list alone decides what comes first.

A verified webhook of such a source only wakes the poller. It is kept on disk before it is
acknowledged, and it becomes no event: the list brings that, in its place. So nothing is stored
twice, and nothing is lost while the list cannot be read: what waits goes on waiting, and whoever is
never brought by a list that was read to its end is admitted by itself.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence

from hookbox.clock import Clock
from hookbox.errors import Overloaded
from hookbox.flows.sources import Source
from hookbox.model import Admission, Drive, SplitEvent, Via
from hookbox.store import admissions, early
from hookbox.store.connections import Transaction
from hookbox.store.proposals import Proposal
from hookbox.store.writer import Writer

log = logging.getLogger("hookbox.poll")

# A webhook may be faster than the list. After this long the list has had its chance.
PATIENCE_MS = 300_000


class InOrder:
    """Keeps webhooks until their turn. `wake` has a source polled; `stored` follows commits with
    news.
    """

    def __init__(
        self,
        writer: Writer,
        clock: Clock,
        wake: Callable[[str], None],
        stored: Callable[[], None],
    ) -> None:
        self._writer, self._clock, self._wake, self._stored = writer, clock, wake, stored

    def concerns(self, source: Source, proposals: Sequence[Proposal]) -> bool:
        """Whether this delivery has to wait. What cannot be read has no place to wait for, and what
        the box sent itself is in nobody's list.
        """
        polling = source.polling
        return (
            polling is not None
            and polling.drive is Drive.CURSOR
            and all(each.events and each.delivery.via is Via.WEBHOOK for each in proposals)
        )

    async def keep(self, source: Source, proposals: Sequence[Proposal]) -> Admission:
        """On disk when this returns. Raises Overloaded when that takes too long, and StoreError."""
        try:
            async with asyncio.timeout(source.deadline_s):
                kept = await self._writer.write(lambda t: self._keep(t, source, proposals))
        except TimeoutError as error:
            raise Overloaded("no commit in time") from error
        self._wake(source.name)
        return kept

    def _keep(
        self, transaction: Transaction, source: Source, proposals: Sequence[Proposal]
    ) -> Admission:
        """What is an event already is a repeat or a conflict of it at once."""
        new = duplicate = conflicting = 0
        for offered in proposals:
            known = early.known(transaction, source.id, [event.key for event in offered.events])
            told = [event for event in offered.events if event.key in known]
            if told:
                found = self._admit(transaction, offered, told)
                duplicate, conflicting = (
                    duplicate + found.duplicate,
                    conflicting + found.conflicting,
                )
            waiting = [event for event in offered.events if event.key not in known]
            kept = early.keep(transaction, offered.delivery, waiting) if waiting else 0
            new, duplicate = new + kept, duplicate + len(waiting) - kept
        return Admission(new=new, duplicate=duplicate, conflicting=conflicting)

    def _admit(
        self, transaction: Transaction, offered: Proposal, events: Sequence[SplitEvent]
    ) -> Admission:
        part = Proposal(delivery=offered.delivery, events=events)
        return admissions.admit(transaction, [part], self._writer.ids, self._clock.now())[0]

    async def let_go(self, sources: Sequence[Source]) -> None:
        """What waits for a list that no longer decides is admitted: the source was changed."""
        waiting = await self._writer.write(early.counts)
        for source in sources:
            driven = source.polling is not None and source.polling.drive is Drive.CURSOR
            if source.id in waiting and not driven:
                await self._admit_until(source.id, self._clock.now())

    async def admit_overdue(self, source_id: int, list_read_at: int) -> None:
        """The list was read to its end and did not bring these. They are authentic all the same."""
        await self._admit_until(source_id, list_read_at - PATIENCE_MS)

    async def _admit_until(self, source_id: int, received_until: int) -> None:
        def work(transaction: Transaction) -> int:
            taken = early.take_overdue(transaction, source_id, received_until)
            if taken:
                admissions.admit(transaction, taken, self._writer.ids, self._clock.now())
            return len(taken)

        while number := await self._writer.write(work):
            log.warning("webhooks admitted without the list source=%d number=%d", source_id, number)
            self._stored()
