"""Questions about suppressed addresses, and what a person may do to them.

Every answer looks at the folded address. Nothing is ever deleted: a lift closes a row and says who
lifted it and why.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hookbox.errors import OperatorError
from hookbox.rules.addresses import bare
from hookbox.rules.folding import folded, meant
from hookbox.rules.suppression import Cause, Suppression
from hookbox.store import decisions
from hookbox.store.connections import Transaction
from hookbox.store.decisions import Verb, Word
from hookbox.store.pseudonyms import NONE, Pseudonyms
from hookbox.store.ratchet import Ratchet

# A primary key look-up for each address of the list, whatever else is suppressed.
VERDICTS = """
SELECT wanted.key AS position, p.scope, p.reason, p.since, p.event_id, s.name AS source
FROM json_each(:addresses) AS wanted
CROSS JOIN suppression AS p ON p.address = wanted.value AND p.lift_id IS NULL
LEFT JOIN source AS s ON s.id = p.source_id
WHERE :scope IS NULL OR p.scope IN ('', :scope)
ORDER BY p.since
"""
LIFT = """
UPDATE suppression SET lift_id = :lift_id
WHERE address = :address AND scope = :scope AND lift_id IS NULL
"""

STANDS = """
SELECT 1 FROM suppression WHERE address = :address AND scope = :scope AND lift_id IS NULL
"""

CHUNK = 5_000  # addresses a statement: measured to be as quick as any larger number
NOT_AN_ADDRESS = "not_an_address"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """May this address be mailed? With the reason, since when, and the event behind it, if not.

    `address` is the text that was asked about. What is no address is not suppressed, and is not to
    be mailed either: its reason is NOT_AN_ADDRESS.
    """

    address: str
    suppressed: bool
    reason: str | None = None
    since: int | None = None
    event_id: int | None = None
    source: str | None = None
    scope: str | None = None

    @property
    def can_send(self) -> bool:
        return self.reason is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """One suppression that a person asks for."""

    address: str
    cause: Cause
    since: int
    scope: str = ""


def verdicts(
    transaction: Transaction,
    addresses: Sequence[str],
    scope: str | None = None,
    pseudonyms: Pseudonyms = NONE,
) -> list[Verdict]:
    """One verdict for each address, in order; `Ann <ann@example.com>` asks about what is in the
    brackets. Without `scope` every list counts, the careful answer; with one, that list and the
    global one. `pseudonyms`: under which names those go that were erased.
    """
    found: list[Verdict] = []
    for at in range(0, len(addresses), CHUNK):
        found += _verdicts(transaction, addresses[at : at + CHUNK], scope, pseudonyms)
    return found


def _verdicts(
    transaction: Transaction, addresses: Sequence[str], scope: str | None, pseudonyms: Pseudonyms
) -> list[Verdict]:
    meant = [bare(address) for address in addresses]
    wanted = [folded(each or text) for each, text in zip(meant, addresses, strict=True)]
    wanted += pseudonyms.of_all(wanted)
    place = {"addresses": json.dumps(wanted), "scope": scope}
    first: dict[int, Verdict] = {}
    for row in transaction.execute(VERDICTS, place):
        position = row["position"] % len(addresses)
        first.setdefault(
            position,
            Verdict(
                address=addresses[position],
                suppressed=True,
                reason=row["reason"],
                since=row["since"],
                event_id=row["event_id"],
                source=row["source"],
                scope=row["scope"],
            ),
        )
    return [
        first.get(position)
        or Verdict(
            address=address,
            suppressed=False,
            reason=None if meant[position] else NOT_AN_ADDRESS,
        )
        for position, address in enumerate(addresses)
    ]


def add(transaction: Transaction, wanted: Iterable[Wanted], verb: Verb, word: Word) -> int:
    """Suppress on a person's word; how many were not suppressed before.

    What happened first stays the reason, so an import keeps an earlier cause. Nothing here is
    undone by an older lift: a person asks for it now.
    """
    asked = list(wanted)
    added = 0
    for at in range(0, len(asked), CHUNK):
        added += _add(transaction, asked[at : at + CHUNK], verb, word)
    return added


def _add(transaction: Transaction, wanted: Sequence[Wanted], verb: Verb, word: Word) -> int:
    decision_id = decisions.record(transaction, verb, word)
    ratchet = Ratchet(transaction, [folded(each.address) for each in wanted])
    told = [
        ratchet.count(
            each.address,
            each.scope,
            Suppression(cause=each.cause, at=each.since),
            decision_id=decision_id,
        )
        for each in wanted
    ]
    ratchet.save()
    return sum(each.startswith("suppressed") for each in told)


def lift(
    transaction: Transaction,
    address: str,
    scope: str,
    word: Word,
    pseudonyms: Pseudonyms = NONE,
) -> None:
    """A person takes an address off the list, also one that was erased. Only what happens after
    this suppresses it again.

    Raises OperatorError when it is not on the list.
    """
    key = meant(address)
    lifted = 0
    for name in (key, *pseudonyms.of_all([key])):
        if transaction.execute(STANDS, {"address": name, "scope": scope}).fetchone():
            lift_id = decisions.record(transaction, Verb.LIFT, word, address=name, scope=scope)
            place = {"address": name, "scope": scope, "lift_id": lift_id}
            lifted += transaction.execute(LIFT, place).rowcount
    if not lifted:
        where = f" in scope {scope!r}" if scope else ""
        raise OperatorError(
            f"{address} is not suppressed{where}; see: hookbox suppressions check {address}"
        )
