"""The email API for agents: Standard Webhooks' headers, but not its key.

The secret is used whole, as UTF-8, whatever it looks like, and there is always exactly one
signature. The envelope holds no time of its own, so the time inside the signature of the first
copy stands for it. The sender says that a 4xx exhausts a delivery, and asks for 400 where the
signature is wrong. Its fourteen unpublished types, and statuses it may invent, read as `unknown`.
"""

import json
from collections.abc import Mapping
from dataclasses import replace

from hookbox.errors import OperatorError, Reason, Refused, Unintelligible
from hookbox.model import BounceClass, Delivery, Kind, Notification, Split, StoredEvent, TimeSource
from hookbox.providers.contract import (
    Answers,
    KeyKind,
    Provider,
    Signed,
    SignedTime,
    Simulation,
    Trust,
    VerifiedDelivery,
)
from hookbox.providers.efa_feed import FEED, STATE_READ, STATUSES, own_digest, spoilt
from hookbox.providers.plain import REASONS
from hookbox.providers.proof import proved
from hookbox.providers.secret_text import utf8_secret
from hookbox.providers.single import header_reader, one_event, opened
from hookbox.providers.standardwebhooks import ID
from hookbox.rules.digest import value_or_none
from hookbox.rules.freshness import seconds_at
from hookbox.rules.headers import required
from hookbox.rules.reading import addresses, at, instant, plain_text
from hookbox.rules.signatures import PublicKey, any_equal, base64_mac

TYPES: Mapping[str, Kind] = {
    "message.queued": Kind.QUEUED,
    "message.accepted": Kind.SENT,  # the submission was taken; accepted is not delivered
    "webhook.test": Kind.CONTROL,
}
DELIVERY_UPDATED = "message.delivery_updated"


def verify(delivery: Delivery, trust: Trust, now: int) -> VerifiedDelivery:
    signature = required(delivery.headers, "webhook-signature", Reason.SIGNATURE_MISSING)
    stamp = required(delivery.headers, "webhook-timestamp", Reason.TIMESTAMP_MISSING)
    event_id = required(delivery.headers, "webhook-id", Reason.ID_MISSING)
    if not ID.fullmatch(event_id):
        raise Refused(Reason.ID_MALFORMED)
    signed_at = seconds_at(stamp)
    signed = b"%b.%b.%b" % (event_id, stamp, delivery.body)

    def proves(key: bytes | PublicKey) -> bool:
        assert isinstance(key, bytes)
        return any_equal(b"v1," + base64_mac(key, signed), (signature,))

    return proved(delivery, trust, now, proves, signed_at)


def split(verified: VerifiedDelivery) -> Split:
    """One event under the signed id, which the body must repeat."""
    event_id = header_reader(verified.delivery)("webhook-id") or ""
    found = opened(verified, event_id)
    if found.document.get("id") != event_id:
        raise Unintelligible("the body's id is not the signed webhook-id", key=event_id)
    if why := spoilt(found.document):
        raise Unintelligible(why, key=event_id)
    raw_kind = plain_text(found.document.get("type"), 200) or ""
    return one_event(replace(found, digest=own_digest(found.document)), event_id, raw_kind)


def normalize(event: StoredEvent) -> tuple[Notification, ...]:
    document = value_or_none(event.content)
    kind = _kind(document)
    recipients = addresses(at(document, ("data", "recipient")))
    occurred_at, time_source = _time(document, event)
    return (
        Notification(
            kind=kind,
            recipient=recipients[0] if len(recipients) == 1 else None,
            bounce_class=BounceClass.UNDETERMINED if kind is Kind.BOUNCED else None,
            reject_reason=REASONS.get(kind),
            occurred_at=occurred_at,
            time_source=time_source,
            message_id=plain_text(at(document, ("data", "message_id")), 500),
            extras=_extras(document),
        ),
    )


def _time(document: object, event: StoredEvent) -> tuple[int | None, TimeSource]:
    """A webhook has the time of its signature, an event of the list may have its own."""
    for name in ("occurred_at", "created_at"):
        own = instant(at(document, (name,)))
        if own is not None:
            return own, TimeSource.EVENT
    if event.signed_at is not None:
        return event.signed_at, TimeSource.SIGNED
    return None, TimeSource.RECEIVED


def _kind(document: object) -> Kind:
    word = at(document, ("type",))
    if word in (DELIVERY_UPDATED, STATE_READ):
        return STATUSES.get(str(at(document, ("data", "status"))), Kind.UNKNOWN)
    return TYPES.get(str(word), Kind.UNKNOWN)


def _extras(document: object) -> Mapping[str, object]:
    """Where a message lives: its later events name it alone, and reading it takes the inbox too."""
    found = {
        name: plain_text(at(document, ("data", name)), 200) for name in ("inbox_id", "thread_id")
    }
    return {name: value for name, value in found.items() if value}


def simulate(wanted: Simulation) -> Signed:
    message = {"message_id": f"msg_{wanted.id}"}
    by_kind: dict[Kind, tuple[str, dict[str, str]]] = {
        kind: (DELIVERY_UPDATED, {**message, "recipient": wanted.to, "status": status})
        for status, kind in STATUSES.items()
    } | {kind: (word, message if kind is not Kind.CONTROL else {}) for word, kind in TYPES.items()}
    if wanted.kind not in by_kind:
        raise OperatorError(f"this sender has no event for `{wanted.kind}`")
    word, about = by_kind[wanted.kind]
    event_id = f"evt_{wanted.id}"
    body = json.dumps({"id": event_id, "type": word, "api_version": "2026-06-01", "data": about})
    stamp = str(wanted.now // 1000)
    mac = base64_mac(utf8_secret(wanted.secret), f"{event_id}.{stamp}.{body}".encode()).decode()
    headers = (
        ("content-type", "application/json"),
        ("webhook-id", event_id),
        ("webhook-timestamp", stamp),
        ("webhook-signature", f"v1,{mac}"),
    )
    return Signed(headers=headers, body=body.encode(), key=event_id)


PROVIDER = Provider(
    name="efa",
    title="Email API for agents",
    signs_body=True,
    signed_time=SignedTime.ATTEMPT,
    tolerance_s=300,
    answers=Answers(refused=400),
    retry_schedule_s=(10, 60, 300, 1800, 7200, 21600, 43200),
    retry_horizon_s=74_170,  # 20 h 36 min 10 s in eight attempts
    patience_s=5.0,  # of which looking up the name may take 3
    key_kind=KeyKind.HEADER,
    console_steps=(
        "In the project's settings, register a webhook endpoint with exactly this address: {url}",
        "Subscribe it to the message events",
        "Copy the signing secret, which is shown once, into hookbox, whole as it stands",
        "Send a test event (one a minute is allowed), and look for it in `hookbox events`",
        "Set up the poller too: nothing re-sends what eight attempts could not deliver",
    ),
    kinds=tuple(dict.fromkeys((*TYPES.values(), *STATUSES.values()))),
    read_secret=utf8_secret,
    verify=verify,
    split=split,
    normalize=normalize,
    simulate=simulate,
    feed=FEED,
    recovery="nothing re-sends what its attempts could not deliver: poll its list of events",
)
