"""Requests as Postmark would make them, with the source's own credentials."""

import json
from collections.abc import Mapping

from hookbox.errors import OperatorError
from hookbox.model import Kind
from hookbox.providers.basic import authorization
from hookbox.providers.contract import Signed, Simulation
from hookbox.providers.postmark_events import RECORDS, identify
from hookbox.rules.digest import digest_of
from hookbox.rules.instants import written

REFUSED = "smtp;550 5.1.1 The email account that you tried to reach does not exist."
BOUNCE = {"RecordType": "Bounce"}
CHANGE = {"RecordType": "SubscriptionChange", "Origin": "Recipient"}
# What a record holds besides who, when and which.
EXAMPLES: Mapping[Kind, Mapping[str, object]] = {
    Kind.DELIVERED: {"RecordType": "Delivery", "Details": "smtp;250 2.0.0 OK"},
    Kind.BOUNCED: {**BOUNCE, "Type": "HardBounce", "Details": REFUSED, "Inactive": True},
    Kind.DEFERRED: {**BOUNCE, "Type": "Transient", "Details": "smtp;451 4.7.1 try later"},
    Kind.REJECTED: {**BOUNCE, "Type": "Blocked", "Details": "smtp;550 5.7.1 blocked"},
    Kind.FAILED: {**BOUNCE, "Type": "SMTPApiError"},
    Kind.AUTORESPONDED: {**BOUNCE, "Type": "AutoResponder"},
    Kind.INBOUND_FAILED: {**BOUNCE, "Type": "InboundError"},
    Kind.COMPLAINED: {"RecordType": "SpamComplaint", "Type": "SpamComplaint", "Inactive": True},
    Kind.OPENED: {"RecordType": "Open", "FirstOpen": True, "UserAgent": "hookbox"},
    Kind.CLICKED: {"RecordType": "Click", "OriginalLink": "https://example.com/"},
    Kind.UNSUBSCRIBED: {
        **CHANGE,
        "SuppressSending": True,
        "SuppressionReason": "ManualSuppression",
    },
    Kind.SUBSCRIBED: {**CHANGE, "SuppressSending": False, "SuppressionReason": None},
    Kind.INBOUND: {"RecordType": "Inbound", "From": "sender@example.com", "Subject": "Simulated"},
    Kind.CONTROL: {"RecordType": "Verification"},
}
KINDS = tuple(EXAMPLES)


def simulate(wanted: Simulation) -> Signed:
    if wanted.kind not in EXAMPLES:
        raise OperatorError(f"this sender has no event for `{wanted.kind}`")
    document = {"MessageID": wanted.id, **EXAMPLES[wanted.kind]}
    record = RECORDS.get(str(document["RecordType"]))
    if record:
        document[record.recipient] = wanted.to
        if record.time:
            document[record.time] = written(wanted.now)
    if "Type" in document:
        document["ID"] = int.from_bytes(wanted.id.encode()[-7:], "big")
    return Signed(
        headers=(
            ("content-type", "application/json"),
            ("authorization", authorization(wanted.secret)),
        ),
        body=json.dumps(document).encode(),
        key=identify(document, digest_of(document)).key,
    )
