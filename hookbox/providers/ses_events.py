"""What Amazon SES reports, in its two dialects.

Identity notifications say `notificationType`, configuration sets `eventType`; what they report has
the same shape. Whoever switched both on gets every bounce and complaint twice, under two ids; the
meaning key makes the two one fact. `mail.destination` is everybody the message went to, which is
whom an event concerns only where SES names nobody else.
https://docs.aws.amazon.com/ses/latest/dg/event-publishing-retrieving-sns-contents.html (2026-09)
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from hookbox.model import Kind, Notification, TimeSource
from hookbox.providers.notices import (
    Extras,
    advises_suppression,
    present,
    scalars,
    without_brackets,
)
from hookbox.providers.ses_details import NOTHING, READERS, Object, as_it_is, members
from hookbox.rules.reading import Pointer, addresses, at, instant, plain_text

# What SES publishes when a topic is attached to it, in plain text.
VALIDATION = "Successfully validated SNS topic"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Where the facts of one kind of event stand.

    `detail` is the member of the event's own; `timed` the one that says when, if that is another.
    `of_one`: one of the named recipients did it, and SES does not say which.
    """

    kind: Kind
    detail: str
    recipients: Pointer = ("mail", "destination")
    timed: str = ""
    of_one: bool = False

    @property
    def time(self) -> Pointer:
        return (self.timed or self.detail, "timestamp")


SHAPES: Mapping[str, Shape] = {
    "Send": Shape(kind=Kind.SENT, detail="send", timed="mail"),
    "Reject": Shape(kind=Kind.REJECTED, detail="reject", timed="mail"),
    "Rendering Failure": Shape(kind=Kind.FAILED, detail="failure"),  # the one without a time
    "Delivery": Shape(
        kind=Kind.DELIVERED, detail="delivery", recipients=("delivery", "recipients")
    ),
    "DeliveryDelay": Shape(
        kind=Kind.DEFERRED,
        detail="deliveryDelay",
        recipients=("deliveryDelay", "delayedRecipients"),
    ),
    "Bounce": Shape(kind=Kind.BOUNCED, detail="bounce", recipients=("bounce", "bouncedRecipients")),
    "Complaint": Shape(
        kind=Kind.COMPLAINED, detail="complaint", recipients=("complaint", "complainedRecipients")
    ),
    "Open": Shape(kind=Kind.OPENED, detail="open", of_one=True),
    "Click": Shape(kind=Kind.CLICKED, detail="click", of_one=True),
    "Subscription": Shape(
        kind=Kind.SUBSCRIBED, detail="subscription", recipients=("mail", "destination", "0")
    ),
    "Received": Shape(kind=Kind.INBOUND, detail="receipt", recipients=("receipt", "recipients")),
}


def word_of(message: Object) -> str:
    """SES's own word for what happened, in either dialect."""
    for dialect in ("eventType", "notificationType"):
        word = message.get(dialect)
        if isinstance(word, str):
            return word
    return ""


def read(message: Object, published_at: int | None) -> tuple[Notification, ...]:
    """What a message says, one notification for each recipient, at least one.

    `published_at`: when SNS took the message; stands for the time of an event that has none.
    """
    word = word_of(message)
    base = Notification(
        kind=Kind.UNKNOWN,
        occurred_at=published_at,
        time_source=TimeSource.RECEIVED,
        message_id=plain_text(at(message, ("mail", "messageId")), 500),
        extras=_mail_extras(message),
    )
    shape = SHAPES.get(word)
    if shape is None:
        return (base,)
    detail = members(message.get(shape.detail))
    happened_at = instant(at(message, shape.time))
    if happened_at is not None:
        base = replace(base, occurred_at=happened_at, time_source=TimeSource.EVENT)
    refine = READERS.get(word, as_it_is)
    found = [
        told
        for about, entry in _recipients(replace(base, kind=shape.kind), shape, message)
        for told in refine(about, detail, entry)
    ]
    return tuple(_settled(each, word, shape, message) for each in found)


def _recipients(
    base: Notification, shape: Shape, message: Object
) -> Iterator[tuple[Notification, Object]]:
    """One notification for each recipient that is named, with what is said of that one alone."""
    value = at(message, shape.recipients)
    named: dict[str, tuple[str, Object]] = {}
    for entry in value if isinstance(value, list) else [value]:
        for address in addresses(entry):
            named.setdefault(address.lower(), (address, members(entry)))
    if not named or (shape.of_one and len(named) > 1):
        candidates = addresses(at(message, ("mail", "destination")))
        yield replace(base, ambiguous=bool(candidates), candidates=candidates), NOTHING
        return
    # Whoever complained is not known by name: SES lists everybody at that domain.
    ambiguous = shape.kind is Kind.COMPLAINED and len(named) > 1
    for address, entry in named.values():
        yield replace(base, recipient=address, ambiguous=ambiguous), entry


def _settled(found: Notification, word: str, shape: Shape, message: Object) -> Notification:
    """With the advice to suppress, and with what makes two reports of one fact equal."""
    advised = advises_suppression(found.kind, found.bounce_class, found.reject_reason, found.scope)
    return replace(
        found,
        suppress=advised and not found.ambiguous,
        meaning=_meaning(found, word, shape, message),
    )


def _meaning(found: Notification, word: str, shape: Shape, message: Object) -> str | None:
    """Equal in both dialects: the feedback's id, else everything that makes the event itself."""
    recipient = (found.recipient or "").lower()
    feedback = plain_text(at(message, (shape.detail, "feedbackId")), 500)
    if feedback is not None:
        return f"{feedback}#{recipient}"
    time = plain_text(at(message, shape.time), 100)
    if time is None or found.message_id is None or found.kind is Kind.INBOUND:
        return None
    what = plain_text(at(message, (shape.detail, "link"))) or found.scope
    return f"{word.lower()}|{found.message_id}|{recipient}|{time}|{what}"


def _mail_extras(message: Object) -> Extras:
    """The message's own id, and the tags of whoever sent it; those of `ses:` are SES's."""
    tags = members(at(message, ("mail", "tags")))
    own = {
        name: ", ".join(filter(None, map(plain_text, values)))
        for name, values in tags.items()
        if isinstance(values, list) and not name.startswith("ses:")
    }
    message_id = at(message, ("mail", "commonHeaders", "messageId"))
    return present(rfc_message_id=without_brackets(message_id), metadata=scalars(own))
