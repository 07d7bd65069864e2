"""Rehearsal: what a replay of events would come to, worked out without changing anything."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hookbox.flows.apply import apply
from hookbox.flows.routes import Route, ways
from hookbox.flows.sources import Source
from hookbox.model import Notification, StoredEvent
from hookbox.rules.lifecycle import Status, joined, reported
from hookbox.rules.suppression import cause_of
from hookbox.store import statuses, suppressions
from hookbox.store.connections import Transaction
from hookbox.store.ledger import Applied, concerned, status_effect
from hookbox.store.pseudonyms import Pseudonyms
from hookbox.store.statuses import StatusKey


@dataclass(slots=True, kw_only=True)
class Rehearsal:
    """Counts over all events that were rehearsed. `refused`: status changes that the ratchet would
    not make, in its own words. `suppressed`: addresses that would be suppressed and are not now.
    `brought`: events by destination. `unread`: events that cannot be read again.
    """

    events: int = 0
    moved: int = 0
    unchanged: int = 0
    unread: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    suppressed: set[str] = field(default_factory=set)
    brought: Counter[str] = field(default_factory=Counter)


class Rehearser:
    """Rehearses one page of events after another."""

    def __init__(
        self, sources: Mapping[str, Source], routes: Sequence[Route], erased: Pseudonyms
    ) -> None:
        self._sources, self._routes, self._erased = sources, routes, erased
        self._statuses: dict[StatusKey, Status] = {}
        self.found = Rehearsal()

    def rehearse(self, transaction: Transaction, events: Sequence[StoredEvent]) -> None:
        """What would become of these, after those rehearsed before."""
        for event in events:
            self.found.events += 1
            applied = self._read(event)
            if applied is None:
                self.found.unread += 1
                continue
            for notification in applied.notifications:
                self._advance(transaction, applied, notification)
                self._suppress(transaction, applied, notification)
            onward = ways(self._routes, event.source, applied, again=True)
            self.found.brought.update(way.target for way in onward)

    def _read(self, event: StoredEvent) -> Applied | None:
        source = self._sources.get(event.source)
        if source is None or not event.content:
            return None
        try:
            return apply(source, event)
        except Exception:  # noqa: BLE001  (a mistake in a provider: the worker would set it aside)
            return None

    def _advance(
        self, transaction: Transaction, applied: Applied, notification: Notification
    ) -> None:
        status = reported(notification, applied.event_id)
        if status is None:
            return
        about = concerned(notification, suppress_ambiguous=applied.suppress_ambiguous)
        for address in about:
            key = StatusKey(applied.source_id, notification.message_id or "", address)
            if key not in self._statuses:
                self._statuses |= statuses.statuses(transaction, [key])
            before = self._statuses.get(key)
            after = self._statuses[key] = joined(before, status)
            if after is status:
                self.found.moved += 1
            elif before is not None and before.rank == status.rank:
                self.found.unchanged += 1
            else:
                self.found.refused[status_effect(before, status, after)] += 1

    def _suppress(
        self, transaction: Transaction, applied: Applied, notification: Notification
    ) -> None:
        if cause_of(notification, suppress_ambiguous=applied.suppress_ambiguous) is None:
            return
        about = concerned(notification, suppress_ambiguous=applied.suppress_ambiguous)
        unknown = [address for address in about.values() if address not in self.found.suppressed]
        scope = applied.scope or None
        for verdict in suppressions.verdicts(transaction, unknown, scope, self._erased):
            if not verdict.suppressed:
                self.found.suppressed.add(verdict.address)
