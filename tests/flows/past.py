"""A real database that events are applied to and decisions are made about, and its rebuild."""

import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from hookbox.flows.apply import apply
from hookbox.flows.rebuild import Outcome, Rebuild
from hookbox.flows.sources import Source
from hookbox.model import BounceClass, Kind, Notification, RejectReason, StoredEvent
from hookbox.providers import PROVIDERS
from hookbox.providers.contract import Trust
from hookbox.rules.suppression import Budget
from hookbox.store import (
    database,
    events,
    ledger,
    reprocess,
    scratch,
    sources,
    suppressions,
    swap,
)
from hookbox.store.connections import Transaction
from hookbox.store.decisions import Verb, Word
from hookbox.store.suppressions import Wanted
from tests.store.facts import DAY, NOW

T = TypeVar("T")
Read = Callable[[StoredEvent], tuple[Notification, ...]]

TABLES = {
    "status": "source_id, message_id, recipient, shown, kind, bounce_class, status_at, event_id",
    "suppression": "id, address, scope, shown, reason, since, event_id, lift_id",
    "suppression_cause": "suppression_id, reason, since, event_id, decision_id",
    "notification": "event_id, address, kind, bounce_class, meaning, claims",
    "decision": "id, verb, at, who, reason",
}


def as_written(event: StoredEvent) -> tuple[Notification, ...]:
    """The provider of these tests: events are notifications in JSON."""
    found = []
    for fields in json.loads(event.content):
        bounce, refused = fields.pop("bounce_class"), fields.pop("reject_reason")
        found.append(
            Notification(
                **{
                    **fields,
                    "kind": Kind(fields["kind"]),
                    "bounce_class": bounce and BounceClass(bounce),
                    "reject_reason": refused and RejectReason(refused),
                    "candidates": tuple(fields["candidates"]),
                }
            )
        )
    return tuple(found)


def content(told: Sequence[Notification]) -> bytes:
    names = (
        "kind", "recipient", "bounce_class", "reject_reason", "occurred_at", "message_id",
        "ambiguous", "candidates", "suppress", "scope", "meaning",
    )  # fmt: skip
    return json.dumps([{name: getattr(each, name) for name in names} for each in told]).encode()


class Box:
    """A real database that events are applied to and decisions are made about; no server."""

    def __init__(self, state: Path, budget: Budget | None = None) -> None:
        self.state, self.budget = state, budget or Budget()
        self.received_at = NOW + 400 * DAY  # of whatever arrives next
        names = self.run(lambda t: sources.remember(t, {"a": "test", "b": "test"}))
        plain = Source(
            name="a",
            id=names["a"],
            provider=replace(PROVIDERS["standardwebhooks"], normalize=as_written),
            trust=Trust(keys=()),
            body_max=0,
        )
        other = replace(plain, name="b", id=names["b"], scope="news", suppress_ambiguous=True)
        self.sources = {"a": plain, "b": other}
        self._ids = itertools.count(1)
        self._clock = itertools.count(NOW, 1000)

    def run(self, work: Callable[[Transaction], T]) -> T:
        with database.exclusive(self.state) as run:
            return run(work)

    def rows(self, table: str) -> list[tuple[object, ...]]:
        with database.reading(self.state) as transaction:
            return [
                tuple(row) for row in transaction.execute(f"SELECT {TABLES[table]} FROM {table}")
            ]

    def everything(self) -> dict[str, list[tuple[object, ...]]]:
        return {table: sorted(self.rows(table), key=repr) for table in TABLES}

    def mended(self, read: Read) -> None:
        """From now on events are read like this."""
        self.sources = {
            name: replace(source, provider=replace(source.provider, normalize=read))
            for name, source in self.sources.items()
        }

    def tell(self, *batch: Sequence[Notification], source: str = "a") -> list[int]:
        """These events arrive and are applied in one transaction; their ids."""
        ids = [next(self._ids) for _ in batch]
        self.run(lambda t: self._tell(t, list(zip(ids, batch, strict=True)), source))
        return ids

    def _tell(
        self, transaction: Transaction, batch: list[tuple[int, Sequence[Notification]]], source: str
    ) -> None:
        source_id = self.sources[source].id
        for event_id, told in batch:
            transaction.execute(
                "INSERT INTO delivery (id, source_id, received_at, via, verified_by, remote,"
                " headers, is_text, body) VALUES (?, ?, ?, 'webhook', 'current', '', '{}', 1, ?)",
                (event_id, source_id, self.received_at, content(told)),
            )
            transaction.execute(
                "INSERT INTO event (id, source_id, key, digest, delivery_id, raw_kind, synthesised)"
                " VALUES (?, ?, ?, zeroblob(32), ?, '', 0)",
                (event_id, source_id, f"k{event_id}", event_id),
            )
        self._apply(transaction, [event_id for event_id, _ in batch])

    def _apply(self, transaction: Transaction, ids: Sequence[int]) -> None:
        stored = sorted(events.by_id(transaction, ids), key=lambda event: event.id)
        applied = [apply(self.sources[event.source], event) for event in stored]
        ledger.append(transaction, applied, self.budget)

    def replay(self, event_id: int) -> None:
        """As the worker does it after a person asked for it."""
        self.run(lambda t: self._replay(t, event_id))

    def _replay(self, transaction: Transaction, event_id: int) -> None:
        reprocess.replay(transaction, event_id, self.word())
        transaction.execute("UPDATE job SET state = 'completed', finished_at = 0")
        self._apply(transaction, [event_id])

    def word(self) -> Word:
        return Word(who="eve", reason="asked", at=next(self._clock))

    def suppress(self, *wanted: Wanted, verb: Verb = Verb.ADD) -> None:
        self.run(lambda t: suppressions.add(t, wanted, verb, self.word()))

    def lift(self, address: str, scope: str = "", at: int | None = None) -> None:
        word = self.word() if at is None else replace(self.word(), at=at)
        self.run(lambda t: suppressions.lift(t, address, scope, word))

    def forget(self, event_id: int) -> None:
        self.run(lambda t: reprocess.forget(t, "a", f"k{event_id}", self.word()))

    def drop_content(self, event_id: int) -> None:
        """Retention takes what the event was read from."""
        self.run(lambda t: t.execute("UPDATE delivery SET body = NULL WHERE id = ?", (event_id,)))

    def drop_event(self, event_id: int) -> None:
        """Retention takes the event whole."""
        self.run(lambda t: self._drop_event(t, event_id))

    def _drop_event(self, transaction: Transaction, event_id: int) -> None:
        for table in ("job", "notification"):
            transaction.execute(f"DELETE FROM {table} WHERE event_id = ?", (event_id,))
        transaction.execute("DELETE FROM event WHERE id = ?", (event_id,))

    @contextmanager
    def rebuilding(self) -> Iterator[tuple[Rebuild, Transaction, str]]:
        """A rebuild that has read everything so far."""
        with ExitStack() as stack:
            live = stack.enter_context(database.reading(self.state))
            name, fresh = stack.enter_context(scratch.fresh(self.state))
            rebuild = Rebuild(live, fresh, self.sources, self.budget)
            rebuild.follow()
            rebuild.compare()
            yield rebuild, fresh, name

    def rebuild(self, *, take: bool = False) -> Outcome:
        """What a rebuild finds; with `take` it is taken over."""
        with self.rebuilding() as (rebuild, fresh, name):
            rebuild.follow()
            rebuild.compare_again()
            if take:
                self.take(rebuild, fresh, name)
            return rebuild.outcome

    def take(self, rebuild: Rebuild, fresh: Transaction, name: str) -> int:
        outcome = rebuild.outcome
        swap.note(fresh, outcome.differences, outcome.retold | outcome.reworded)
        path = scratch.named(self.state, name)
        return self.run(lambda t: swap.swap(t, path, rebuild.position, self.word()))

    def suppressed(self) -> list[tuple[object, ...]]:
        return [(row[1], row[2], row[4]) for row in self.rows("suppression") if row[7] is None]

    def statuses(self) -> list[tuple[object, ...]]:
        return [(row[2], row[4], row[5]) for row in self.rows("status")]
