"""Mailgun: events as JSON, received mail and the webhooks of old as forms.

The signature stands in the body and covers a timestamp and a token, nothing else: whoever holds one
such triple can put any event beside it. So each token vouches for the first content that came with
it, and the same token with other content is refused. A retry carries the triple of the first
attempt for eight hours, which is why the window is nine. The timestamp must have ten digits, or
digits could move between it and the token, and make another token of the same proof.

Only 200 and 406 end a delivery. A wrong key gets 401, so that it can be mended while Mailgun goes
on trying; what is too old, or a token with other content, gets 406.
https://documentation.mailgun.com/docs/mailgun/user-manual/webhooks/securing-webhooks (2026-09)
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from hookbox.errors import Reason, Refused, Unintelligible
from hookbox.model import (
    Delivery,
    Kind,
    Notification,
    Rotten,
    Split,
    SplitEvent,
    StoredEvent,
    Via,
)
from hookbox.providers.contract import (
    Answers,
    KeyKind,
    Provider,
    SignedTime,
    Trust,
    VerifiedDelivery,
)
from hookbox.providers.mailgun_events import read
from hookbox.providers.mailgun_feed import FEED, identity
from hookbox.providers.mailgun_forms import read_fields
from hookbox.providers.mailgun_simulation import KINDS, simulate
from hookbox.providers.proof import proved
from hookbox.providers.secret_text import utf8_secret
from hookbox.rules.digest import Unreadable, blank, digest_of, read_json, value_or_none
from hookbox.rules.forms import fields
from hookbox.rules.freshness import seconds_at
from hookbox.rules.headers import one
from hookbox.rules.instants import instant
from hookbox.rules.multipart import form_object, is_multipart, text, texts
from hookbox.rules.reading import key_text, plain_text
from hookbox.rules.signatures import PublicKey, any_equal, hex_mac

HOUR_S = 3600

STAMP = re.compile(r"[0-9]{10}")
TOKEN = re.compile(r"[!-~]{1,128}")  # they have 50 characters today
HEXADECIMAL = re.compile(r"[0-9A-Fa-f]{64}")
# A subaccount's events are signed with the parent account's key, too.
SIGNATURES = ("signature", "parent-signature")

TRIPLE = ("timestamp", "token", *SIGNATURES)

JSON_OBJECT = re.compile(rb"(?:\xef\xbb\xbf)?[ \t\r\n]*\{")
# Takes what a strict reader would not: it looks for the triple and believes nothing else.
_loosely = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str).raw_decode


@dataclass(frozen=True, slots=True, kw_only=True)
class Triple:
    """What is signed, and the signatures that are given for it."""

    stamp: bytes
    token: bytes
    signatures: tuple[bytes, ...]


def verify(delivery: Delivery, trust: Trust, now: int) -> VerifiedDelivery:
    if one(delivery.headers, "content-encoding") not in (None, b"", b"identity"):
        raise Refused(Reason.ENCODING_UNSUPPORTED)  # nothing is unpacked for a stranger
    triple = _triple(delivery.body)
    signed = triple.stamp + triple.token

    def proves(key: bytes | PublicKey) -> bool:
        assert isinstance(key, bytes)
        return any_equal(hex_mac(key, signed), triple.signatures)

    return proved(delivery, trust, now, proves, seconds_at(triple.stamp))


def _triple(body: bytes) -> Triple:
    """The triple, out of a body that nobody vouches for yet."""
    block = _block(body)
    stamp, token = block.get("timestamp"), block.get("token")
    given = [block[name] for name in SIGNATURES if name in block]
    if not given:
        raise Refused(Reason.SIGNATURE_MISSING)
    if stamp is None:
        raise Refused(Reason.TIMESTAMP_MISSING)
    if not isinstance(stamp, str) or not STAMP.fullmatch(stamp):
        raise Refused(Reason.TIMESTAMP_MALFORMED)
    if not isinstance(token, str) or not TOKEN.fullmatch(token):
        raise Refused(Reason.ENVELOPE_MALFORMED)
    return Triple(
        stamp=stamp.encode(),
        token=token.encode(),
        signatures=tuple(
            each.lower().encode()
            for each in given
            if isinstance(each, str) and HEXADECIMAL.fullmatch(each)
        ),
    )


def _block(body: bytes) -> Mapping[str, object]:
    """The object, or the form, that the triple stands in."""
    try:
        if not JSON_OBJECT.match(body):
            return _texts(body)
        decoded = body.decode("utf-8", "surrogateescape")
        document, _ = _loosely(decoded, blank(decoded, 0))
    except (ValueError, RecursionError) as error:  # Unreadable is a ValueError
        raise Refused(Reason.ENVELOPE_MALFORMED) from error
    block = document.get("signature")
    if not isinstance(block, dict):
        raise Refused(Reason.SIGNATURE_MISSING)
    return block


def _texts(body: bytes) -> dict[str, str]:
    """A form's fields. People's own variables may shadow Mailgun's, which come last."""
    if is_multipart(body):
        return texts(body)
    return {text(name): text(value) for name, value in fields(body)}


def split(verified: VerifiedDelivery) -> Split:
    """One event, bound to its token."""
    body = verified.delivery.body
    try:
        token = _triple(body).token.decode()
    except Refused as error:  # never after `verify`
        raise Unintelligible("the body holds no triple") from error
    try:
        event = _event(verified, token) if JSON_OBJECT.match(body) else _of_form(body, token)
    except Unreadable as error:
        return Split(rotten=(Rotten(reason=str(error), content=body),), token=token)
    return Split(events=(event,), token=token)


def _event(verified: VerifiedDelivery, token: str) -> SplitEvent:
    document = read_json(verified.delivery.body).value
    event = document.get("event-data") if isinstance(document, dict) else None
    if not isinstance(event, dict):
        raise Unreadable("there is no event-data in the body")
    event_id = key_text(event.get("id"))
    occurred_at = instant(event.get("timestamp")) or verified.signed_at or 0
    return SplitEvent(
        key=identity(event_id, occurred_at) if event_id else token,
        digest=digest_of(event),
        raw_kind=plain_text(event.get("event"), 200) or "",
    )


def _of_form(body: bytes, token: str) -> SplitEvent:
    """Received mail, or a webhook of old: neither has an id, and the token stands for one."""
    found = form_object(body) if is_multipart(body) else dict[str, object](_texts(body))
    own = {name: each for name, each in found.items() if name not in TRIPLE}
    return SplitEvent(
        key=token,
        digest=digest_of(own),
        raw_kind=plain_text(own.get("event"), 200) or "inbound",
        content=json.dumps({**own, "timestamp": found["timestamp"]}).encode(),
    )


def normalize(event: StoredEvent) -> tuple[Notification, ...]:
    document = value_or_none(event.content)
    if not isinstance(document, dict):
        return (Notification(kind=Kind.UNKNOWN),)
    told = document if event.via is Via.POLL else document.get("event-data")
    return (read(told),) if isinstance(told, dict) else read_fields(document)


PROVIDER = Provider(
    name="mailgun",
    title="Mailgun",
    signs_body=False,
    signed_time=SignedTime.PUBLICATION,
    tolerance_s=9 * HOUR_S,
    answers=Answers(refused_by={Reason.STALE: 406, Reason.TOKEN_REUSED: 406}),
    retry_schedule_s=(300, 600, 900, 3600, 7200, 14400),
    retry_horizon_s=8 * HOUR_S,  # as its pages say; the steps add up to half an hour less
    key_kind=KeyKind.BODY,
    console_steps=(
        "In Sending, Webhooks, add {url} for every event, for the domain or the whole account",
        "Copy the HTTP webhook signing key, which is not the API key, into hookbox",
        "Press the button for a test webhook, and look for it in `hookbox events`",
        'For received mail, add a route: forward("{url}"), and body_max = "35 MiB" to the source',
        "Mailgun never retries `delivered`: what came while the box was down is lost",
    ),
    kinds=KINDS,
    read_secret=utf8_secret,
    verify=verify,
    split=split,
    normalize=normalize,
    simulate=simulate,
    feed=FEED,
    recovery="ask the events API for the time of the outage, within what the plan keeps",
)
