"""Rebuild: work the ledger out anew from what is stored, and find where it differs.

Events are read again in the order in which they were first applied, and between them every person's
decision has its effect. Only the scratch ledger is written to, so a server may run beside it; what
that one applies meanwhile is caught up with.
"""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from hookbox.flows.apply import apply
from hookbox.flows.sources import Source
from hookbox.model import Notification, StoredEvent
from hookbox.rules.folding import folded
from hookbox.rules.suppression import Budget
from hookbox.store import differences, events, history, ledger, notifications, order, settled
from hookbox.store.connections import Transaction, in_transaction
from hookbox.store.decisions import Verb
from hookbox.store.differences import Difference
from hookbox.store.history import Step
from hookbox.store.ledger import Applied

STEPS_MAX = 200  # events that are held in memory with their content


@dataclass(slots=True)
class Outcome:
    """Where the ledgers differ. `retold`: events that are read otherwise than before. `reworded`:
    events of which only what came of them is told otherwise. `unread`: how many could not be read
    again and stand as they were written down.
    """

    differences: list[Difference] = field(default_factory=list)
    retold: set[int] = field(default_factory=set)
    reworded: set[int] = field(default_factory=set)
    unread: int = 0

    @property
    def loosening(self) -> list[Difference]:
        """Suppressions that would go."""
        return [each for each in self.differences if each.loosens]

    @property
    def empty(self) -> bool:
        return not self.differences and not self.retold


class Rebuild:
    """`follow` until little is left, then `compare`; once the live ledger is held still, `follow`
    and `compare_again`.
    """

    def __init__(
        self,
        live: Transaction,
        fresh: Transaction,
        sources: Mapping[str, Source],
        budget: Budget,
    ) -> None:
        self._live, self._fresh = live, fresh
        self._sources, self._budget = sources, budget
        self._source_ids = {source.id for source in sources.values()}
        self.position = 0  # the place in the order up to which the scratch ledger has come
        self.outcome = Outcome()
        # What has happened since the comparison began: addresses, and events that were replayed.
        self._compared = False
        self._touched: set[str] = set()
        self._replayed: set[int] = set()
        self._counts_from = settled.counts_from(live)
        in_transaction(fresh, self._begin)

    def _begin(self, fresh: Transaction) -> None:
        settled.note(self._live, fresh)
        history.carry_statuses(self._live, fresh, self._source_ids)

    def follow(self, told: Callable[[int], None] = lambda place: None) -> int:
        """Take all that happened up to now; how many steps that were. `told` hears of each place
        that was reached.
        """
        taken, last = 0, order.last_place(self._live)
        while self.position < last:
            steps = history.steps(self._live, self.position, self._source_ids, STEPS_MAX)
            self._take(steps)
            self.position = steps[-1].place if steps else last
            taken += len(steps)
            told(self.position)
        return taken

    def compare(self) -> None:
        """Look at everything. What changes while that goes on is looked at by `compare_again`."""
        in_transaction(self._fresh, self._end)
        self._compared = True
        self._touched.clear()
        self._replayed.clear()
        found = differences.everywhere(self._live, self._fresh, self._source_ids)
        self.outcome.differences = list(found)

    def _end(self, fresh: Transaction) -> None:
        counted_from = 0
        if self._counts_from is not None:
            counted_from = self._counts_from + self._budget.window_ms
        history.carry_causes(self._live, fresh, self._source_ids, counted_from)

    def compare_again(self) -> None:
        """Look at what has changed since, and at how the stories of those concerned are told.

        Raises OperatorError when retention took events meanwhile.
        """
        settled.check_same(self._live, self._fresh)
        replayed = sorted(self._replayed)
        self._look_again_at(replayed)
        self._touched |= _addresses(notifications.written(self._live, replayed))
        self._touched |= _addresses(notifications.written(self._fresh, replayed))
        kept = [each for each in self.outcome.differences if each.address not in self._touched]
        found = differences.about(self._live, self._fresh, self._touched, self._source_ids)
        self.outcome.differences = [*kept, *found]
        concerned = {each.address for each in self.outcome.differences}
        self.outcome.reworded = differences.reworded(self._live, self._fresh, concerned)
        self.outcome.reworded -= self.outcome.retold

    def _take(self, steps: Sequence[Step]) -> None:
        in_transaction(self._fresh, lambda _: self._work_out(steps))

    def _work_out(self, steps: Sequence[Step]) -> None:
        event_ids = [step.event_id for step in steps if step.verb is None and step.event_id]
        stored = {event.id: event for event in events.by_id(self._live, event_ids)}
        said = self._read(stored.values())
        for decided, group in itertools.groupby(steps, key=lambda step: step.verb is not None):
            if decided:
                self._decide(list(group))
                continue
            found = [step.event_id for step in group if step.event_id in said]
            history.stub(self._fresh, [stored[event_id] for event_id in found])
            applied = [said[event_id] for event_id in found]
            ledger.append(self._fresh, applied, self._budget, self._counts_from)
        if self._compared:
            self._touched |= _addresses(notifications.written(self._fresh, event_ids))
        self._look_again_at(event_ids)

    def _decide(self, steps: Sequence[Step]) -> None:
        for step in steps:
            self._touched |= history.decide_again(self._live, self._fresh, step)
            if step.verb is Verb.REPLAY and step.event_id is not None:
                self._replayed.add(step.event_id)

    def _look_again_at(self, event_ids: Sequence[int]) -> None:
        self.outcome.retold -= set(event_ids)
        self.outcome.retold |= differences.said_otherwise(self._live, self._fresh, event_ids)

    def _read(self, stored: Iterable[StoredEvent]) -> dict[int, Applied]:
        """What the events say as they are read today, by their ids; as it was written down where
        they cannot be read.
        """
        said: dict[int, Applied] = {}
        unreadable: list[StoredEvent] = []
        for event in stored:
            try:
                # It was forgotten later; that decision has a place of its own.
                again = replace(event, forgotten=False) if event.forgotten else event
                if event.content:
                    said[event.id] = apply(self._sources[event.source], again)
                    continue
            except Exception:  # noqa: BLE001  (a mistake of ours in a provider loses no fact)
                self.outcome.unread += 1
            unreadable.append(event)
        return said | self._as_written(unreadable)

    def _as_written(self, unreadable: Sequence[StoredEvent]) -> dict[int, Applied]:
        if not unreadable:
            return {}
        written = notifications.written(self._live, [event.id for event in unreadable])
        return {
            event.id: Applied(
                event_id=event.id,
                source_id=event.source_id,
                notifications=tuple(written[event.id]),
                scope=self._sources[event.source].scope,
                suppress_ambiguous=self._sources[event.source].suppress_ambiguous,
            )
            for event in unreadable
        }


def _addresses(told: Mapping[int, Sequence[Notification]]) -> set[str]:
    """The folded addresses that notifications are about, or may be."""
    return {
        folded(address)
        for each in told.values()
        for notification in each
        for address in (notification.recipient, *notification.candidates)
        if address is not None
    }
