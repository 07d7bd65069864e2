"""Email Digit.

`X-Email-Digit-Signature: sha256=<hex>,t=<seconds>`; its pairs are read by their names, because
nobody promises their order. The signed text is `t.body`; time and signature are new for every
attempt and every replay. The other headers are not signed: only the event's id is compared.
401 ends a delivery for good, so hookbox answers it for wrong signatures only.
https://app.emaildigit.com/docs/webhooks (2026-09)
"""

from collections.abc import Mapping
from dataclasses import replace

from hookbox.errors import Reason, Unintelligible
from hookbox.model import Delivery, Kind, Split
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
from hookbox.providers.plain import MESSAGE_ID, PLAIN, pointers, raw_kind, reader, specimen
from hookbox.providers.proof import proved, refusing_ambiguous
from hookbox.providers.secret_text import utf8_secret
from hookbox.providers.single import header_reader, one_event, opened
from hookbox.rules.freshness import seconds_at
from hookbox.rules.headers import one_of, pairs, required
from hookbox.rules.reading import key_text
from hookbox.rules.signatures import PublicKey, any_equal, hex_mac

SIGNATURE = "x-email-digit-signature"
EVENT_ID = "x-email-digit-event-id"

# Live types first, then those that are announced.
TYPES: Mapping[str, Kind] = {
    "reply.received": Kind.INBOUND,
    "whatsapp.received": Kind.UNKNOWN,  # also raises reply.received: one message, one inbound
    "email.sent": Kind.SENT,
    "email.bounced": Kind.BOUNCED,
    "domain.verified": Kind.ACCOUNT,
    "domain.failed": Kind.ACCOUNT,
    "mailbox.connected": Kind.ACCOUNT,
    "test.ping": Kind.CONTROL,
    "email.opened": Kind.OPENED,
    "email.clicked": Kind.CLICKED,
    "email.complained": Kind.COMPLAINED,
    "contact.created": Kind.ACCOUNT,
    "contact.unsubscribed": Kind.UNSUBSCRIBED,
    "dmarc.advanced": Kind.ACCOUNT,
    "workspace.suspended": Kind.ACCOUNT,
    "*": Kind.UNKNOWN,
}

# What `data` holds for email events is not published; these are the usual names.
READING = replace(PLAIN, message_id=(*MESSAGE_ID, *pointers("/data/reply_id")), types=TYPES)


def verify(delivery: Delivery, trust: Trust, now: int) -> VerifiedDelivery:
    found = pairs(required(delivery.headers, SIGNATURE, Reason.SIGNATURE_MISSING))
    signature = one_of(found, b"sha256", Reason.SIGNATURE_MISSING).lower()
    stamp = one_of(found, b"t", Reason.TIMESTAMP_MISSING)
    signed_at = seconds_at(stamp)
    signed = b"%b.%b" % (stamp, delivery.body)

    def proves(key: bytes | PublicKey) -> bool:
        assert isinstance(key, bytes)
        return any_equal(hex_mac(key, signed), (signature,))

    return proved(delivery, trust, now, proves, signed_at)


def split(verified: VerifiedDelivery) -> Split:
    """One event under the body's id, which the unsigned header may only repeat."""
    header = header_reader(verified.delivery)
    found = opened(verified)
    key = key_text(found.document.get("id"))
    if key is None:
        raise Unintelligible("the body has no id")
    if header(EVENT_ID) not in (None, key):
        raise Unintelligible("the body's id is not that of the event id header", key=key)
    return one_event(found, key, raw_kind(READING, found.document, header))


def simulate(wanted: Simulation) -> Signed:
    body = specimen(READING, wanted, {"id": wanted.id}).body()
    stamp = str(wanted.now // 1000)
    mac = hex_mac(utf8_secret(wanted.secret), f"{stamp}.".encode() + body).decode()
    headers = (
        ("content-type", "application/json"),
        (SIGNATURE, f"sha256={mac},t={stamp}"),
        (EVENT_ID, wanted.id),
    )
    return Signed(headers=headers, body=body, key=wanted.id)


PROVIDER = Provider(
    name="emaildigit",
    title="Email Digit",
    signs_body=True,
    signed_time=SignedTime.ATTEMPT,
    tolerance_s=300,
    answers=Answers(),
    retry_schedule_s=(60, 300, 1800, 7200, 43200),
    retry_horizon_s=52_560,  # 14 h 36 min in six attempts
    patience_s=15.0,
    key_kind=KeyKind.BODY,
    console_steps=(
        "In the workspace's developer settings, add a webhook subscription for {url}",
        "Select the email, reply, contact and domain events",
        "Copy the signing secret, which is shown once, into hookbox",
        "Press the button for a test ping, and look for it in `hookbox events`",
        "After a rotation, replay from the delivery log what was refused in between",
    ),
    kinds=READING.kinds(),
    read_secret=utf8_secret,
    verify=refusing_ambiguous((EVENT_ID,), verify),
    split=split,
    normalize=reader(READING),
    simulate=simulate,
    recovery="replay what failed from the delivery log",
)
