"""A rebuild comes to what was worked out bit by bit, and shows where that is not so."""

import itertools
import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from hookbox.errors import OperatorError
from hookbox.flows.apply import apply
from hookbox.flows.rebuild import Outcome, Rebuild
from hookbox.flows.sources import Source
from hookbox.model import BounceClass, Kind, Notification, RejectReason, StoredEvent
from hookbox.providers import PROVIDERS
from hookbox.providers.contract import Trust
from hookbox.rules.suppression import Budget, Cause
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
from tests.store.facts import DAY, HOUR, NOW, said

T = TypeVar("T")
Read = Callable[[StoredEvent], tuple[Notification, ...]]

HARD, SOFT = BounceClass.HARD, BounceClass.SOFT
ANN = "ann@example.com"
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
                (event_id, source_id, NOW + 400 * DAY, content(told)),
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


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return Box(tmp_path)


# --- the same, whatever happened

NO_SHRINK=(Phase.explicit, Phase.reuse, Phase.generate)
addresses = st.sampled_from([ANN, "Ann@EXAMPLE.com", "bob@example.com"])
notifications = st.builds(
    said,
    st.sampled_from([*Kind, Kind.BOUNCED, Kind.BOUNCED, Kind.COMPLAINED]),
    addresses | st.none(),
    at=st.integers(-3, 3).map(lambda n: NOW + n * HOUR),
    message=st.sampled_from(["m1", "m2", "m3", "m4"]),
    bounce=st.sampled_from([None, HARD, SOFT, SOFT, BounceClass.BLOCK]),
    ambiguous=st.booleans(),
    candidates=st.lists(addresses, max_size=2).map(tuple),
    scope=st.sampled_from(["", "group"]),
    meaning=st.sampled_from([None, None, "x", "y"]),
)
event = st.lists(notifications, min_size=1, max_size=2)
wanted = st.builds(
    Wanted,
    address=addresses,
    cause=st.sampled_from([Cause.MANUAL, Cause.IMPORTED, Cause.COMPLAINT]),
    since=st.integers(-3, 1).map(lambda n: NOW + n * HOUR),
    scope=st.sampled_from(["", "news"]),
)
steps = st.one_of(
    st.tuples(st.just("tell"), st.lists(event, min_size=1, max_size=4), st.sampled_from("ab")),
    st.tuples(st.just("tell"), st.lists(event, min_size=1, max_size=4), st.sampled_from("ab")),
    st.tuples(st.just("replay"), st.integers(0, 30)),
    st.tuples(st.just("forget"), st.integers(0, 30)),
    st.tuples(st.just("drop_content"), st.integers(0, 30)),
    st.tuples(st.just("suppress"), st.lists(wanted, min_size=1, max_size=2)),
    st.tuples(
        st.just("lift"),
        addresses,
        st.sampled_from(["", "news"]),
        st.integers(-2, 2).map(lambda n: NOW + n * HOUR),
    ),
)


def play(box: Box, told: Sequence[tuple[object, ...]]) -> None:
    """Let all of this happen; what cannot be done is not."""
    ids: list[int] = []
    for verb, *rest in told:
        try:
            match verb, *rest:
                case "tell", batch, source:
                    ids += box.tell(*batch, source=source)
                case "suppress", asked:
                    box.suppress(*asked)
                case "lift", address, scope, at:
                    box.lift(address, scope, at)
                case name, number:
                    if ids:
                        getattr(box, str(name))(ids[int(number) % len(ids)])
        except OperatorError:
            continue


@settings(max_examples=60, deadline=None, phases=NO_SHRINK)
@given(st.lists(steps, max_size=10))
def test_rebuild_comes_to_what_was_worked_out_bit_by_bit(told: list[tuple[object, ...]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        box = Box(Path(folder), Budget(messages=2))
        play(box, told)
        outcome = box.rebuild()
        assert (outcome.differences, outcome.retold, outcome.unread) == ([], set(), 0)


@settings(max_examples=30, deadline=None, phases=NO_SHRINK)
@given(st.lists(steps, max_size=8), st.data())
def test_damaged_ledger_is_what_it_was_after_a_rebuild(
    told: list[tuple[object, ...]], data: st.DataObject
) -> None:
    """Statuses and causes are lost at random; all of them come back, whatever happened."""
    with tempfile.TemporaryDirectory() as folder:
        box = Box(Path(folder), Budget(messages=2))
        play(box, told)
        before = {"status": box.rows("status"), "suppressed": sorted(box.suppressed())}
        damage = data.draw(st.sampled_from([
            "DELETE FROM status WHERE event_id % 2 = 0",
            "UPDATE status SET rank = 10, kind = 'queued', bounce_class = NULL",
            "UPDATE suppression SET reason = 'manual', since = 1 WHERE lift_id IS NULL",
        ]))  # fmt: skip
        box.run(lambda t: t.execute(damage))
        box.rebuild(take=True)
        assert sorted(box.suppressed()) == before["suppressed"]
        assert box.rows("status") == before["status"]
        assert box.rebuild().empty
