"""What Postmark's records say, and which event each is.

Bounces are told apart by the word in `Type`; the numbers in `TypeCode` mean different things in
different tables. A `SubscriptionChange` echoes bounces and complaints that also come by themselves.
Its other direction says that Postmark would send again: that is shown, and lifts nothing here.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from hookbox.model import BounceClass, Kind, Notification, RejectReason, TimeSource
from hookbox.providers.identities import Identified
from hookbox.providers.notices import (
    UNKNOWN,
    Extras,
    Verdict,
    present,
    reply_extras,
    scalars,
    tag_list,
    without_brackets,
)
from hookbox.rules.digest import digest_of, synthesised_key
from hookbox.rules.reading import at, bare, instant, key_text, plain_text
from hookbox.rules.replies import reply


@dataclass(frozen=True, slots=True)
class Record:
    """Where a record says when and who, and what it means where its name alone says that."""

    time: str
    recipient: str
    verdict: Verdict = UNKNOWN


COMPLAINED = Verdict(Kind.COMPLAINED, reason=RejectReason.SPAM)
UNSUBSCRIBED = Verdict(Kind.UNSUBSCRIBED, reason=RejectReason.UNSUBSCRIBED)
SUBSCRIBED = Verdict(Kind.SUBSCRIBED)
HARD = Verdict(Kind.BOUNCED, BounceClass.HARD, RejectReason.BOUNCED)
UNDETERMINED = Verdict(Kind.BOUNCED, BounceClass.UNDETERMINED, RejectReason.BOUNCED)
REFUSED = Verdict(Kind.REJECTED, BounceClass.BLOCK, RejectReason.BLOCKED)
DEFERRED = Verdict(Kind.DEFERRED)
AUTORESPONDED = Verdict(Kind.AUTORESPONDED)
FAILED = Verdict(Kind.FAILED)
CONTROL = Verdict(Kind.CONTROL)

INBOUND = "Inbound"
RECORDS: Mapping[str, Record] = {
    "Delivery": Record("DeliveredAt", "Recipient", Verdict(Kind.DELIVERED)),
    "Bounce": Record("BouncedAt", "Email"),
    "SpamComplaint": Record("BouncedAt", "Email", COMPLAINED),
    "Open": Record("ReceivedAt", "Recipient", Verdict(Kind.OPENED)),
    "Click": Record("ReceivedAt", "Recipient", Verdict(Kind.CLICKED)),
    "SubscriptionChange": Record("ChangedAt", "Recipient"),
    INBOUND: Record("", "OriginalRecipient", Verdict(Kind.INBOUND)),
}
# Whatever else comes with the right credentials: a look whether somebody is there.
NO_RECORD = Record("", "", CONTROL)

BOUNCES: Mapping[str, Verdict] = {
    "HardBounce": HARD,
    "BadEmailAddress": Verdict(Kind.REJECTED, BounceClass.HARD, RejectReason.INVALID),
    "SoftBounce": Verdict(Kind.BOUNCED, BounceClass.SOFT, RejectReason.BOUNCED),
    "VirusNotification": Verdict(Kind.BOUNCED, BounceClass.BLOCK, RejectReason.OTHER),
    # A receiver's filter wrote that, and no person.
    "SpamNotification": Verdict(Kind.BOUNCED, BounceClass.BLOCK, RejectReason.SPAM),
    **dict.fromkeys(("Blocked", "DMARCPolicy", "ManuallyDeactivated", "Unconfirmed"), REFUSED),
    **dict.fromkeys(("Transient", "DnsError", "OpenRelayTest"), DEFERRED),
    **dict.fromkeys(("AutoResponder", "AddressChange", "ChallengeVerification"), AUTORESPONDED),
    **dict.fromkeys(("Unsubscribe", "ManualSuppression"), UNSUBSCRIBED),
    "Subscribe": SUBSCRIBED,
    "SpamComplaint": COMPLAINED,
    **dict.fromkeys(("SMTPApiError", "TemplateRenderingFailed"), FAILED),
    "InboundError": Verdict(Kind.INBOUND_FAILED),
    "Unknown": UNDETERMINED,
}
SUPPRESSIONS: Mapping[str, Verdict] = {
    "ManualSuppression": UNSUBSCRIBED,
    "HardBounce": HARD,
    "SpamComplaint": COMPLAINED,
}

BY_ID = ("Bounce", "SpamComplaint")

Document = Mapping[str, object]


def record_type(document: Document) -> str:
    """What kind of record this is; received mail may leave that out."""
    named = plain_text(document.get("RecordType"), 200)
    return named or (INBOUND if "FromFull" in document else "")


def own_digest(document: Document, whole: bytes) -> bytes:
    """What must be the same when a record comes again. A bounce is told with more or less around it
    by webhook and list, and by its own id: its message, address, type and time never change.
    """
    if record_type(document) not in BY_ID or _bounce_id(document) is None:
        return whole
    return digest_of(
        {
            "id": _bounce_id(document),
            "type": _verbatim(document, "Type"),
            "message": _verbatim(document, "MessageID"),
            "email": _verbatim(document, "Email").lower(),
            "at": instant(document.get("BouncedAt")),
        }
    )


def _bounce_id(document: Document) -> str | None:
    found = key_text(document.get("ID"))
    return None if found == "0" else found


def identify(document: Document, digest: bytes) -> Identified:
    """The event's key, whatever headers the request had."""
    word = record_type(document)
    record = RECORDS.get(word)
    message_id = key_text(document.get("MessageID"))
    bounce_id = _bounce_id(document)
    if record is None:
        return Identified(synthesised_key("control", digest.hex()), synthesised=True)
    if word in BY_ID and bounce_id is not None:
        return Identified(f"{word}:{bounce_id}", synthesised=False)
    if word == INBOUND:
        return _of_mail(document, message_id, digest)
    made = synthesised_key(
        word,
        message_id or "",
        _verbatim(document, record.recipient).lower(),
        _verbatim(document, record.time),
        _verbatim(document, "OriginalLink"),
        _verbatim(document, "SuppressionReason"),
    )
    return Identified(made, synthesised=True)


def _of_mail(document: Document, message_id: str | None, digest: bytes) -> Identified:
    if message_id is not None:
        return Identified(message_id, synthesised=False)
    named = (_header(document, "message-id"), _verbatim(document, "OriginalRecipient").lower())
    parts = named if all(named) else (digest.hex(),)
    return Identified(synthesised_key("inbound", *parts), synthesised=True)


def _verbatim(document: Document, name: str) -> str:
    value = document.get(name)
    return value if isinstance(value, str) else ""


def read(document: Document) -> Notification:
    """The one notification of a record; any member may be missing, or null, or something else."""
    word = record_type(document)
    record = RECORDS.get(word, NO_RECORD)
    verdict = _verdict(word, record, document)
    recipient = bare(document.get(record.recipient))
    occurred_at = instant(document.get(record.time))
    certain = recipient is not None and occurred_at is not None
    return Notification(
        kind=verdict.kind,
        recipient=recipient,
        bounce_class=verdict.bounce_class,
        reject_reason=verdict.reason,
        occurred_at=occurred_at,
        time_source=TimeSource.RECEIVED if occurred_at is None else TimeSource.EVENT,
        message_id=plain_text(document.get("MessageID"), 500),
        suppress=verdict.suppress or _deactivated(verdict, document),
        meaning=identify(document, b"").key if certain else None,
        extras=_extras(word, verdict, document),
    )


def _verdict(word: str, record: Record, document: Document) -> Verdict:
    if word == "Bounce":
        return BOUNCES.get(_verbatim(document, "Type"), UNDETERMINED)
    if word == "SubscriptionChange":
        suppressing = document.get("SuppressSending")
        if suppressing is False:
            return SUBSCRIBED
        if suppressing is not True:
            return UNKNOWN
        return SUPPRESSIONS.get(_verbatim(document, "SuppressionReason"), UNSUBSCRIBED)
    return record.verdict


def _deactivated(verdict: Verdict, document: Document) -> bool:
    """Postmark will not send to this address any more, whatever the bounce was."""
    return document.get("Inactive") is True and verdict.kind is not Kind.SUBSCRIBED


def _extras(word: str, verdict: Verdict, document: Document) -> Extras:
    details = document.get("Details")
    mail = _mail_extras(document) if word == INBOUND else {}
    return {
        **reply_extras(details or document.get("Description"), reply(details)),
        **present(
            url=plain_text(document.get("OriginalLink")),
            ip=plain_text(at(document, ("Geo", "IP")), 100),
            user_agent=plain_text(document.get("UserAgent")),
            first_open=document.get("FirstOpen") is True,
            reactivated=verdict.kind is Kind.SUBSCRIBED,
            message_stream=plain_text(document.get("MessageStream"), 200),
            tags=tag_list(document.get("Tag")),
            metadata=scalars(document.get("Metadata")),
        ),
        **mail,
    }


def _mail_extras(document: Document) -> Extras:
    return present(
        **{"from": plain_text(document.get("From"))},
        subject=plain_text(document.get("Subject")),
        rfc_message_id=without_brackets(_header(document, "message-id")),
    )


def _header(document: Document, wanted: str) -> str:
    """A header of a received mail, from the list of names and values."""
    headers = document.get("Headers")
    for header in headers if isinstance(headers, list) else ():
        match header:
            case {"Name": str(name), "Value": str(value)} if name.lower() == wanted:
                return value
    return ""
