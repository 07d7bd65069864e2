"""Amazon SES through Amazon SNS.

SNS posts JSON as text/plain, signed with RSA over some of its members. The body alone decides what
it is: the headers are not signed, and only the type's header is even compared. The signature proves
that *somebody's* topic sent it, so the topics of a source are listed, and the topic decides which
host may publish the certificate and confirm a subscription.

The signed time is the publication's and stays the same on every retry; SNS may try for an hour.
Every 4xx ends a delivery for good, so whatever is our fault answers 503. Basic credentials are sent
only after a 401 has asked for them.
https://docs.aws.amazon.com/sns/latest/dg/SendMessageToHttp.prepare.html (2026-09)
"""

from dataclasses import replace
from functools import partial

from hookbox.errors import Reason, Refused, Unintelligible
from hookbox.model import (
    Delivery,
    Kind,
    Notification,
    Slot,
    Split,
    SplitEvent,
    StoredEvent,
    TimeSource,
)
from hookbox.providers.basic import basic_secret, credentials_slot, made_credentials
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
from hookbox.providers.ses_details import NOTHING, Object
from hookbox.providers.ses_events import VALIDATION, read, word_of
from hookbox.providers.ses_settings import OPTIONS, Setting, parsed_setting
from hookbox.providers.ses_simulation import KINDS, simulate
from hookbox.rules.certificates import certificate_key
from hookbox.rules.digest import Unreadable, digest_of, read_value
from hookbox.rules.freshness import rfc3339_at, skew
from hookbox.rules.headers import one
from hookbox.rules.instants import rfc3339
from hookbox.rules.reading import plain_text
from hookbox.rules.signatures import PublicKey, strict_base64
from hookbox.rules.sns import (
    Envelope,
    MessageType,
    envelope,
    is_certificate_url,
    is_confirmable,
)

HOUR_S = 3600
CONFIRM = "confirm"

# -- proof ---------------------------------------------------------------------------------------


def certificate_url(setting: Setting, delivery: Delivery, trust: Trust) -> str:
    """Where the topic's region publishes the certificate that the message names."""
    found, _ = _admitted(setting, delivery, trust)
    return found.certificate_url


def verify(setting: Setting, delivery: Delivery, trust: Trust, now: int) -> VerifiedDelivery:
    found, slot = _admitted(setting, delivery, trust)
    signature = strict_base64(found.signature.encode("ascii", "replace"))
    key = _key(trust, sha1=found.version == "1")
    if signature is None or not key.verify(signature, found.signed):
        raise Refused(Reason.SIGNATURE_WRONG)
    signed_at = rfc3339_at(found.timestamp.encode("ascii", "replace"))
    skew_s = skew(signed_at, now, trust.tolerance_s)
    return VerifiedDelivery(delivery=delivery, slot=slot, signed_at=signed_at, skew_s=skew_s)


def _admitted(setting: Setting, delivery: Delivery, trust: Trust) -> tuple[Envelope, Slot]:
    """Everything that can be judged without the certificate, and so without any request."""
    slot = credentials_slot(delivery, trust) if trust.keys else Slot.NONE
    found = _opened(delivery)
    if found.topic.arn not in setting.topics:
        raise Refused(Reason.TOPIC_NOT_LISTED)
    if found.version not in setting.versions:
        raise Refused(Reason.SIGNATURE_VERSION)
    if not found.signature:
        raise Refused(Reason.SIGNATURE_MISSING)
    if not is_certificate_url(found.certificate_url, found.topic):
        raise Refused(Reason.CERTIFICATE_REFUSED)
    if found.type is MessageType.SUBSCRIPTION and not is_confirmable(found):
        raise Refused(Reason.CONFIRMATION_REFUSED)
    return found, slot


def _opened(delivery: Delivery) -> Envelope:
    """The envelope, whose type the header may repeat but not change. A bare message has no
    signature, however much it looks like one of SES."""
    try:
        found = envelope(delivery.body)
    except Refused as refusal:
        if (one(delivery.headers, "x-amz-sns-rawdelivery") or b"").lower() == b"true":
            raise Refused(Reason.RAW_DELIVERY) from refusal
        raise
    header = one(delivery.headers, "x-amz-sns-message-type")
    if header not in (None, found.type.encode()):
        raise Refused(Reason.HEADER_MALFORMED)
    return found


def _key(trust: Trust, *, sha1: bool) -> PublicKey:
    try:
        return certificate_key(trust.certificate or b"", sha1=sha1)
    except ValueError as error:  # ours to mend: nobody vouched for it
        raise Refused(Reason.CERTIFICATE_UNAVAILABLE) from error


# -- content -------------------------------------------------------------------------------------


def split(verified: VerifiedDelivery) -> Split:
    """One event. Its digest is over the message alone: the envelope is signed anew for every
    subscription."""
    try:
        found = envelope(verified.delivery.body)
    except Refused as refusal:
        raise Unintelligible(f"this is no message of SNS: {refusal}") from refusal
    return Split(
        events=(
            SplitEvent(
                key=found.message_id,
                digest=digest_of(found.message),
                raw_kind=_raw_kind(found),
                jobs=(CONFIRM,) if found.type is MessageType.SUBSCRIPTION else (),
            ),
        )
    )


def normalize(event: StoredEvent) -> tuple[Notification, ...]:
    try:
        found = envelope(event.content)
        control = _is_control(found)
        message = NOTHING if control else _message(found)
    except (Refused, Unintelligible):  # released from quarantine as it is
        return (Notification(kind=Kind.UNKNOWN),)
    published_at = rfc3339(found.timestamp)
    if not control:
        return read(message, published_at)
    return (
        Notification(kind=Kind.CONTROL, occurred_at=published_at, time_source=TimeSource.RECEIVED),
    )


def _is_control(found: Envelope) -> bool:
    """Whether it is about the subscription, rather than about mail."""
    return found.type is not MessageType.NOTIFICATION or found.message.startswith(VALIDATION)


def _raw_kind(found: Envelope) -> str:
    if _is_control(found):
        return found.type.value
    return plain_text(word_of(_message(found)), 200) or ""


def _message(found: Envelope) -> Object:
    """What SES wrote. Anybody who may publish to the topic can write something else."""
    try:
        message = read_value(found.message.encode())
    except Unreadable as error:
        raise Unintelligible(f"the message is not SES's: {error}", key=found.message_id) from error
    if not isinstance(message, dict):
        raise Unintelligible("the message is JSON, but not an object", key=found.message_id)
    return message


# -- the declared facts -------------------------------------------------------------------------


def configure(provider: Provider, table: Table) -> Provider:
    """The provider for a source's own topics."""
    no_options(provider, {name: each for name, each in table.items() if name not in OPTIONS})
    return _with(provider, parsed_setting(table))


def _with(provider: Provider, setting: Setting) -> Provider:
    return replace(
        provider,
        verify=partial(verify, setting),
        certificate_url=partial(certificate_url, setting),
        certificates=setting.certificates,
        simulate=partial(simulate, setting.topics),
    )


PROVIDER = _with(
    Provider(
        name="ses",
        title="Amazon SES",
        signs_body=True,
        signed_time=SignedTime.PUBLICATION,
        tolerance_s=2 * HOUR_S,
        answers=Answers(
            refused=403,
            refused_by={
                Reason.CREDENTIALS_MISSING: 401,
                Reason.CREDENTIALS_WRONG: 401,
                Reason.CERTIFICATE_UNAVAILABLE: 503,
            },
        ),
        retry_schedule_s=(20, 20, 20),
        retry_horizon_s=HOUR_S,  # the longest that a topic's delivery policy allows
        patience_s=15.0,
        key_kind=KeyKind.BODY,
        console_steps=(
            "In Amazon SNS, create a standard topic, and list its ARN in the source's topics",
            "Set its delivery policy to 50 retries, 60 s apart: the default ends after a minute",
            "Set its SignatureVersion to 2, and require_signature_version = 2 in the source",
            "Subscribe {url} to it by HTTPS, raw message delivery off; hookbox confirms that",
            "For Basic, write user:password@ into that URL, and run `hookbox secret set`",
            "Give the subscription a dead-letter queue: what SNS gives up on is gone otherwise",
            "In Amazon SES, send a configuration set's events, or an identity's, to the topic",
        ),
        needs_secret=False,
        options=OPTIONS,
        kinds=KINDS,
        read_secret=basic_secret,
        make_secret=made_credentials,
        verify=partial(verify, Setting()),
        split=split,
        normalize=normalize,
        recovery="redrive the dead-letter queue of the topic's subscription",
        configure=configure,
    ),
    Setting(),
)
