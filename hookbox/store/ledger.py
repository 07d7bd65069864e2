"""The ledger: what events say is written down, and moves statuses and suppressions.

One call takes many events, and comes to the same as a call for each. Everything in it may be done
again without harm: statuses are joins, causes are a set, and the transient budget counts messages,
not reports.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from hookbox.model import Notification
from hookbox.rules.folding import folded
from hookbox.rules.lifecycle import SOFT_RANK, Status, joined, reported
from hookbox.rules.suppression import Budget, Cause, Suppression, budget_spent, cause_of, holds
from hookbox.store import notifications, order, statuses
from hookbox.store.connections import Transaction
from hookbox.store.notifications import Told
from hookbox.store.ratchet import Ratchet
from hookbox.store.statuses import StatusKey

# An event that is applied again keeps its place.
MARK_APPLIED = """
UPDATE event
SET state = 'applied', kind = ?, recipient = ?, message_id = ?, occurred_at = ?,
  place = coalesce(place, ?)
WHERE id = ?
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """One event and what it says; at least one notification, each with its time settled.

    `scope`: which list the source's suppressions go to. `suppress_ambiguous`: the operator's word
    that events of this source may suppress everybody they may concern. `claims`: what it tells is
    no news when another event tells it; a person may have decided otherwise.
    """

    event_id: int
    source_id: int
    notifications: tuple[Notification, ...]
    scope: str = ""
    suppress_ambiguous: bool = False
    claims: bool = True


@dataclass(slots=True)
class _Line:
    """One notification on its way into the ledger."""

    applied: Applied
    notification: Notification
    status: Status | None
    cause: Cause | None
    concerned: Mapping[str, str]  # folded address -> as the sender writes it
    effects: list[str] = field(default_factory=list)
    claims: bool | None = None  # the first to tell its fact, where others could; a repeat is False

    @property
    def softens(self) -> bool:
        """May cost the address one more message of its budget."""
        return self.status is not None and self.status.rank == SOFT_RANK


def append(
    transaction: Transaction,
    applied: Sequence[Applied],
    budget: Budget,
    counts_from: int | None = None,
) -> None:
    """Write down what the events say, with all its consequences. `counts_from`: soft bounces up to
    then are not counted.
    """
    lines = [_line(entry, each) for entry in applied for each in entry.notifications]
    _find_repeats(transaction, lines)
    for batch in _independent([line for line in lines if line.claims is not False]):
        softened = _advance(transaction, batch)
        _suppress(transaction, batch)
        _charge(transaction, softened, budget, counts_from)
    event_ids = [entry.event_id for entry in applied]
    notifications.write(transaction, event_ids, [_told(line) for line in lines])
    places = order.places(transaction, len(applied))
    summaries = [
        (*_summary(entry), place, entry.event_id)
        for entry, place in zip(applied, places, strict=True)
    ]
    transaction.executemany(MARK_APPLIED, summaries)


def _line(applied: Applied, notification: Notification) -> _Line:
    return _Line(
        applied=applied,
        notification=notification,
        status=reported(notification, applied.event_id),
        cause=cause_of(notification, suppress_ambiguous=applied.suppress_ambiguous),
        concerned=concerned(notification, suppress_ambiguous=applied.suppress_ambiguous),
    )


def concerned(notification: Notification, *, suppress_ambiguous: bool) -> Mapping[str, str]:
    """Whom it is about: nobody when that is ambiguous, unless the operator said so."""
    shown: tuple[str, ...] = () if notification.recipient is None else (notification.recipient,)
    if notification.ambiguous:
        shown = (notification.candidates or shown) if suppress_ambiguous else ()
    concerned: dict[str, str] = {}
    for each in shown:
        concerned.setdefault(folded(each), each)
    return concerned


def _find_repeats(transaction: Transaction, lines: Sequence[_Line]) -> None:
    """Facts that were told under another key before: written down, but counted once. An event that
    is applied again is the first to tell something, or a repeat, as it was before.
    """
    told = [
        (line, line.applied.event_id, meaning)
        for line in lines
        if (meaning := line.notification.meaning) is not None
    ]
    if not told:
        return
    facts = [(line.applied.source_id, meaning) for line, _, meaning in told]
    claimed = notifications.known_meanings(transaction, facts)
    repeats = notifications.known_repeats(transaction, [event_id for _, event_id, _ in told])
    for (line, event_id, meaning), fact in zip(told, facts, strict=True):
        if (event_id, meaning) in repeats:
            line.claims = False
        elif line.applied.claims:
            line.claims = claimed.setdefault(fact, event_id) == event_id
        if line.claims is False:
            line.effects.append(f"same fact as event {claimed.get(fact, event_id)}")
        repeats.add((event_id, meaning))  # an event that says a thing twice says it once


def _independent(lines: Sequence[_Line]) -> Iterator[Sequence[_Line]]:
    """The lines in batches of whole events, inside which the order of the events cannot matter.

    Whether a soft bounce spends the budget depends on what was known of that address before; so
    its event is the only one of the batch about it.
    """
    batch: list[_Line] = []
    seen: set[str] = set()
    softened: set[str] = set()
    for _, told in itertools.groupby(lines, key=lambda line: line.applied.event_id):
        event = list(told)
        concerned = {address for line in event for address in line.concerned}
        softens = {address for line in event if line.softens for address in line.concerned}
        if not (softens.isdisjoint(seen) and concerned.isdisjoint(softened)):
            yield batch
            batch, seen, softened = [], set(), set()
        batch += event
        seen |= concerned
        softened |= softens
    yield batch


# --- statuses


def _advance(transaction: Transaction, lines: Sequence[_Line]) -> dict[tuple[str, str], _Line]:
    """Join every report into its status; (address, scope) that a soft bounce was news for."""
    for line in lines:
        if line.notification.ambiguous and not line.concerned:
            line.effects.append("it is not said which recipient: nobody is touched")
    reports = [
        (StatusKey(line.applied.source_id, line.notification.message_id or "", address), line)
        for line in lines
        if line.status is not None
        for address in line.concerned
    ]
    if not reports:
        return {}
    known = statuses.statuses(transaction, dict.fromkeys(key for key, _ in reports))
    changed: dict[StatusKey, tuple[str, Status]] = {}
    softened: dict[tuple[str, str], _Line] = {}
    for key, line in reports:
        assert line.status is not None, "a report has a status"
        before = known.get(key)
        after = joined(before, line.status)
        line.effects.append(status_effect(before, line.status, after))
        if after is not before:
            known[key] = after
            shown = changed[key][0] if key in changed else line.concerned[key.recipient]
            changed[key] = shown, after
            if line.softens:
                softened[key.recipient, line.applied.scope] = line
    statuses.save(transaction, changed)
    return softened


def status_effect(before: Status | None, status: Status, after: Status) -> str:
    """What happened to the status, for the person who reads the timeline."""
    if after is status:
        return f"status {status.word}"
    assert before is not None, "a join without a known status is the new one"
    if before.rank == status.rank:
        return f"still {before.word}"
    return f"late {status.word} ignored: already {before.word}"


# --- suppressions


def _suppress(transaction: Transaction, lines: Sequence[_Line]) -> None:
    causes = [
        (line, address, line.cause)
        for line in lines
        if line.cause is not None
        for address in line.concerned
    ]
    if not causes:
        return
    ratchet = Ratchet(transaction, [address for _, address, _ in causes])
    for line, address, cause in causes:
        assert line.notification.occurred_at is not None, "settled before it is applied"
        _count(ratchet, line, address, cause, line.notification.occurred_at)
    ratchet.save()


def _charge(
    transaction: Transaction,
    softened: Mapping[tuple[str, str], _Line],
    budget: Budget,
    counts_from: int | None,
) -> None:
    """Addresses for which one more message has ended in a soft bounce."""
    if not softened:
        return
    addresses = [address for address, _ in softened]
    times = statuses.delivered(transaction, addresses)
    ratchet = Ratchet(transaction, addresses)
    for (address, scope), line in softened.items():
        if address not in times:
            continue  # the same batch told that the message was delivered after all
        lifted_at = ratchet.standing(address, scope).lifted_at
        soft_at = [
            at for at in times[address].soft_at if holds(at, lifted_at) and holds(at, counts_from)
        ]
        spent_at = budget_spent(soft_at, times[address].delivered_at, budget)
        if spent_at is not None:
            _count(ratchet, line, address, Cause.TRANSIENT_BUDGET, spent_at)
    ratchet.save()


def _count(ratchet: Ratchet, line: _Line, address: str, cause: Cause, at: int) -> None:
    applied = line.applied
    new = Suppression(cause=cause, at=at, event_id=applied.event_id, source_id=applied.source_id)
    line.effects.append(ratchet.count(line.concerned[address], applied.scope, new))


# --- rows


def _told(line: _Line) -> Told:
    return Told(
        event_id=line.applied.event_id,
        source_id=line.applied.source_id,
        notification=line.notification,
        claims=line.claims,
        effect="; ".join(line.effects),
    )


def _summary(entry: Applied) -> tuple[str, str | None, str | None, int | None]:
    """What the `events` view shows of an event: its recipients joined, the rest from the first."""
    first_told = entry.notifications[0]
    named = dict.fromkeys(n.recipient for n in entry.notifications if n.recipient is not None)
    recipients = ", ".join(named) or None
    return first_told.kind, recipients, first_told.message_id, first_told.occurred_at
