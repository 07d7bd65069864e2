"""How Amazon SNS signs, written from its documents with nothing of hookbox's: the other side."""

import base64
import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass

from cryptography.hazmat.primitives.asymmetric.padding import MGF1, PSS, PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.hashes import MD5, SHA1, SHA256, SHA512, HashAlgorithm

from hookbox.providers.contract import Provider, Trust
from tests.pki import Issued, authority, rsa_key, server
from tests.providers.requests import provider_of, trust

ARN = "arn:aws:sns:eu-west-1:123456789012:ses-events"
HOST = "sns.eu-west-1.amazonaws.com"
CERTIFICATE_URL = f"https://{HOST}/SimpleNotificationService-0123456789abcdef.pem"

NOW_S = 1_773_480_415
TIME = "2026-03-14T09:26:55.000Z"
ID = "7d0f3a52-91c4-5b7e-8a60-1f2e3d4c0001"

MESSAGE = {
    "notificationType": "Bounce",
    "bounce": {
        "bounceType": "Permanent",
        "bounceSubType": "General",
        "bouncedRecipients": [{"emailAddress": "ana@example.com", "status": "5.1.1"}],
        "timestamp": TIME,
        "feedbackId": "feedback-1",
    },
    "mail": {"messageId": "mail-1", "timestamp": TIME, "destination": ["ana@example.com"]},
}
NOTIFICATION: Mapping[str, str] = {
    "Type": "Notification",
    "MessageId": ID,
    "TopicArn": ARN,
    "Subject": "Amazon SES Email Event Notification",
    "Message": json.dumps(MESSAGE) + "\n",
    "Timestamp": TIME,
}
TOKEN = "2336412f37fb687f5d51e6e2425dacbba"
OFFER: Mapping[str, str] = {
    "Type": "SubscriptionConfirmation",
    "MessageId": ID,
    "Token": TOKEN,
    "TopicArn": ARN,
    "Message": "You have chosen to subscribe to the topic.",
    "SubscribeURL": f"https://{HOST}/?Action=ConfirmSubscription&TopicArn={ARN}&Token={TOKEN}",
    "Timestamp": TIME,
}
FAREWELL: Mapping[str, str] = {**OFFER, "Type": "UnsubscribeConfirmation"}

HASHES: Mapping[str, HashAlgorithm] = {
    "sha1": SHA1(),
    "sha256": SHA256(),
    "sha512": SHA512(),
    "md5": MD5(),
}
OF_NOTIFICATION = ("Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type")
OF_CONFIRMATION = ("Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type")


@functools.cache
def signer() -> Issued:
    """The certificate that the tests' source trusts."""
    return server(authority("root"), "sns.amazonaws.com", key=rsa_key())


@functools.cache
def stranger() -> Issued:
    """Another one, which looks the same."""
    return server(authority("root"), "sns.amazonaws.com", key=rsa_key())


def signed_text(message: Mapping[str, object]) -> bytes:
    """Name and value of each member that is signed, each on a line."""
    names = OF_NOTIFICATION if message.get("Type") == "Notification" else OF_CONFIRMATION
    lines = [f"{name}\n{message[name]}\n" for name in names if name in message]
    return "".join(lines).encode("utf-8", "surrogatepass")


def signature(text: bytes, by: Issued | None = None, digest: str = "sha1") -> str:
    key = (by or signer()).key
    assert isinstance(key, RSAPrivateKey)
    return base64.b64encode(key.sign(text, PKCS1v15(), HASHES[digest])).decode()


def pss_signature(text: bytes) -> str:
    """By the right key, with the padding that SNS does not use."""
    key = signer().key
    assert isinstance(key, RSAPrivateKey)
    found = key.sign(text, PSS(mgf=MGF1(SHA256()), salt_length=32), SHA256())
    return base64.b64encode(found).decode()


@dataclass(frozen=True)
class Posted:
    """An envelope as SNS posts it."""

    members: Mapping[str, object]

    @property
    def body(self) -> bytes:
        return json.dumps(self.members, indent=2).encode()

    def but(self, **changed: object) -> "Posted":
        return Posted({**self.members, **changed})

    def without(self, name: str) -> "Posted":
        return Posted({n: value for n, value in self.members.items() if n != name})


def posted(
    message: Mapping[str, str] = NOTIFICATION, version: str = "1", by: Issued | None = None
) -> Posted:
    """The message, rightly signed."""
    digest = "sha256" if version == "2" else "sha1"
    return Posted(
        {
            **message,
            "SignatureVersion": version,
            "Signature": signature(signed_text(message), by, digest),
            "SigningCertURL": CERTIFICATE_URL,
        }
    )


def headers(kind: str = "Notification", **more: str) -> dict[str, str]:
    return {
        "Content-Type": "text/plain; charset=UTF-8",
        "x-amz-sns-message-type": kind,
        "x-amz-sns-message-id": ID,
        "x-amz-sns-topic-arn": ARN,
        **more,
    }


def source(**options: object) -> Provider:
    """The provider as a source of the tests' topic uses it."""
    return provider_of("ses", {"topics": [ARN], **options})


def trusting(provider: Provider, *secrets: str, by: Issued | None = None) -> Trust:
    return trust(provider, *secrets, certificate=(by or signer()).pem)
