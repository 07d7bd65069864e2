"""Standard Webhooks: the scheme that most new senders share.

https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md (2026-08)

`webhook-signature` is a list, so that a sender can sign with two keys during a rotation: one right
signature of a version that our key is made for proves the delivery; items of other versions, and
items that are none, are skipped. The signed text is `id.timestamp.body` with the headers' literal
bytes, so neither id nor timestamp may hold a dot.
"""

import re
from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from hookbox.errors import OperatorError, Reason, Refused
from hookbox.model import Delivery, Split, SplitEvent
from hookbox.providers.contract import (
    Answers,
    KeyKind,
    Provider,
    Signed,
    SignedTime,
    Simulation,
    Trust,
    VerifiedDelivery,
)
from hookbox.providers.declared_feed import declared
from hookbox.providers.plain import PLAIN, Map, raw_kind, reader, specimen, with_map
from hookbox.providers.proof import SIGNATURES_MAX, proved, refusing_ambiguous
from hookbox.providers.secret_text import made_whsec, whsec_secret
from hookbox.providers.single import header_reader, one_event, opened
from hookbox.rules.digest import Content
from hookbox.rules.freshness import seconds_at
from hookbox.rules.headers import one, required
from hookbox.rules.signatures import (
    PublicKey,
    any_equal,
    any_proves,
    base64_mac,
    webhook_signature,
    webhook_text,
)

# Printable ASCII without the dot, which separates the parts of the signed text.
ID = re.compile(rb"[!-\-/-~]{1,256}")


# What the names of the three headers begin with.
PREFIXES = ("webhook",)
PARTS = ("id", "timestamp", "signature")


def verify(
    prefixes: tuple[str, ...], delivery: Delivery, trust: Trust, now: int
) -> VerifiedDelivery:
    """The scheme, under the one set of headers that is there."""
    prefix = prefix_of(prefixes, delivery)
    signatures = required(delivery.headers, f"{prefix}-signature", Reason.SIGNATURE_MISSING)
    stamp = required(delivery.headers, f"{prefix}-timestamp", Reason.TIMESTAMP_MISSING)
    event_id = required(delivery.headers, f"{prefix}-id", Reason.ID_MISSING)
    if not ID.fullmatch(event_id):
        raise Refused(Reason.ID_MALFORMED)
    signed_at = seconds_at(stamp)
    signed = webhook_text(event_id, stamp, delivery.body)
    listed = _listed(signatures)

    def proves(key: bytes | PublicKey) -> bool:
        if isinstance(key, bytes):
            return any_equal(base64_mac(key, signed), _of(b"v1", listed))
        return any_proves(key, signed, _of(b"v1a", listed))

    return proved(delivery, trust, now, proves, signed_at)


def _listed(signatures: bytes) -> list[tuple[bytes, bytes, bytes]]:
    """The entries as (version, comma, signature)."""
    if b", " in signatures:  # how a proxy joins a header that was sent twice
        raise Refused(Reason.HEADER_AMBIGUOUS)
    listed = [each.partition(b",") for each in signatures.split(b" ")]
    if len(listed) > SIGNATURES_MAX:
        raise Refused(Reason.HEADER_MALFORMED)
    return listed


def _of(version: bytes, listed: Iterable[tuple[bytes, bytes, bytes]]) -> list[bytes]:
    return [signature for found, _, signature in listed if found == version]


def prefix_of(prefixes: tuple[str, ...], delivery: Delivery) -> str:
    """The prefix of the set in use.

    Two sets are refused unless they say the same: one of them is not what was signed, and another
    reader might believe it.
    """
    if len(prefixes) == 1:
        return prefixes[0]
    sets = {
        prefix: tuple(one(delivery.headers, f"{prefix}-{part}") for part in PARTS)
        for prefix in prefixes
    }
    present = [prefix for prefix, values in sets.items() if any(values)]
    if len({sets[prefix] for prefix in present}) > 1:
        raise Refused(Reason.HEADER_AMBIGUOUS)
    return present[0] if present else prefixes[0]


def split(prefixes: tuple[str, ...], mapped: Map, verified: VerifiedDelivery) -> Split:
    """One event under the signed id, whatever the body says."""
    header = header_reader(verified.delivery)
    event_id = header(f"{prefix_of(prefixes, verified.delivery)}-id") or ""
    found = opened(verified, event_id)
    return one_event(found, event_id, raw_kind(mapped, found.document, header))


def listed(mapped: Map, content: Content, event_id: str | None) -> SplitEvent | str:
    """An event of the sender's list, under the id that its webhook has in a header."""
    if event_id is None:
        return "the event has no id"
    return SplitEvent(
        key=event_id,
        digest=content.digest,
        raw_kind=raw_kind(mapped, content.value, lambda _: None),
    )


def simulate(prefixes: tuple[str, ...], mapped: Map, wanted: Simulation) -> Signed:
    """A request as a sender with the source's own secret would make it."""
    example = specimen(mapped, wanted)
    body = example.body()
    headers = (*signed_headers(prefixes[0], wanted, body), *example.headers.items())
    return Signed(headers=headers, body=body, key=wanted.id)


def signed_headers(prefix: str, wanted: Simulation, body: bytes) -> tuple[tuple[str, str], ...]:
    """The headers that prove this body."""
    key = whsec_secret(wanted.secret)
    if not isinstance(key, bytes):
        raise OperatorError(
            "this source trusts a public key, and only the sender holds the private one"
        )
    stamp = str(wanted.now // 1000)
    return (
        ("content-type", "application/json"),
        (f"{prefix}-id", wanted.id),
        (f"{prefix}-timestamp", stamp),
        (f"{prefix}-signature", webhook_signature(key, wanted.id, stamp, body)),
    )


def mapped_by(prefixes: tuple[str, ...], provider: Provider, mapped: Map) -> Provider:
    """The provider with another reading of the body."""
    return replace(
        provider,
        verify=refusing_ambiguous(mapped.headers(), provider.verify),
        split=partial(split, prefixes, mapped),
        normalize=reader(mapped),
        simulate=partial(simulate, prefixes, mapped),
        feed=None if mapped.headers() else declared(partial(listed, mapped)),
        headers_kept=mapped.headers(),
        kinds=mapped.kinds(),
    )


PROVIDER = Provider(
    name="standardwebhooks",
    title="Standard Webhooks",
    signs_body=True,
    signed_time=SignedTime.ATTEMPT,
    tolerance_s=300,  # every reference library's window, both ways
    answers=Answers(),
    retry_schedule_s=(5, 300, 1800, 7200, 18000, 36000, 50400, 72000, 86400),
    retry_horizon_s=272_105,  # the specification's example: 75 h 35 min 5 s
    patience_s=15.0,  # it recommends 15 to 30 s
    key_kind=KeyKind.HEADER,
    console_steps=(
        "In the sender's webhook settings, add an endpoint with the address {url}",
        "Choose the email events: sent, delivered, delayed, bounced, complained and so on",
        "Copy the signing secret it shows (whsec_..., or whpk_... for a public key) into hookbox",
        "Where the sender lets you choose the secret instead, give it {secret}",
        "Have the sender send a test event, and look for it in `hookbox events`",
    ),
    options=frozenset({"map"}),
    kinds=PLAIN.kinds(),
    read_secret=whsec_secret,
    make_secret=made_whsec,
    verify=partial(verify, PREFIXES),
    split=partial(split, PREFIXES, PLAIN),
    normalize=reader(PLAIN),
    simulate=partial(simulate, PREFIXES, PLAIN),
    feed=declared(partial(listed, PLAIN)),
    configure=partial(with_map, partial(mapped_by, PREFIXES)),
)
