"""The declarative provider: any sender that signs with an HMAC, described by its source's settings.

    [source.parcels]
    provider = "hmac"

What is signed, and with what
    signed = "{ts}.{body}"            # {body} {ts} {id} {url} {form_sorted} {header:NAME}
                                      # {query:NAME} {json:/pointer}, and literal text
    algorithm = "hmac-sha256"         # or hmac-sha1, hmac-sha512
    secret_encoding = "utf8"          # or base64, base64url, hex, whsec: how the secret's text
                                      # stands for the key. Never guessed: Stripe's `whsec_...` is
                                      # utf8, the same letters in Standard Webhooks are whsec
    signs = "received"                # or "plain": the sender signs first and compresses then
    url = "https://..."               # what {url} stands for; by default server.public_url's

Where the signature is
    signature = "header:X-Signature"  # or "query:sig", or a pointer such as "/auth/sig"
    signature_pattern = "sha256={sig}"          # or a list of what may be there
    signature_separator = " "         # the header is a list; any entry may be the right one
    signature_pair = "v1"             # the header is `t=...,v1=...`: look at these keys, in any
                                      # order; the separator is then "," unless it is set
    signature_encoding = "hex"        # or base64, base64url, base64-unpadded, base64url-unpadded

When it was signed
    timestamp = "header:X-Timestamp"  # or "pair:t", "/time", "query:ts"; must be signed itself
    timestamp_unit = "s"              # or "ms", "iso8601"
                                      # the window is the source's `tolerance`, 300 s by default

Which event it is
    id = "/id"                        # or "header:X-Event-Id", or a template of several:
                                      # "{header:X-Hook}:{header:X-Delivery}"
    natural_key = ["/order", "/status", "/at"]  # used and counted when there is no id
    id_stable = false                 # the sender's ids change between attempts: use natural_key

What is in it
    body = "json"                     # or "form": the fields become one flat object
    items = "/events"                 # the body holds a list of events; "" when it is the list.
                                      # id, natural_key and map then point into each event
    challenge = { when = "/type", equals = "url_verification", echo = "/challenge" }
    map = { recipient = "/to", types = { hardfail = "bounced/hard" } }     # see providers/plain.py
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import NoReturn

from hookbox.errors import ConfigError, Reason
from hookbox.providers.contract import Answers, KeyKind, Provider, SignedTime, Table
from hookbox.providers.declared_feed import declared
from hookbox.providers.feed import Feed
from hookbox.providers.hmac_events import listed, split
from hookbox.providers.hmac_proof import verify
from hookbox.providers.hmac_simulation import simulate
from hookbox.providers.places import Where
from hookbox.providers.plain import reader
from hookbox.providers.proof import refusing_ambiguous
from hookbox.providers.schemes import SECRETS, SETTINGS, Scheme, parsed_scheme
from hookbox.providers.secret_text import (
    made_base64,
    made_base64url,
    made_text,
    made_whsec,
    utf8_secret,
)

TOLERANCE_S = 300
# How a new secret is written where its receiver may choose it.
MAKE_SECRET: Mapping[str, Callable[[], str]] = {
    "utf8": made_text,
    "hex": made_text,
    "base64": made_base64,
    "base64url": made_base64url,
    "whsec": made_whsec,
}


def configure(provider: Provider, table: Table) -> Provider:
    """The provider as the source's settings describe it."""
    scheme = parsed_scheme(table)
    headers = scheme.headers()
    covers_body = scheme.signed.whole("body") or scheme.signed.whole("form_sorted")
    return replace(
        provider,
        signs_body=covers_body,
        signed_time=SignedTime.ATTEMPT if scheme.stamp else SignedTime.NONE,
        tolerance_s=TOLERANCE_S if scheme.stamp else None,
        key_kind=_key_kind(scheme),
        headers_kept=scheme.map.headers(),
        kinds=scheme.map.kinds(),
        read_secret=SECRETS[scheme.secret_encoding],
        make_secret=MAKE_SECRET[scheme.secret_encoding] if provider.make_secret else None,
        verify=refusing_ambiguous(headers, partial(verify, scheme)),
        split=partial(split, scheme),
        normalize=reader(scheme.map),
        simulate=partial(simulate, scheme),
        feed=_feed(scheme),
    )


def _feed(scheme: Scheme) -> Feed | None:
    """A list has no headers, so what is told in them cannot be told there; nor is it a form."""
    untold = scheme.form or scheme.map.headers()
    return None if untold else declared(partial(listed, scheme))


def _key_kind(scheme: Scheme) -> KeyKind:
    identity = scheme.identity
    if identity.id is None or not identity.stable:
        return KeyKind.SYNTHESISED
    in_body = any(place.where is Where.JSON for place in identity.id.places())
    return KeyKind.BODY if in_body else KeyKind.HEADER


def unconfigured(*_: object) -> NoReturn:
    """What a source does that was never configured: `configure` always comes first."""
    raise ConfigError("this provider needs to be told how its sender signs", where="signed")


PROVIDER = Provider(
    name="hmac",
    title="Any sender that signs with an HMAC",
    signs_body=True,
    signed_time=SignedTime.ATTEMPT,
    tolerance_s=TOLERANCE_S,
    answers=Answers(unreadable=400, refused_by={Reason.ENCODING_UNSUPPORTED: 415}),
    key_kind=KeyKind.BODY,
    console_steps=(
        "Find out how the sender signs, and describe it under the source in hookbox.toml",
        "Enter {url} as the address for webhooks at the sender",
        "Enter {secret} there as the secret, or copy the sender's own into hookbox",
        "Have the sender send one event twice: `hookbox events` shows one event, one duplicate",
    ),
    options=frozenset(SETTINGS),
    read_secret=utf8_secret,
    make_secret=made_text,
    verify=unconfigured,
    split=unconfigured,
    normalize=unconfigured,
    configure=configure,
)
