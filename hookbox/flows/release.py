"""Release: what was put aside is let through, by a person's decision.

An event that could not be applied is applied again. Content that contradicts an earlier event
becomes an event of its own. What could not be read is read again, as the source is configured now;
when it still cannot be, nothing is changed and the person is told why.
"""

from collections.abc import Callable

from hookbox.errors import OperatorError, Unintelligible
from hookbox.model import Delivery, Handshake, Slot, Split, Via
from hookbox.providers.contract import Provider, proved_before
from hookbox.providers.feed import Place
from hookbox.rules.digest import Unreadable
from hookbox.store import admissions, quarantine
from hookbox.store.admissions import CONFLICT, Ids
from hookbox.store.connections import Transaction
from hookbox.store.proposals import Proposal

# Source name -> the provider as the source is configured; None where it is not.
ProviderOf = Callable[[str], Provider | None]


def release(
    transaction: Transaction,
    entry_id: int,
    provider_of: ProviderOf,
    now: int,
    *,
    unread: bool = False,
) -> str:
    """Let one entry through; what became of it, for a person.

    `unread` keeps what cannot be read as an event of kind unknown. Raises OperatorError.
    """
    entry = quarantine.entry(transaction, entry_id)
    if unread or entry.resolved or entry.event_id is not None or entry.reason == CONFLICT:
        event_id = quarantine.accept(transaction, entry_id, now)
        return f"accepted as event {event_id}; see: hookbox events show {event_id}"
    provider = provider_of(entry.source)
    if provider is None:
        raise OperatorError(f"source {entry.source} is not configured, so nobody can read this")
    delivery, row = quarantine.delivery(transaction, entry_id)
    try:
        if delivery.via is Via.POLL:
            split: Split | Handshake = _page(provider, delivery)
        else:
            split = provider.split(proved_before(delivery, Slot(row.verified_by), row.signed_at))
    except Unintelligible as error:
        raise _still_unread(entry_id, error.reason) from error
    if isinstance(split, Handshake) or not split.events:
        raise _still_unread(entry_id, _why(split))
    proposal = Proposal(delivery=row, events=split.events)
    admission = admissions.admit(transaction, [proposal], Ids(), now)[0]
    if not admission.new:
        raise _still_unread(entry_id, _why(split))
    told = f"read again: {admission.new} new event{'' if admission.new == 1 else 's'}"
    quarantine.resolve(transaction, entry_id, told, now)
    return told


def _page(provider: Provider, delivery: Delivery) -> Split:
    """A page of the sender's list, read again; what is known of it stays as it is."""
    if provider.feed is None:
        raise Unintelligible("this source is no longer polled")
    place = Place(url="", token="", limit=1, now=delivery.received_at)
    try:
        page = provider.feed.read(place, delivery.body)
    except Unreadable as error:
        raise Unintelligible(str(error)) from error
    return Split(events=page.events, rotten=page.rotten)


def _why(split: Split | Handshake) -> str:
    if isinstance(split, Handshake):
        return "it is a handshake, not an event"
    return split.rotten[0].reason if split.rotten else "it holds no event that is not known"


def _still_unread(entry_id: int, reason: str) -> OperatorError:
    return OperatorError(
        f"entry {entry_id} still cannot be read ({reason}); nothing was changed. Change the "
        "source's settings and try again, or keep it as an event of kind unknown: "
        f"hookbox quarantine accept {entry_id} --unread"
    )
