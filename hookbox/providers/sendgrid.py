"""SendGrid: events in batches, each signed with a key that only SendGrid has; and Inbound Parse.

ECDSA on P-256 over the timestamp's text and the body, byte for byte: the CR LF at the end is
signed, too. Nobody knows whether a retry is signed anew, so the window is as long as the retries;
replays are harmless, because every event has an id.

Some events come without an id, and some with a new one for every copy. The first get a key made
from content, and all of them a meaning, so that their effect counts once. Custom arguments stand
beside the event's own members: what a member may mean is decided by the event it stands in, and
the rest is metadata.
https://www.twilio.com/docs/sendgrid/for-developers/tracking-events/event (2026-09)
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from hookbox.errors import ConfigError, Reason, Unintelligible
from hookbox.model import (
    BounceClass,
    Delivery,
    Kind,
    Notification,
    Rotten,
    Split,
    SplitEvent,
    StoredEvent,
)
from hookbox.providers import sendgrid_inbound
from hookbox.providers.contract import (
    Answers,
    KeyKind,
    Provider,
    SignedTime,
    Table,
    Trust,
    VerifiedDelivery,
    no_options,
)
from hookbox.providers.proof import proved
from hookbox.providers.sendgrid_events import CLASSIFICATIONS, EVENTS, read
from hookbox.providers.sendgrid_simulation import KINDS, SIGNATURE, TIMESTAMP, simulate
from hookbox.rules.digest import Unreadable, synthesised_key, value_or_none
from hookbox.rules.elements import Element, read_elements
from hookbox.rules.encoding import plain
from hookbox.rules.freshness import seconds_at
from hookbox.rules.headers import required
from hookbox.rules.multipart import is_multipart
from hookbox.rules.reading import key_text, plain_text
from hookbox.rules.signatures import (
    PublicKey,
    any_proves,
    ecdsa_key,
    ecdsa_pair,
    ecdsa_public_text,
    is_private_key,
)

HOUR_S = 3600

MEND_KEY = "copy the whole verification key from the webhook's security settings"
MEND_CLASS = f'write {{ technical = "soft" }}; the classes are: {", ".join(BounceClass)}'

# What other people's code writes where there is no id.
NO_ID = frozenset({"", "None", "null", "undefined"})
# What makes an event itself where it has no id, in this order.
NATURAL = ("event", "email", "timestamp", "sg_message_id", "smtp-id", "url", "useragent")


def read_secret(text: str) -> PublicKey:
    """The verification key of the webhook's settings; or the private key of a pair of our own,
    which stands for its public half and lets the box simulate this source's sender."""
    if not text.strip():
        raise ConfigError("the key is empty", mend=MEND_KEY)
    try:
        return ecdsa_key(ecdsa_public_text(text) if is_private_key(text) else text)
    except ValueError as error:
        raise ConfigError(str(error), mend=MEND_KEY) from error


def make_secret() -> str:
    """The private key of a new pair: no real sender has it, only `hookbox simulate`."""
    return ecdsa_pair()[1]


def verify(delivery: Delivery, trust: Trust, now: int) -> VerifiedDelivery:
    signature = required(delivery.headers, SIGNATURE, Reason.SIGNATURE_MISSING)
    stamp = required(delivery.headers, TIMESTAMP, Reason.TIMESTAMP_MISSING)
    signed_at = seconds_at(stamp)
    signed = stamp + delivery.body

    def proves(key: bytes | PublicKey) -> bool:
        assert not isinstance(key, bytes)
        return any_proves(key, signed, (signature,))

    return proved(delivery, trust, now, proves, signed_at)


def split(verified: VerifiedDelivery) -> Split:
    """Every element that is an event, and every one that is not, each by itself."""
    delivery = verified.delivery
    body = plain(delivery.headers, delivery.body)
    if is_multipart(body):
        return sendgrid_inbound.split(body)
    try:
        elements = read_elements(body)
    except Unreadable as error:
        raise Unintelligible(str(error)) from error
    inflated = body is not delivery.body
    events: list[SplitEvent] = []
    rotten: list[Rotten] = []
    for element in elements:
        event = _event(element)
        if isinstance(event, str):
            rotten.append(Rotten(reason=event, content=body[element.start : element.end]))
        elif inflated:
            own = body[element.start : element.end]
            events.append(replace(event, start=0, end=None, content=own))
        else:
            events.append(event)
    return Split(events=tuple(events), rotten=tuple(rotten))


def _event(element: Element) -> SplitEvent | str:
    """The event that this element is, or why it is none."""
    if element.content is None:
        return element.fault
    found = element.content.value
    if not isinstance(found, dict):
        return "the element is JSON, but not an object"
    word, email = found.get("event"), found.get("email")
    if not word or not isinstance(word, str):
        return "the element names no event"
    concerns_somebody = EVENTS.get(word, Kind.ACCOUNT) is not Kind.ACCOUNT
    if concerns_somebody and not (email and isinstance(email, str)):
        return "the event names no recipient"
    key = _sent_id(found.get("sg_event_id"))
    return SplitEvent(
        key=key or synthesised_key(*(_natural(name, found.get(name)) for name in NATURAL)),
        digest=element.content.digest,
        raw_kind=plain_text(word, 200) or "",
        start=element.start,
        end=element.end,
        synthesised=key is None,
    )


def _sent_id(value: object) -> str | None:
    text = key_text(value)
    return None if text is None or text.strip() in NO_ID else text


def _natural(name: str, value: object) -> str:
    if isinstance(value, str):
        return value.lower() if name == "email" else value
    return "" if value is None else str(value)


def normalize(
    classifications: Mapping[str, BounceClass], event: StoredEvent
) -> tuple[Notification, ...]:
    found = value_or_none(event.content)
    if not isinstance(found, dict):
        return (Notification(kind=Kind.UNKNOWN),)
    if event.raw_kind == sendgrid_inbound.RAW_KIND:
        return sendgrid_inbound.read(found)
    return (read(classifications, found),)


def configure(provider: Provider, table: Table) -> Provider:
    """With `classifications`, the operator's own reading of `bounce_classification`:

    classifications = { "mailbox unavailable" = "soft" }
    """
    no_options(provider, {name: each for name, each in table.items() if name != "classifications"})
    named = table.get("classifications", {})
    if not isinstance(named, Mapping):
        raise ConfigError("this is a table", where="classifications", mend=MEND_CLASS)
    own = {str(word).lower(): _class(word, each) for word, each in named.items()}
    return replace(provider, normalize=partial(normalize, {**CLASSIFICATIONS, **own}))


def _class(word: object, value: object) -> BounceClass:
    if not isinstance(value, str) or value not in set(BounceClass):
        raise ConfigError(
            f"`{value}` is no class of bounce", where=f"classifications.{word}", mend=MEND_CLASS
        )
    return BounceClass(value)


PROVIDER = Provider(
    name="sendgrid",
    title="SendGrid",
    signs_body=True,
    signed_time=SignedTime.PUBLICATION,  # as long as nobody knows better
    tolerance_s=26 * HOUR_S,  # the retries' 24 hours, and some for clocks and queues
    answers=Answers(),
    # It tries again at growing intervals, which are not published, for 24 hours an event.
    retry_horizon_s=24 * HOUR_S,
    key_kind=KeyKind.BODY,
    console_steps=(
        "In Settings, Mail Settings, Event Webhooks, create a webhook with the address {url}",
        "Select all delivery and engagement events",
        "Switch on the signed event webhook, and save: the key is made by saving",
        "Open the webhook again, copy its verification key, and set it in hookbox",
        "Test the integration only now, since a test before saving is not signed",
        "Look for its events in `hookbox events`",
        'Give Inbound Parse a source of its own, with body_max = "35 MiB" and a signing policy',
    ),
    options=frozenset({"classifications"}),
    kinds=KINDS,
    read_secret=read_secret,
    make_secret=make_secret,
    verify=verify,
    split=split,
    normalize=partial(normalize, CLASSIFICATIONS),
    simulate=simulate,
    recovery="compare with its suppression lists and the email logs of that time",
    configure=configure,
)
