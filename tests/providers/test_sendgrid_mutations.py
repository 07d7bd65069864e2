"""No change of a right SendGrid request is believed."""

import base64
import json
from collections.abc import Iterator

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA
from cryptography.hazmat.primitives.asymmetric.utils import (
    decode_dss_signature,
    encode_dss_signature,
)
from cryptography.hazmat.primitives.hashes import SHA1, SHA384
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from hookbox.errors import Refused
from hookbox.model import Slot
from hookbox.rules.signatures import ecdsa_pair, ecdsa_signature
from tests.providers import changes
from tests.providers.requests import Headers, delivery, provider_of, trust

PROVIDER = provider_of("sendgrid")
PUBLIC, PRIVATE = ecdsa_pair()
OTHER_PUBLIC, OTHER_PRIVATE = ecdsa_pair()
NOW_S = 1_773_480_413
STAMP = str(NOW_S)
SIGNATURE = "X-Twilio-Email-Event-Webhook-Signature"
TIMESTAMP = "X-Twilio-Email-Event-Webhook-Timestamp"
BODY = (
    json.dumps([{"email": "ana@example.com", "event": "bounce", "url": "https://x/é"}]) + "\r\n"
).encode()
MUTATIONS_MIN = 80


def _headers(signature: bytes, stamp: str = STAMP) -> dict[str, str]:
    return {SIGNATURE: base64.b64encode(signature).decode(), TIMESTAMP: stamp}


def _sign(message: bytes, private: str = PRIVATE) -> bytes:
    return ecdsa_signature(private, message)


def _requests() -> Iterator[tuple[str, Headers, bytes]]:
    right = _sign(STAMP.encode() + BODY)
    good = _headers(right)
    yield from ((f"body {name}", good, body) for name, body in changes.bodies(BODY))
    yield from (
        (name, headers, BODY) for name, headers in changes.headers(good, [SIGNATURE, TIMESTAMP])
    )
    yield from ((f"signature {name}", _headers(each), BODY) for name, each in changes.flips(right))
    yield from _signatures(right)
    for name, stamp in _stamps():
        yield f"signed time {name}", _headers(_sign(stamp.encode() + BODY), stamp), BODY
        yield f"unsigned time {name}", _headers(right, stamp), BODY


def _signatures(right: bytes) -> Iterator[tuple[str, Headers, bytes]]:
    message, key = STAMP.encode() + BODY, load_pem_private_key(PRIVATE.encode(), None)
    r, s = decode_dss_signature(right)
    raw = r.to_bytes(32, "big") + s.to_bytes(32, "big")
    for name, signature in {
        "by somebody else": _sign(message, OTHER_PRIVATE),
        "of the body alone": _sign(BODY),
        "of the time alone": _sign(STAMP.encode()),
        "with a dot between": _sign(f"{STAMP}.".encode() + BODY),
        "of body and time": _sign(BODY + STAMP.encode()),
        "of the stripped body": _sign(STAMP.encode() + BODY.strip()),
        "over SHA-1": key.sign(message, ECDSA(SHA1())),
        "over SHA-384": key.sign(message, ECDSA(SHA384())),
        "without DER": raw,
        "with its parts swapped": encode_dss_signature(s, r),
        "of zeros": encode_dss_signature(0, 0),
        "of ones": encode_dss_signature(1, 1),
        "and a byte": right + b"\0",
        "and itself": right + right,
    }.items():
        yield f"signature {name}", _headers(signature), BODY
    for name, text in {
        "in hexadecimal": right.hex(),
        "in the other alphabet": base64.urlsafe_b64encode(b"\xff" + right).decode(),
        "as a v1 pair": f"v1,{base64.b64encode(right).decode()}",
        "with a line break": base64.encodebytes(right).decode(),
    }.items():
        yield f"signature {name}", {SIGNATURE: text, TIMESTAMP: STAMP}, BODY


def _stamps() -> Iterator[tuple[str, str]]:
    yield from (
        ("empty", ""),
        ("in milliseconds", f"{STAMP}000"),
        ("with a fraction", f"{STAMP}.0"),
        ("with a plus", f"+{STAMP}"),
        ("with blanks", f" {STAMP} "),
        ("with underscores", f"{NOW_S:_d}"),
        ("and letters", f"{STAMP}abc"),
        ("NaN", "NaN"),
        ("of 5,000 digits", "9" * 5000),
        ("zero", "0"),
        ("a date", "2026-03-14T09:26:53Z"),
        ("27 hours old", str(NOW_S - 27 * 3600)),
        ("27 hours ahead", str(NOW_S + 27 * 3600)),
        ("moved into the body", STAMP[:5]),
    )


def test_no_mutation_is_accepted() -> None:
    """An error other than Refused would be a crash on demand, and ends the test."""
    keys, accepted, every = trust(PROVIDER, PUBLIC), [], list(_requests())
    for name, headers, body in every:
        try:
            PROVIDER.verify(delivery(headers, body), keys, NOW_S * 1000)
        except Refused:
            continue
        accepted.append(name)
    assert accepted == []
    assert len(every) >= MUTATIONS_MIN


def test_right_request_is_refused_without_its_key() -> None:
    good = delivery(_headers(_sign(STAMP.encode() + BODY)), BODY)
    for secrets in ((), (OTHER_PUBLIC,), (OTHER_PUBLIC, OTHER_PUBLIC)):
        with pytest.raises(Refused):
            PROVIDER.verify(good, trust(PROVIDER, *secrets), NOW_S * 1000)


def test_either_key_proves_and_the_one_that_did_is_named() -> None:
    good = delivery(_headers(_sign(STAMP.encode() + BODY)), BODY)
    for secrets, slot in (
        ((PUBLIC,), Slot.CURRENT),
        ((PUBLIC, OTHER_PUBLIC), Slot.CURRENT),
        ((OTHER_PUBLIC, PUBLIC), Slot.PREVIOUS),
    ):
        assert PROVIDER.verify(good, trust(PROVIDER, *secrets), NOW_S * 1000).slot is slot
