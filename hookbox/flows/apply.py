"""Apply: what an event says, in hookbox's own words, with its time settled. Pure; the worker calls
it and stores the answer.
"""

from dataclasses import replace

from hookbox.flows.sources import Source
from hookbox.model import Kind, Notification, StoredEvent, TimeSource
from hookbox.store.ledger import Applied
from hookbox.store.quarantine import ACCEPTED_UNREAD

DAY_MS = 86_400_000
PLAUSIBLE_FROM = 946_684_800_000  # 2000-01-01: no email event sender is older


def apply(source: Source, event: StoredEvent) -> Applied:
    """The event's notifications. What a person accepted unread is `unknown`."""
    if event.raw_kind == ACCEPTED_UNREAD:
        found: tuple[Notification, ...] = (Notification(kind=Kind.UNKNOWN),)
    else:
        found = source.provider.normalize(event)
    return Applied(
        event_id=event.id,
        source_id=event.source_id,
        notifications=tuple(_settled(notification, event) for notification in found),
        scope=source.scope,
        suppress_ambiguous=source.suppress_ambiguous,
        claims=not event.forgotten,
    )


def _settled(notification: Notification, event: StoredEvent) -> Notification:
    """Storable text, and a time that can be true: else the receive time, and it says so."""
    at, told_by = notification.occurred_at, notification.time_source
    if at is None or not PLAUSIBLE_FROM <= at <= event.received_at + DAY_MS:
        at, told_by = event.received_at, TimeSource.RECEIVED
    recipient, message_id = _storable(notification.recipient), _storable(notification.message_id)
    if (at, recipient, message_id) == (
        notification.occurred_at,
        notification.recipient,
        notification.message_id,
    ):
        return notification
    return replace(
        notification,
        occurred_at=at,
        time_source=told_by,
        recipient=recipient,
        message_id=message_id,
    )


def _storable(text: str | None) -> str | None:
    """SQLite takes no lone surrogates, and a NUL would end the text for every reader in C."""
    if text is None or text.isprintable():
        return text
    return text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")
