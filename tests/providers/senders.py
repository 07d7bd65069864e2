"""How each sender signs, written from its documents with nothing of hookbox's: the other side."""

import base64
import hashlib
import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass

SECRET = "a-secret-that-is-not-real-0001"
OTHER_SECRET = "a-secret-that-is-not-real-0002"


@dataclass(frozen=True, kw_only=True)
class Sender:
    """`message` is what is signed, `headers` how it is sent, `other_forms` how it never is."""

    name: str
    message: Callable[[str, str, bytes], bytes]
    headers: Callable[[str, str, str], Mapping[str, str]]
    signature: str
    other_forms: tuple[str, ...]
    secret: str = SECRET
    other_secret: str = OTHER_SECRET
    key: Callable[[str], bytes] = str.encode
    encode: Callable[[bytes], str] = bytes.hex
    timed: bool = True
    signs_id: bool = False

    def __str__(self) -> str:
        return self.name

    def mac(self, message: bytes, key: bytes | None = None, algorithm: str = "sha256") -> str:
        secret = self.key(self.secret) if key is None else key
        return self.encode(hmac.new(secret, message, getattr(hashlib, algorithm)).digest())

    def sign(self, event_id: str, time: str, body: bytes) -> dict[str, str]:
        """All headers of a rightly signed request."""
        message = self.message(event_id, time, body)
        return dict(self.headers(event_id, time, self.mac(message)))


def _base64(mac: bytes) -> str:
    return base64.b64encode(mac).decode()


def _whsec(secret: str) -> bytes:
    return base64.b64decode(secret.removeprefix("whsec_"))


def _dotted(event_id: str, time: str, body: bytes) -> bytes:
    return f"{event_id}.{time}.".encode("utf-8", "surrogatepass") + body


def _timed(event_id: str, time: str, body: bytes) -> bytes:
    return f"{time}.".encode() + body


def _body(event_id: str, time: str, body: bytes) -> bytes:
    return body


def _standard(prefix: str) -> Callable[[str, str, str], Mapping[str, str]]:
    return lambda event_id, time, mac: {
        f"{prefix}-id": event_id,
        f"{prefix}-timestamp": time,
        f"{prefix}-signature": f"v1,{mac}",
    }


VERSIONED = (
    *("{mac}", "v2,{mac}", "v1a,{mac}", "V1,{mac}", "v1={mac}", "v1;{mac}", "v1 ,{mac}"),
    *("v1, {mac}", "v1,{mac},", "v1,,{mac}", "v1,v1,{mac}", "v1,{mac}v1,{mac}", '"v1,{mac}"'),
)
PAIRED = (
    *("{mac}", "{mac},t={time}", "sha1={mac},t={time}", "SHA256={mac},t={time}"),
    *("sha256:{mac},t={time}", "sha256={mac};t={time}", "sha256={mac}", "t={time}"),
    *("sha256={mac},t=", "sha256=,t={time}", "sha256={mac},t={time},t={time}"),
    *("sha256={mac},t={time},t=1", "sha256={mac}, T={time}", "sha256=={mac},t={time}"),
)
PREFIXED = (
    *("sha1={mac}", "SHA256={mac}", "sha512={mac}", "sha256:{mac}", "sha256,{mac}"),
    *("sha256= {mac}", "sha256=sha256={mac}", "sha256={mac},sha256={mac}", "sha256="),
    *("sha256={mac};", '"sha256={mac}"', "Signature {mac}"),
)
WHSEC = {
    "secret": "whsec_" + _base64(SECRET.encode()),
    "other_secret": "whsec_" + _base64(OTHER_SECRET.encode()),
    "key": _whsec,
    "encode": _base64,
    "signs_id": True,
    "message": _dotted,
    "other_forms": VERSIONED,
}

STANDARD = Sender(
    name="standardwebhooks",
    headers=_standard("webhook"),
    signature="webhook-signature",
    **WHSEC,
)

SENDERS = (
    STANDARD,
    Sender(name="svix", headers=_standard("svix"), signature="svix-signature", **WHSEC),
    Sender(name="resend", headers=_standard("svix"), signature="svix-signature", **WHSEC),
    Sender(
        name="efa",
        message=_dotted,
        headers=_standard("webhook"),
        signature="webhook-signature",
        encode=_base64,
        signs_id=True,
        other_forms=(*VERSIONED, "v1,{mac} v1,{mac}", " v1,{mac}", "v1,{mac} v2,AAAA"),
    ),
    Sender(
        name="emaildigit",
        message=_timed,
        headers=lambda event_id, time, mac: {
            "X-Email-Digit-Signature": f"sha256={mac},t={time}",
        },
        signature="X-Email-Digit-Signature",
        other_forms=PAIRED,
    ),
    Sender(
        name="courier",
        message=_timed,
        headers=lambda event_id, time, mac: {
            "x-wps-signature": f"sha256={mac}",
            "x-wps-timestamp": time,
        },
        signature="x-wps-signature",
        other_forms=PREFIXED,
    ),
    Sender(
        name="github",
        message=_body,
        headers=lambda event_id, time, mac: {
            "X-Hub-Signature-256": f"sha256={mac}",
            "X-GitHub-Delivery": event_id,
            "X-GitHub-Event": "push",
        },
        signature="X-Hub-Signature-256",
        other_forms=(*PREFIXED, "{mac}"),
        timed=False,
    ),
    Sender(
        name="stripe",
        message=_timed,
        headers=lambda event_id, time, mac: {"Stripe-Signature": f"t={time},v1={mac}"},
        signature="Stripe-Signature",
        other_forms=(
            *("{mac}", "t={time},v0={mac}", "t={time},V1={mac}", "t={time};v1={mac}", "v1={mac}"),
            *("t={time},v1:{mac}", "t={time},t={time},v1={mac}", "t=,v1={mac}", "t={time},v1="),
            *("t={time}", "t={time},v1={mac}{mac}", 't={time},v1="{mac}"', "T={time},v1={mac}"),
        ),
    ),
    Sender(
        name="shopify",
        message=_body,
        headers=lambda event_id, time, mac: {
            "X-Shopify-Hmac-SHA256": mac,
            "X-Shopify-Webhook-Id": event_id,
            "X-Shopify-Topic": "orders/create",
        },
        signature="X-Shopify-Hmac-SHA256",
        encode=_base64,
        other_forms=("sha256={mac}", "{mac},{mac}", '"{mac}"', "v1,{mac}", "{mac};", " {mac}"),
        timed=False,
    ),
    Sender(
        name="slack",
        message=lambda event_id, time, body: f"v0:{time}:".encode() + body,
        headers=lambda event_id, time, mac: {
            "X-Slack-Signature": f"v0={mac}",
            "X-Slack-Request-Timestamp": time,
        },
        signature="X-Slack-Signature",
        other_forms=(
            *("{mac}", "v1={mac}", "V0={mac}", "v0:{mac}", "v0,{mac}", "v0= {mac}", "v0=v0={mac}"),
            *("v0={mac},v0={mac}", 'v0="{mac}"', "v0="),
        ),
    ),
    Sender(
        name="hmac",
        message=_timed,
        headers=lambda event_id, time, mac: {"X-Signature": mac, "X-Timestamp": time},
        signature="X-Signature",
        other_forms=("sha256={mac}", "v1={mac}", "{mac},{mac}", '"{mac}"', " {mac}", "{mac} "),
    ),
)

# A usable secret for every provider, those with a signature of their own kind included.
SECRETS: Mapping[str, str] = {sender.name: sender.secret for sender in SENDERS} | {
    "sendgrid": (
        "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEt/pdMxJj0Glbky3fAIOWqeR7BT6M4n55DrcBYEmeANXSLgyc7jjNTeko"
        "ePC9K1vF2syMoX/Z4waZtaLIbSSOdw=="
    ),
    "mailgun": SECRET,
    "postmark": f"hookbox:{SECRET}",
}
