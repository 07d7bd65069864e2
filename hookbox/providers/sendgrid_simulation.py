"""Requests as SendGrid would make them, signed with the private key of a pair of our own."""

import base64
import json
from collections.abc import Mapping

from hookbox.errors import OperatorError
from hookbox.model import Kind
from hookbox.providers.contract import Signed, Simulation
from hookbox.rules.digest import synthesised_key
from hookbox.rules.signatures import ecdsa_signature, is_private_key

SIGNATURE = "x-twilio-email-event-webhook-signature"
TIMESTAMP = "x-twilio-email-event-webhook-timestamp"

BOUNDARY = "hookbox-simulation"

# What an event holds besides who, when and which.
EXAMPLES: Mapping[Kind, Mapping[str, object]] = {
    Kind.QUEUED: {"event": "processed"},
    Kind.REJECTED: {"event": "dropped", "reason": "Bounced Address", "status": "5.0.0"},
    Kind.DELIVERED: {"event": "delivered", "response": "250 OK"},
    Kind.DEFERRED: {"event": "deferred", "response": "450 4.7.1 try again later", "attempt": "1"},
    Kind.BOUNCED: {
        "event": "bounce",
        "type": "bounce",
        "status": "5.1.1",
        "reason": "550 5.1.1 The email account does not exist",
    },
    Kind.OPENED: {"event": "open", "useragent": "hookbox"},
    Kind.CLICKED: {"event": "click", "useragent": "hookbox", "url": "https://example.com/"},
    Kind.COMPLAINED: {"event": "spamreport"},
    Kind.UNSUBSCRIBED: {"event": "unsubscribe"},
    Kind.SUBSCRIBED: {"event": "group_resubscribe", "asm_group_id": 1},
    Kind.ACCOUNT: {"event": "account_status_change", "type": "compliance_suspend"},
}
KINDS = (*EXAMPLES, Kind.INBOUND)


def simulate(wanted: Simulation) -> Signed:
    if not is_private_key(wanted.secret):
        raise OperatorError(
            "this source trusts SendGrid's own key, and only SendGrid has its private half; "
            "add a second source to try things out, and give it a pair of its own with "
            "`hookbox secret set NAME --generate`"
        )
    if wanted.kind is Kind.INBOUND:
        return _inbound(wanted)
    if wanted.kind not in EXAMPLES:
        raise OperatorError(f"this sender has no event for `{wanted.kind}`")
    event = {
        **({} if wanted.kind is Kind.ACCOUNT else {"email": wanted.to}),
        "timestamp": wanted.now // 1000,
        "sg_event_id": wanted.id,
        "sg_message_id": f"{wanted.id}.filter0001.1.1.0",
        **EXAMPLES[wanted.kind],
    }
    body = json.dumps([event]).encode() + b"\r\n"
    return _signed(wanted, "application/json", body, wanted.id)


def _inbound(wanted: Simulation) -> Signed:
    message_id = f"<{wanted.id}@example.com>"
    fields = {
        "headers": f"From: sender@example.com\nTo: {wanted.to}\nMessage-ID: {message_id}\n",
        "from": "sender@example.com",
        "to": wanted.to,
        "subject": "Simulated",
        "text": "This mail was never sent.",
        "envelope": json.dumps({"to": [wanted.to], "from": "sender@example.com"}),
    }
    parts = (
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{text}\r\n'
        for name, text in fields.items()
    )
    body = "".join(parts) + f"--{BOUNDARY}--\r\n"
    key = synthesised_key("inbound", message_id, wanted.to.lower())
    return _signed(wanted, f"multipart/form-data; boundary={BOUNDARY}", body.encode(), key)


def _signed(wanted: Simulation, content_type: str, body: bytes, key: str) -> Signed:
    stamp = str(wanted.now // 1000)
    signature = base64.b64encode(ecdsa_signature(wanted.secret, stamp.encode() + body)).decode()
    headers = (
        ("content-type", content_type),
        (SIGNATURE, signature),
        (TIMESTAMP, stamp),
    )
    return Signed(headers=headers, body=body, key=key)
