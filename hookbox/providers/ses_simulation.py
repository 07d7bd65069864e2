"""Messages as SNS would post them, signed with the key of a test certificate.

Only a source whose directory of certificates holds that certificate believes them.
"""

import base64
import json
from collections.abc import Mapping

from hookbox.errors import OperatorError
from hookbox.model import Kind
from hookbox.providers.basic import authorization
from hookbox.providers.contract import Signed, Simulation
from hookbox.providers.ses_events import VALIDATION
from hookbox.rules.certificates import fingerprint, rsa_signature
from hookbox.rules.instants import written
from hookbox.rules.sns import MessageType, signed_text, topic

# The event type, and what its own member holds besides whom and when.
Example = tuple[str, str, Mapping[str, object]]
EXAMPLES: Mapping[Kind, Example] = {
    Kind.SENT: ("Send", "send", {}),
    Kind.REJECTED: ("Reject", "reject", {"reason": "Bad content"}),
    Kind.FAILED: ("Rendering Failure", "failure", {"errorMessage": "Attribute is not present"}),
    Kind.DELIVERED: ("Delivery", "delivery", {"smtpResponse": "250 2.0.0 OK"}),
    Kind.DEFERRED: ("DeliveryDelay", "deliveryDelay", {"delayType": "MailboxFull"}),
    Kind.BOUNCED: ("Bounce", "bounce", {"bounceType": "Permanent", "bounceSubType": "General"}),
    Kind.COMPLAINED: ("Complaint", "complaint", {"complaintFeedbackType": "abuse"}),
    Kind.OPENED: ("Open", "open", {"userAgent": "hookbox"}),
    Kind.CLICKED: ("Click", "click", {"link": "https://example.com/", "userAgent": "hookbox"}),
    Kind.UNSUBSCRIBED: (
        "Subscription",
        "subscription",
        {"contactList": "News", "newTopicPreferences": {"unsubscribeAll": True}},
    ),
    Kind.SUBSCRIBED: (
        "Subscription",
        "subscription",
        {"contactList": "News", "newTopicPreferences": {"unsubscribeAll": False}},
    ),
    Kind.INBOUND: ("Received", "receipt", {"action": {"type": "SNS", "encoding": "UTF8"}}),
    Kind.UNKNOWN: ("Simulation", "simulation", {}),
}
KINDS = (*EXAMPLES, Kind.CONTROL)

# Under which name an event's own member lists the recipients, where it does.
LISTED = {
    "bounce": "bouncedRecipients",
    "complaint": "complainedRecipients",
    "deliveryDelay": "delayedRecipients",
}
PLAINLY_LISTED = frozenset({"delivery", "receipt"})


def simulate(topics: tuple[str, ...], wanted: Simulation) -> Signed:
    """A message of the source's first topic."""
    if not wanted.signing_key:
        raise OperatorError(
            "only Amazon can sign for this source; add a second source with "
            '`certificates = "DIR"`, and let hookbox make a test certificate there: '
            "hookbox source test-certificate NAME"
        )
    named = topic(topics[0])
    assert named is not None, "the settings were checked"
    name = f"SimpleNotificationService-{fingerprint(wanted.signing_key)}.pem"
    envelope = {
        "Type": MessageType.NOTIFICATION.value,
        "MessageId": wanted.id,
        "TopicArn": named.arn,
        "Message": _message(wanted),
        "Timestamp": written(wanted.now),
        "SignatureVersion": "2",
        "SigningCertURL": f"https://{named.host}/{name}",
    }
    signature = rsa_signature(wanted.signing_key, signed_text(envelope))
    body = json.dumps({**envelope, "Signature": base64.b64encode(signature).decode()}).encode()
    credentials = (("authorization", authorization(wanted.secret)),) if wanted.secret else ()
    headers = (
        ("content-type", "text/plain; charset=UTF-8"),
        ("x-amz-sns-message-type", MessageType.NOTIFICATION.value),
        ("x-amz-sns-message-id", wanted.id),
        ("x-amz-sns-topic-arn", named.arn),
        *credentials,
    )
    return Signed(headers=headers, body=body, key=wanted.id)


def _message(wanted: Simulation) -> str:
    if wanted.kind is Kind.CONTROL:
        return f"{VALIDATION} for Amazon SES event publishing."
    if wanted.kind not in EXAMPLES:
        raise OperatorError(f"this sender has no event for `{wanted.kind}`")
    word, member, details = EXAMPLES[wanted.kind]
    at = written(wanted.now)
    own = {"timestamp": at, **details}
    if member in LISTED:
        own |= {"feedbackId": f"feedback-{wanted.id}"} if member != "deliveryDelay" else {}
        own |= {LISTED[member]: [{"emailAddress": wanted.to}]}
    elif member in PLAINLY_LISTED:
        own |= {"recipients": [wanted.to]}
    mail = {"timestamp": at, "messageId": f"mail-{wanted.id}", "destination": [wanted.to]}
    return json.dumps({"eventType": word, "mail": mail, member: own}) + "\n"
