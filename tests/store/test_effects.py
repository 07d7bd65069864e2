"""The effect ledger on a real database, under whatever order of claims, crashes and clock steps."""

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from hookbox.errors import OperatorError
from hookbox.rules import effects as rules
from hookbox.rules.effects import Answer, Claim, IfUnknown, Outcome, Verdict
from hookbox.store import connections, effects, schema
from hookbox.store.connections import Transaction, in_transaction
from hookbox.store.decisions import Word

LEASE_MS = 60_000
KEYS = ("reply:1", "reply:2")
NOW = 1_700_000_000_000
WORD = Word(who="ann", reason="saw it in the outbox", at=NOW + LEASE_MS)


@pytest.fixture
def ledger(path: Path) -> Iterator[Transaction]:
    connection = connections.connect(path)
    connection.row_factory = sqlite3.Row
    yield connection
    connection.close()


def claim(
    ledger: Transaction, token: str, policy: IfUnknown = IfUnknown.STOP, now: int = NOW
) -> Answer:
    asked = Claim(key=KEYS[0], token=token, who="mailer", lease_ms=LEASE_MS, if_unknown=policy)
    return in_transaction(ledger, lambda t: effects.claim(t, asked, now))


def test_result_is_kept_for_whoever_asks_later(ledger: Transaction) -> None:
    claim(ledger, "a")
    effects.complete(ledger, KEYS[0], "a", "message-id 7", NOW + 5)
    answer = claim(ledger, "b", IfUnknown.RETRY, NOW + 10**10)
    told = effects.line(KEYS[0], answer)
    assert told["outcome"] == "done"
    assert told["result"] == "message-id 7"
    assert told["completed_at"] == "2023-11-14T22:13:20.005Z"
    assert "token" not in told


def test_abandoned_key_is_as_if_never_claimed(ledger: Transaction) -> None:
    claim(ledger, "a")
    assert effects.abandon(ledger, KEYS[0], "a").outcome is Outcome.ABANDONED
    assert effects.look(ledger, KEYS[0], NOW).outcome is Outcome.ABSENT
    assert claim(ledger, "b").outcome is Outcome.WON
    assert effects.complete(ledger, KEYS[0], "a", "late", NOW).outcome is Outcome.FENCED


def test_settlement_is_recorded_with_who_why_and_what_was_unknown(ledger: Transaction) -> None:
    claim(ledger, "a")
    effects.settle(ledger, KEYS[0], Verdict.DONE, WORD)
    assert claim(ledger, "b").outcome is Outcome.DONE
    [row] = ledger.execute("SELECT * FROM settlements").fetchall()
    assert dict(row) == {
        "id": 1,
        "key": KEYS[0],
        "verdict": "done",
        "settled_at": "2023-11-14T22:14:20.000Z",
        "settled_by": "ann",
        "reason": "saw it in the outbox",
        "claimed_by": "mailer",
        "claimed_at": "2023-11-14T22:13:20.000Z",
    }


@pytest.mark.parametrize("state", ["never claimed", "in progress", "done"])
def test_what_is_not_unknown_is_not_settled(ledger: Transaction, state: str) -> None:
    if state != "never claimed":
        claim(ledger, "a", now=WORD.at)
    if state == "done":
        effects.complete(ledger, KEYS[0], "a", "", NOW)
    with pytest.raises(OperatorError, match="only what is unknown"):
        effects.settle(ledger, KEYS[0], Verdict.UNDONE, WORD)
    assert ledger.execute("SELECT * FROM settlements").fetchall() == []


def test_unknown_ones_are_found_through_the_view_and_its_index(ledger: Transaction) -> None:
    query = (
        "SELECT key, claimed_by, claimed_at FROM effects"
        " WHERE state = 'claimed' AND lease_until < strftime('%Y-%m-%dT%H:%M:%fZ', 'now')"
    )
    claim(ledger, "a")
    assert [row["key"] for row in ledger.execute(query)] == [KEYS[0]]
    [step] = ledger.execute(f"EXPLAIN QUERY PLAN {query}").fetchall()
    assert "USING INDEX effect_claimed" in step["detail"]
    effects.complete(ledger, KEYS[0], "a", "", NOW)
    assert ledger.execute(query).fetchall() == []


# ---- any order of things


@dataclass
class Holder:
    """One program that won a claim."""

    key: str
    token: str
    ran: bool = False  # it made the effect happen
    crashed: bool = False


class Ledger(RuleBasedStateMachine):
    """Programs that claim, run, complete, give up, renew, come late or die, under a clock that is
    set.
    """

    def __init__(self) -> None:
        super().__init__()
        self.database = sqlite3.connect(":memory:", isolation_level=None)
        self.database.row_factory = sqlite3.Row
        for _, sql in schema.migrations():
            self.database.executescript(sql)
        self.now = NOW
        self.holders: list[Holder] = []
        self.current: dict[str, Holder] = {}  # whose claim stands
        self.completed: set[str] = set()
        self.retried: set[str] = set()  # somebody wanted it twice rather than never

    def teardown(self) -> None:
        self.database.close()

    def chosen(self, number: int) -> Holder:
        return self.holders[number % len(self.holders)]

    @rule(ms=st.sampled_from([1, LEASE_MS, 2 * LEASE_MS]) | st.integers(-(10**10), 10**10))
    def time_passes_or_the_clock_is_set(self, ms: int) -> None:
        self.now += ms

    @rule(key=st.sampled_from(KEYS), policy=st.sampled_from(IfUnknown))
    def claim(self, key: str, policy: IfUnknown) -> None:
        token = f"token {len(self.holders)}"
        asked = Claim(key=key, token=token, who="x", lease_ms=LEASE_MS, if_unknown=policy)
        before = effects.look(self.database, key, self.now)
        answer = effects.claim(self.database, asked, self.now)
        if answer.outcome is not Outcome.WON:
            assert answer == before
            return
        assert key not in self.completed
        if key in self.current:
            assert (policy, before.outcome) == (IfUnknown.RETRY, Outcome.UNKNOWN)
            assert answer.before == before.effect
            self.retried.add(key)
        self.current[key] = Holder(key=key, token=token)
        self.holders.append(self.current[key])

    @precondition(lambda self: self.holders)
    @rule(number=st.integers(0, 50))
    def run(self, number: int) -> None:
        holder = self.chosen(number)
        holder.ran = holder.ran or not holder.crashed

    @precondition(lambda self: self.holders)
    @rule(number=st.integers(0, 50))
    def crash(self, number: int) -> None:
        self.chosen(number).crashed = True

    @precondition(lambda self: self.holders)
    @rule(number=st.integers(0, 50), verb=st.sampled_from(["renew", "finish"]))
    def act(self, number: int, verb: str) -> None:
        holder = self.chosen(number)
        if holder.crashed:
            return
        key, token, now = holder.key, holder.token, self.now
        before = effects.look(self.database, key, now)
        stands = self.current.get(key) is holder
        if verb == "renew":
            answer = effects.renew(self.database, key, token, now)
            assert (answer.outcome is Outcome.RENEWED) == (stands and key not in self.completed)
        elif holder.ran:
            answer = effects.complete(self.database, key, token, "sent", now)
            assert (answer.outcome is Outcome.DONE) == stands
            self.completed |= {key} if stands else set()
        else:
            answer = effects.abandon(self.database, key, token)
            assert (answer.outcome is Outcome.ABANDONED) == stands
            holder.crashed = True  # it has said that it will not run
            if stands:
                del self.current[key]
        if answer.outcome in (Outcome.FENCED, Outcome.ABSENT):
            assert effects.look(self.database, key, now) == before

    @rule(key=st.sampled_from(KEYS))
    def settle(self, key: str) -> None:
        """A person who looks closely: at a holder that is dead, and at what really happened."""
        holder = self.current.get(key)
        if holder is None or not holder.crashed:
            return
        if effects.look(self.database, key, self.now).outcome is not Outcome.UNKNOWN:
            return
        word = Word(who="ann", reason="looked", at=self.now)
        verdict = Verdict.DONE if holder.ran else Verdict.UNDONE
        effects.settle(self.database, key, verdict, word)
        del self.current[key]
        self.completed |= {key} if holder.ran else set()

    @invariant()
    def one_at_most_holds_a_claim(self) -> None:
        for key in KEYS:
            row = effects.look(self.database, key, self.now).effect
            tokens = [holder.token for holder in self.holders if holder.key == key]
            renewals = [rules.renewed(row, token, self.now) for token in tokens]
            assert sum(each.outcome is Outcome.RENEWED for each in renewals) <= 1

    @invariant()
    def nothing_runs_twice_unless_somebody_said_retry(self) -> None:
        for key in set(KEYS) - self.retried:
            assert sum(holder.ran for holder in self.holders if holder.key == key) <= 1


TestLedger = Ledger.TestCase
TestLedger.settings = settings(max_examples=100, stateful_step_count=40)
