"""Rebuild: work the ledger out anew from what is stored, and find where it differs.

Events are read again in the order in which they were first applied, and between them every person's
decision has its effect. It only reads the live database, so a server may run beside it; what that
one applies meanwhile is caught up with.
"""

import itertools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from hookbox.flows.apply import apply
from hookbox.flows.sources import Source
from hookbox.model import Notification, StoredEvent
from hookbox.rules.folding import folded
from hookbox.rules.suppression import Budget
from hookbox.store import differences, events, history, ledger, notifications, order, swap
from hookbox.store.connections import Transaction
from hookbox.store.differences import Difference
from hookbox.store.history import Step
from hookbox.store.ledger import Applied

STEPS_MAX = 200  # events that are held in memory with their content

EVENT_STUB = """
"""


@dataclass(slots=True)
class Outcome:
    """Where the ledgers differ. `retold`: events that are read otherwise now."""

    differences: list[Difference] = field(default_factory=list)
    retold: set[int] = field(default_factory=set)

    @property
    def loosens(self) -> list[Difference]:
        return [each for each in self.differences if each.loosens]


class Rebuild:
    """One rebuild: `begin`, `follow` until little is left, `compare`; then, with the live ledger
    held still, `follow` and `compare_again`.
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
        self.position = 0  # the place in the order up to which the fresh ledger has come
        self.outcome = Outcome()
        self._touched: set[str] = set()  # addresses that something happened to since the last look

    def begin(self) -> None: ...
