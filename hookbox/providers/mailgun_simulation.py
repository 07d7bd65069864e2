"""Requests as Mailgun would make them, with the source's own key."""

import json
from collections.abc import Mapping
from urllib.parse import urlencode

from hookbox.errors import OperatorError
from hookbox.model import Kind
from hookbox.providers.contract import Signed, Simulation
from hookbox.providers.secret_text import utf8_secret
from hookbox.rules.instants import written
from hookbox.rules.signatures import hex_mac

REFUSED = "5.1.1 The email account that you tried to reach does not exist."
# What an event holds besides who, when and which.
EXAMPLES: Mapping[Kind, Mapping[str, object]] = {
    Kind.QUEUED: {"event": "accepted"},
    Kind.REJECTED: {
        "event": "failed",
        "severity": "permanent",
        "reason": "suppress-bounce",
        "delivery-status": {"code": 605, "message": "Not delivering to previously bounced address"},
    },
    Kind.DELIVERED: {"event": "delivered", "delivery-status": {"code": 250, "message": "OK"}},
    Kind.DEFERRED: {
        "event": "failed",
        "severity": "temporary",
        "reason": "generic",
        "delivery-status": {"code": 421, "message": "4.7.0 Try again later", "attempt-no": 1},
    },
    Kind.BOUNCED: {
        "event": "failed",
        "severity": "permanent",
        "reason": "bounce",
        "delivery-status": {"code": 550, "enhanced-code": "5.1.1", "message": REFUSED},
    },
    Kind.OPENED: {"event": "opened", "client-info": {"user-agent": "hookbox", "bot": ""}},
    Kind.CLICKED: {"event": "clicked", "url": "https://example.com/"},
    Kind.COMPLAINED: {"event": "complained"},
    Kind.UNSUBSCRIBED: {"event": "unsubscribed"},
    Kind.ACCOUNT: {"event": "list_uploaded"},
}
KINDS = (*EXAMPLES, Kind.INBOUND)


def simulate(wanted: Simulation) -> Signed:
    stamp = str(wanted.now // 1000)
    token = wanted.id.ljust(50, "0")[:50]
    mac = hex_mac(utf8_secret(wanted.secret), f"{stamp}{token}".encode()).decode()
    triple = {"timestamp": stamp, "token": token, "signature": mac}
    if wanted.kind is Kind.INBOUND:
        return _inbound(wanted, triple)
    if wanted.kind not in EXAMPLES:
        raise OperatorError(f"this sender has no event for `{wanted.kind}`")
    event = {
        "id": wanted.id,
        "timestamp": wanted.now / 1000,
        **({} if wanted.kind is Kind.ACCOUNT else {"recipient": wanted.to}),
        "message": {"headers": {"message-id": f"{wanted.id}@example.com"}},
        **EXAMPLES[wanted.kind],
    }
    return Signed(
        headers=(("content-type", "application/json"),),
        body=json.dumps({"signature": triple, "event-data": event}).encode(),
        key=f"{wanted.id}@{written(wanted.now)[:10]}",
    )


def _inbound(wanted: Simulation, triple: Mapping[str, str]) -> Signed:
    fields = {
        "recipient": wanted.to,
        "sender": "sender@example.com",
        "from": "sender@example.com",
        "subject": "Simulated",
        "body-plain": "This mail was never sent.",
        "message-headers": json.dumps([["Message-Id", f"<{wanted.id}@example.com>"]]),
        **triple,
    }
    return Signed(
        headers=(("content-type", "application/x-www-form-urlencoded"),),
        body=urlencode(fields).encode(),
        key=triple["token"],
    )
