"""Postmark: no signature, only what its address for the webhook holds: a user and a password.

So nothing proves the content, and nothing tells how old a request is. A source may also list the
addresses that Postmark posts from; they change, and one event may come from several.

Events are told apart by a trace id that newer requests carry and their retries keep; else by the
bounce's own id; else by what makes the event itself, the recipient included. An old retry may lack
the header, so each fact also has a meaning, which does not depend on it.

Only 200 is success, and 403 ends a delivery: a wrong password gets 401, so that it can be mended.
https://postmarkapp.com/developer/webhooks/webhooks-overview (2026-08)
"""

import ipaddress
from dataclasses import replace
from functools import partial

from hookbox.errors import ConfigError, Reason, Refused
from hookbox.model import Delivery, Kind, Notification, Split, SplitEvent, StoredEvent
from hookbox.providers.basic import basic_secret, credentials_slot, made_credentials
from hookbox.providers.contract import (
    Answers,
    KeyKind,
    Provider,
    SignedTime,
    Table,
    Trust,
    VerifiedDelivery,
    no_options,
)
from hookbox.providers.postmark_events import identify, own_digest, read, record_type
from hookbox.providers.postmark_feed import FEED
from hookbox.providers.postmark_simulation import KINDS, simulate
from hookbox.providers.proof import Verify, refusing_ambiguous
from hookbox.providers.single import header_reader, opened
from hookbox.rules.digest import value_or_none
from hookbox.rules.reading import key_text

TRACE_ID = "x-pm-webhook-trace-id"

MEND_ADDRESSES = 'write addresses = ["192.0.2.1", "198.51.100.0/24"]'

Networks = tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]


def verify(allowed: Networks, delivery: Delivery, trust: Trust, now: int) -> VerifiedDelivery:
    """Credentials first: a stranger does not learn whether its address is listed."""
    slot = credentials_slot(delivery, trust)
    if allowed and not _listed(delivery.remote, allowed):
        raise Refused(Reason.ADDRESS_NOT_LISTED)
    return VerifiedDelivery(delivery=delivery, slot=slot)


def _listed(remote: str, allowed: Networks) -> bool:
    try:
        address = ipaddress.ip_address(remote)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return any((mapped or address) in network for network in allowed)


def split(verified: VerifiedDelivery) -> Split:
    found = opened(verified)
    own = identify(found.document, found.digest)
    trace_id = key_text(header_reader(verified.delivery)(TRACE_ID))
    event = SplitEvent(
        key=trace_id or own.key,
        digest=own_digest(found.document, found.digest),
        raw_kind=record_type(found.document),
        content=found.content,
        synthesised=own.synthesised and not trace_id,
    )
    return Split(events=(event,))


def normalize(event: StoredEvent) -> tuple[Notification, ...]:
    document = value_or_none(event.content)
    if not isinstance(document, dict):
        return (Notification(kind=Kind.UNKNOWN),)
    return (read(document),)


def configure(provider: Provider, table: Table) -> Provider:
    """With `addresses`, a delivery must also come from one of them."""
    no_options(provider, {name: each for name, each in table.items() if name != "addresses"})
    texts = table.get("addresses", [])
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise ConfigError("this is a list of addresses", where="addresses", mend=MEND_ADDRESSES)
    allowed = tuple(_network(text) for text in texts)
    return replace(provider, verify=_verify_from(allowed))


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    try:
        return ipaddress.ip_network(text)
    except ValueError as error:
        raise ConfigError(
            f"`{text}` is no address and no network", where="addresses", mend=MEND_ADDRESSES
        ) from error


def _verify_from(allowed: Networks) -> Verify:
    """The trace id is not proved by anything either, but two of them would be two events."""
    return refusing_ambiguous((TRACE_ID,), partial(verify, allowed))


PROVIDER = Provider(
    name="postmark",
    title="Postmark",
    signs_body=False,
    signed_time=SignedTime.NONE,
    tolerance_s=None,
    answers=Answers(),
    retry_schedule_s=(60, 300, 600, 600, 600, 900, 1800, 3600, 7200, 21600),
    retry_horizon_s=37_260,  # 10 h 21 min in eleven attempts; it plans to make that 72 minutes
    key_kind=KeyKind.SYNTHESISED,
    console_steps=(
        "In the message stream's Webhooks, add a webhook with the address {url}",
        "Under its HTTP authentication, enter user and password: {secret}",
        "Select all events: delivery, bounce, spam complaint, open, click, subscription change",
        "Send a test from that page, and look for it in `hookbox events`",
        "For received mail, set the inbound webhook to https://USER:PASSWORD@ and the same address",
        'Mail with attachments needs body_max = "50 MiB" in the source',
    ),
    options=frozenset({"addresses"}),
    kinds=KINDS,
    read_secret=basic_secret,
    make_secret=made_credentials,
    verify=_verify_from(()),
    split=split,
    normalize=normalize,
    simulate=simulate,
    feed=FEED,
    recovery="poll its bounces; deliveries, opens and clicks are in its Messages API alone",
    configure=configure,
)
