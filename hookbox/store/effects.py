"""The effect ledger: which effects were claimed, by whom, and which have happened.

The rules are in `hookbox.rules.effects`; here they meet the rows. Looking and writing are one
transaction, so of any number who claim one key at the same moment one wins.
"""

import secrets
from collections.abc import Mapping
from dataclasses import asdict

from hookbox.errors import OperatorError
from hookbox.rules import effects
from hookbox.rules.effects import Answer, Claim, Effect, Outcome, Verdict
from hookbox.rules.instants import written
from hookbox.store.connections import Transaction
from hookbox.store.decisions import Word

READ = """
SELECT key, token, claimed_by, claimed_at, renewed_at, lease_ms, completed_at, result
FROM effect WHERE key = :key
"""
PUT = """
INSERT INTO effect
  (key, state, token, claimed_by, claimed_at, renewed_at, lease_ms, completed_at, result)
VALUES (
  :key, iif(:completed_at IS NULL, 'claimed', 'completed'), :token, :claimed_by, :claimed_at,
  :renewed_at, :lease_ms, :completed_at, :result
)
ON CONFLICT (key) DO UPDATE SET
  state = excluded.state, token = excluded.token, claimed_by = excluded.claimed_by,
  claimed_at = excluded.claimed_at, renewed_at = excluded.renewed_at,
  lease_ms = excluded.lease_ms, completed_at = excluded.completed_at, result = excluded.result
"""
GIVE_UP = "DELETE FROM effect WHERE key = :key"
RECORD = """
INSERT INTO effect_settlement
  (key, verdict, settled_at, settled_by, reason, claimed_by, claimed_at)
VALUES (:key, :verdict, :at, :who, :reason, :claimed_by, :claimed_at)
"""

TOKEN_BYTES = 16

Line = Mapping[str, object]


def new_token() -> str:
    """What a claim is held by; nobody guesses it, and no two are the same."""
    return secrets.token_urlsafe(TOKEN_BYTES)


def look(transaction: Transaction, key: str, now: int) -> Answer:
    """How an effect stands."""
    return effects.looked(_read(transaction, key), now)


def claim(transaction: Transaction, claim: Claim, now: int) -> Answer:
    """Won, done already, in progress or unknown."""
    before = _read(transaction, claim.key)
    return _kept(transaction, before, effects.claimed(before, claim, now))


def renew(transaction: Transaction, key: str, token: str, now: int) -> Answer:
    """The lease begins anew; or fenced."""
    before = _read(transaction, key)
    return _kept(transaction, before, effects.renewed(before, token, now))


def complete(
    transaction: Transaction, key: str, token: str, result: str | None, now: int
) -> Answer:
    """It has happened, and this is its result; or fenced."""
    before = _read(transaction, key)
    return _kept(transaction, before, effects.completed(before, token, result, now))


def abandon(transaction: Transaction, key: str, token: str) -> Answer:
    """It did not happen, and may be claimed again; or fenced."""
    before = _read(transaction, key)
    return _kept(transaction, before, effects.abandoned(before, token))


def settle(transaction: Transaction, key: str, verdict: Verdict, word: Word) -> None:
    """A person says what became of an unknown effect. Raises OperatorError for any other."""
    before = _read(transaction, key)
    answer = effects.settled(before, verdict, word.at)
    if answer.before is None:
        raise OperatorError(f"{key!r} {_standing(answer)}; only what is unknown can be settled")
    _kept(transaction, before, answer)
    record = {
        "key": key,
        "verdict": verdict,
        "at": word.at,
        "who": word.who,
        "reason": word.reason,
        "claimed_by": answer.before.claimed_by,
        "claimed_at": answer.before.claimed_at,
    }
    transaction.execute(RECORD, record)


def line(key: str, answer: Answer) -> Line:
    """An answer for programs, its fields named as in the view. Only the winner learns the token."""
    effect, before = answer.effect, answer.before
    told: dict[str, object] = {"key": key, "outcome": answer.outcome}
    if effect is not None:
        is_done = effect.completed_at is not None
        told["claimed_by"] = effect.claimed_by
        told["claimed_at"] = written(effect.claimed_at)
        told["lease_until"] = None if is_done else written(effect.lease_until)
        told["completed_at"] = _written(effect.completed_at)
        told["result"] = effect.result
        if answer.outcome is Outcome.WON:
            told["token"] = effect.token
            told["unknown_before"] = before and {
                "claimed_by": before.claimed_by,
                "claimed_at": written(before.claimed_at),
            }
    return told


def _written(at: int | None) -> str | None:
    return None if at is None else written(at)


def _standing(answer: Answer) -> str:
    effect = answer.effect
    if effect is None:
        return "is not claimed"
    if effect.completed_at is not None:
        return f"is done, since {written(effect.completed_at)}"
    return f"is in progress until {written(effect.lease_until)}, by {effect.claimed_by}"


def _read(transaction: Transaction, key: str) -> Effect | None:
    row = transaction.execute(READ, {"key": key}).fetchone()
    return None if row is None else Effect(**dict(row))


def _kept(transaction: Transaction, before: Effect | None, answer: Answer) -> Answer:
    """Write down what changed."""
    after = answer.effect
    if after is not None and after != before:
        transaction.execute(PUT, asdict(after))
    elif after is None and before is not None:
        transaction.execute(GIVE_UP, {"key": before.key})
    return answer
