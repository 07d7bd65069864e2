"""What persons decided about the ledger: an account of who, when and why, never changed."""

from dataclasses import dataclass
from enum import StrEnum

from hookbox.store import order
from hookbox.store.connections import Transaction

RECORD = """
INSERT INTO decision (id, verb, at, who, reason, address, scope, event_id)
VALUES (:id, :verb, :at, :who, :reason, :address, :scope, :event_id)
"""


class Verb(StrEnum):
    """What a person can do."""

    ADD = "add"
    IMPORT = "import"
    LIFT = "lift"
    FORGET = "forget"
    REPLAY = "replay"
    REBUILD = "rebuild"


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """A person's word: who says so, why, and when."""

    who: str
    reason: str
    at: int


def record(
    transaction: Transaction,
    verb: Verb,
    word: Word,
    *,
    address: str | None = None,
    scope: str | None = None,
    event_id: int | None = None,
) -> int:
    """Write a decision down, before what it leads to; its id."""
    (place,) = order.places(transaction, 1)
    row = {
        "id": place,
        "verb": verb,
        "at": word.at,
        "who": word.who,
        "reason": word.reason,
        "address": address,
        "scope": scope,
        "event_id": event_id,
    }
    transaction.execute(RECORD, row)
    return place
