"""Deliveries, keys and stored events as the rest of the box would make them."""

from collections.abc import Iterable, Mapping

from hookbox.model import Delivery, Slot, Split, SplitEvent, StoredEvent
from hookbox.providers import PROVIDERS
from hookbox.providers.contract import Key, Provider, Trust, VerifiedDelivery

Headers = Mapping[str, str] | Iterable[tuple[str | bytes, str | bytes]]
SLOTS = (Slot.CURRENT, Slot.PREVIOUS)

# The declarative provider needs settings; these describe the plainest sender there is.
PLAINEST: Mapping[str, object] = {
    "signed": "{ts}.{body}",
    "signature": "header:x-signature",
    "secret_encoding": "utf8",
    "timestamp": "header:x-timestamp",
    "id": "/id",
}


# What a source must say, for the providers that cannot do without.
NEEDED: Mapping[str, Mapping[str, object]] = {
    "hmac": PLAINEST,
    "ses": {"topics": ["arn:aws:sns:eu-west-1:123456789012:ses-events"]},
}


def provider_of(name: str, options: Mapping[str, object] | None = None) -> Provider:
    """The provider as a source with these options uses it."""
    provider = PROVIDERS[name]
    if options is None:
        options = NEEDED.get(name, {})
    return provider.configure(provider, options)


def delivery(headers: Headers, body: bytes, query: bytes = b"", received_at: int = 0) -> Delivery:
    """A delivery as the door makes it: names in lower case, bytes as sent."""
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    return Delivery(
        source="test",
        headers=tuple((_bytes(name).lower(), _bytes(value)) for name, value in pairs),
        body=body,
        query=query,
        received_at=received_at,
    )


def _bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode("latin-1")


def trust(
    provider: Provider,
    *secrets: str,
    tolerance_s: int | None = -1,
    certificate: bytes | None = None,
) -> Trust:
    """The keys in order, current first; the provider's own window unless another is given."""
    return Trust(
        keys=tuple(
            Key(slot=slot, material=provider.read_secret(secret))
            for slot, secret in zip(SLOTS, secrets, strict=False)
            if secret or provider.needs_secret
        ),
        tolerance_s=provider.tolerance_s if tolerance_s == -1 else tolerance_s,
        certificate=certificate,
    )


def proved(found: Delivery) -> VerifiedDelivery:
    """A delivery that counts as proved, for what comes after."""
    return VerifiedDelivery(delivery=found, slot=Slot.CURRENT)


def events(split: object) -> tuple[SplitEvent, ...]:
    assert isinstance(split, Split)
    return split.events


def stored(provider: Provider, verified: VerifiedDelivery, event: SplitEvent) -> StoredEvent:
    """The event as the store gives it back: its own bytes, and the headers that are kept."""
    found = verified.delivery
    content = found.body[event.start : event.end] if event.content is None else event.content
    named = ((name.decode(), value.decode("latin-1")) for name, value in found.headers)
    return StoredEvent(
        id=1,
        source=found.source,
        key=event.key,
        raw_kind=event.raw_kind,
        content=content,
        headers={name: value for name, value in named if name in provider.headers_kept},
        received_at=found.received_at,
        signed_at=verified.signed_at,
    )
