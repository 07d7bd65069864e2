"""Amazon SNS: what an envelope signs, where its certificate may come from, and what an ARN names.

Everything here is read before anything is proved: what is odd is Refused, never an error. A topic
names its region, a region has one host, and everything that a message points to must be on that
host: neither a name's ending nor a wildcard is ever enough.
https://docs.aws.amazon.com/sns/latest/dg/sns-verify-signature-of-message.html (2026-09)
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import quote

from hookbox.errors import Reason, Refused
from hookbox.rules.digest import Unreadable, read_value
from hookbox.rules.reading import key_text

# The public partitions. The isolated ones are reached from inside only.
SUFFIXES: Mapping[str, str] = {
    "aws": "amazonaws.com",
    "aws-us-gov": "amazonaws.com",
    "aws-cn": "amazonaws.com.cn",
}
ARN = re.compile(
    r"arn:(aws|aws-us-gov|aws-cn):sns:([a-z0-9][a-z0-9-]{1,30}[a-z0-9]):[0-9]{12}:[A-Za-z0-9_-]{1,256}"
)
CERTIFICATE_URL = re.compile(
    r"https://(sns\.[a-z0-9-]{3,32}\.amazonaws\.com(?:\.cn)?)"
    r"/(SimpleNotificationService-[0-9A-Fa-f]{1,128}\.pem)"
)
VISIBLE = re.compile(r"[!-~]{1,4000}")
TOKEN_MAX = 1024  # they have under 300 characters


class MessageType(StrEnum):
    """What SNS posts."""

    NOTIFICATION = "Notification"
    SUBSCRIPTION = "SubscriptionConfirmation"
    UNSUBSCRIPTION = "UnsubscribeConfirmation"


CONFIRMED = ("Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type")
SIGNED: Mapping[str, tuple[str, ...]] = {
    MessageType.NOTIFICATION: (
        "Message",
        "MessageId",
        "Subject",
        "Timestamp",
        "TopicArn",
        "Type",
    ),
    MessageType.SUBSCRIPTION: CONFIRMED,
    MessageType.UNSUBSCRIPTION: CONFIRMED,
}
OPTIONAL = frozenset({"Subject"})
PROVING = ("SignatureVersion", "Signature", "SigningCertURL")


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic, and the one host that speaks for it."""

    arn: str
    host: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """A message of SNS as it was posted. `signed` is the text that its signature is over."""

    type: MessageType
    message_id: str
    topic: Topic
    message: str
    subscribe_url: str
    token: str
    timestamp: str
    version: str
    signature: str
    certificate_url: str
    signed: bytes


def topic(arn: str) -> Topic | None:
    """The topic that an ARN names; None when it names none, or none that this box could know."""
    found = ARN.fullmatch(arn)
    return Topic(arn, f"sns.{found[2]}.{SUFFIXES[found[1]]}") if found else None


def envelope(body: bytes) -> Envelope:
    """The message in a body that nobody has proved yet."""
    texts = _texts(body)
    kind = texts.get("Type", "")
    if kind not in SIGNED:
        raise Refused(Reason.ENVELOPE_MALFORMED)
    for name in (*SIGNED[kind], *PROVING):
        if name not in texts and name not in OPTIONAL:
            missing = name == "Signature"
            raise Refused(Reason.SIGNATURE_MISSING if missing else Reason.ENVELOPE_MALFORMED)
    named = topic(texts["TopicArn"])
    if named is None:
        raise Refused(Reason.TOPIC_NOT_LISTED)
    if key_text(texts["MessageId"]) is None:
        raise Refused(Reason.ID_MALFORMED)
    # Only the message may have several lines, and it comes first: so no two envelopes have one
    # signed text, and nobody moves a line from one member into another.
    if any("\n" in texts.get(name, "") for name in SIGNED[kind] if name != "Message"):
        raise Refused(Reason.ENVELOPE_MALFORMED)
    return Envelope(
        type=MessageType(kind),
        message_id=texts["MessageId"],
        topic=named,
        message=texts["Message"],
        subscribe_url=texts.get("SubscribeURL", ""),
        token=texts.get("Token", ""),
        timestamp=texts["Timestamp"],
        version=texts["SignatureVersion"],
        signature=texts["Signature"],
        certificate_url=texts["SigningCertURL"],
        signed=signed_text(texts),
    )


def _texts(body: bytes) -> dict[str, str]:
    """The members that matter, each of them a text. What SNS adds besides is not signed, and of no
    interest."""
    try:
        document = read_value(body)
    except Unreadable as error:
        raise Refused(Reason.ENVELOPE_MALFORMED) from error
    if not isinstance(document, dict):
        raise Refused(Reason.ENVELOPE_MALFORMED)
    names = {*CONFIRMED, *PROVING, *OPTIONAL}
    # A message without a subject is posted without one, or with null.
    found = {n: v for n, v in document.items() if n in names and (v, n) != (None, "Subject")}
    if not all(isinstance(value, str) for value in found.values()):
        raise Refused(Reason.ENVELOPE_MALFORMED)
    return found


def signed_text(texts: Mapping[str, str]) -> bytes:
    """What SNS signs: the name and the value of each member that is there, be it empty or not."""
    lines = (f"{name}\n{texts[name]}\n" for name in SIGNED[texts["Type"]] if name in texts)
    try:
        return "".join(lines).encode()
    except UnicodeEncodeError as error:  # a lone surrogate: SNS takes nothing but UTF-8
        raise Refused(Reason.ENVELOPE_MALFORMED) from error


def certificate_place(url: str) -> tuple[str, str] | None:
    """Host and file name of a certificate's URL; None when no certificate of SNS can be there."""
    found = CERTIFICATE_URL.fullmatch(url)
    return (found[1], found[2]) if found else None


def is_certificate_url(url: str, of: Topic) -> bool:
    """Whether the topic's own region publishes its certificates there."""
    place = certificate_place(url)
    return place is not None and place[0] == of.host


def is_subscribe_url(url: str, of: Topic) -> bool:
    """Whether the URL leads to the topic's own region. It is compared, never visited."""
    return url.startswith(f"https://{of.host}/?") and VISIBLE.fullmatch(url) is not None


def signer_names(host: str) -> tuple[str, ...]:
    """The names under which the certificate of a region's host may be issued.

    The old regions share one name, those that were added later have their own, China and the US
    government a third kind.
    """
    region, _, suffix = host.removeprefix("sns.").partition(".")
    own = "us-gov-west-1" if region.startswith("us-gov-") else region
    return (f"sns.{suffix}", host, f"sns-signing.{region}.{suffix}", f"sns-{own}.{suffix}")


def confirm_url(content: bytes) -> str:
    """The call that confirms the subscription which the content offers.

    Made from the topic and the token, on the topic's own host; Refused when the content offers
    none.
    """
    found = envelope(content)
    if found.type is not MessageType.SUBSCRIPTION:
        raise Refused(Reason.ENVELOPE_MALFORMED)
    if not is_confirmable(found):
        raise Refused(Reason.CONFIRMATION_REFUSED)
    arn, token = quote(found.topic.arn, safe=""), quote(found.token, safe="")
    return f"https://{found.topic.host}/?Action=ConfirmSubscription&TopicArn={arn}&Token={token}"


def is_confirmable(found: Envelope) -> bool:
    """Whether a subscription may be confirmed: its URL is the topic's, and it has a token."""
    token = VISIBLE.fullmatch(found.token) and len(found.token) <= TOKEN_MAX
    return bool(token) and is_subscribe_url(found.subscribe_url, found.topic)
