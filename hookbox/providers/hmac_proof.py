"""Proving a delivery by the scheme that its source describes."""

from collections.abc import Callable, Mapping

from hookbox.errors import Reason, Refused
from hookbox.model import Delivery
from hookbox.providers.contract import Trust, VerifiedDelivery
from hookbox.providers.proof import SIGNATURES_MAX, proved
from hookbox.providers.schemes import Scheme, SignatureForm, Stamp
from hookbox.providers.templates import Request
from hookbox.rules.encoding import plain_before_proof
from hookbox.rules.freshness import milliseconds_at, rfc3339_at, seconds_at
from hookbox.rules.headers import pairs
from hookbox.rules.signatures import PublicKey, any_equal, encoded_mac

READ_TIME: Mapping[str, Callable[[bytes], int]] = {
    "s": seconds_at,
    "ms": milliseconds_at,
    "iso8601": rfc3339_at,
}


def verify(scheme: Scheme, delivery: Delivery, trust: Trust, now: int) -> VerifiedDelivery:
    body = delivery.body
    if scheme.signs_plain:
        body = plain_before_proof(delivery.headers, body)
    request = Request(delivery.headers, delivery.query, body, scheme.url, scheme.form)
    candidates = _candidates(scheme.signature, request)
    stamp = scheme.stamp
    signed_at = _signed_at(stamp, request) if stamp else None
    signed = scheme.signed.render(request, stamp.place if stamp else None)
    if signed is None:
        raise Refused(Reason.ENVELOPE_MALFORMED)

    def proves(key: bytes | PublicKey) -> bool:
        assert isinstance(key, bytes)
        expected = encoded_mac(key, signed, scheme.algorithm, scheme.signature.encoding)
        return any_equal(expected, candidates)

    return proved(delivery, trust, now, proves, signed_at)


def _candidates(form: SignatureForm, request: Request) -> list[bytes]:
    """Every text that may be the signature. Also hands the signature's pairs to the request."""
    text = request.at(form.place)
    if not text:
        raise Refused(Reason.SIGNATURE_MISSING)
    entries = text.split(form.separator) if form.separator else [text]
    if form.pair:
        request.pairs = pairs(text, form.separator)
        entries = [value for name, value in request.pairs if name == form.pair]
    if len(entries) > SIGNATURES_MAX:
        raise Refused(Reason.HEADER_MALFORMED)
    found = [
        entry[len(before) : len(entry) - len(after)]
        for entry in entries
        for before, after in form.patterns
        if entry.startswith(before) and entry.endswith(after)
    ]
    return [each.lower() for each in found] if form.encoding == "hex" else found


def _signed_at(stamp: Stamp, request: Request) -> int:
    return READ_TIME[stamp.unit](request.at(stamp.place) or b"")
