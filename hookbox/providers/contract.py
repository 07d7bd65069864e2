"""What a provider is: pure functions over deliveries and events, and facts about its sender.

A provider module exports one frozen `Provider` named `PROVIDER`. Its functions are pure: no clock,
no network, no store, no logging. `configure` turns the provider into the one a source uses (its own
topics, templates, tolerances) by replacing functions and facts, so that everything downstream sees
one kind of thing.

`VerifiedDelivery` is the marker that a delivery was proved. Only a provider's `verify` makes one,
and `split` takes nothing else.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from hookbox.errors import ConfigError, Reason
from hookbox.model import Delivery, Handshake, Kind, Notification, Slot, Split, StoredEvent
from hookbox.providers.feed import Feed
from hookbox.rules.signatures import PublicKey


class SignedTime(StrEnum):
    """What the signed time is the time of; it decides how wide the window must be."""

    ATTEMPT = "attempt"  # renewed for every try
    PUBLICATION = "publication"  # the event's own; a retry hours later still carries it
    NONE = "none"


class KeyKind(StrEnum):
    """Where an event's identity comes from."""

    HEADER = "header"
    BODY = "body"
    SYNTHESISED = "synthesised"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """The HTTP status for each outcome, by this sender's own rules.

    `refused_by` overrides `refused` for single reasons. `busy` is any fault of ours.
    """

    ok: int = 200
    refused: int = 401
    unreadable: int = 200
    busy: int = 503
    refused_by: Mapping[Reason, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One usable secret of a source: bytes for HMAC and Basic, a public key for the asymmetric
    ones.
    """

    slot: Slot
    material: bytes | PublicKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """What `verify` may believe: the keys in order of preference, and the window.

    `tolerance_s` None refuses nothing for age (`skew = "observe"`, or a sender that signs no time).
    `certificate` is the PEM text for `certificate_url`, for providers that need one.
    """

    keys: tuple[Key, ...]
    tolerance_s: int | None = None
    certificate: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedDelivery:
    """A delivery that its sender's secret vouches for. Made by `verify` alone."""

    delivery: Delivery
    slot: Slot
    signed_at: int | None = None
    skew_s: float | None = None


def proved_before(delivery: Delivery, slot: Slot, signed_at: int | None) -> VerifiedDelivery:
    """For a delivery that the store kept: it was verified before it was stored, or it would not be
    there.
    """
    return VerifiedDelivery(delivery=delivery, slot=slot, signed_at=signed_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """What `simulate` is asked for. `secret` is the source's current secret as text; `id` is unique
    per request. `signing_key` is the private key (PEM) of the test certificate in the source's
    directory of certificates, where it has one.
    """

    kind: Kind
    to: str
    secret: str
    id: str
    now: int
    signing_key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signed:
    """A request as the sender would make it. `key` is the event key it will be stored under."""

    headers: tuple[tuple[str, str], ...]
    body: bytes
    key: str


# The keys of a `[source.NAME]` table that belong to its provider, as TOML values.
Table = Mapping[str, object]


def no_options(provider: "Provider", table: Table) -> "Provider":
    """`configure` of a provider that has no settings of its own."""
    for key in table:
        raise ConfigError(
            f"{provider.name} has no setting `{key}`",
            where=key,
            mend="remove the line, or check its spelling",
        )
    return provider


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """One sender: how to prove, split and read what it sends, and what is known about it.

    Functions, all pure:

    - `configure(provider, table)`: the provider as this source uses it; takes the keys of
      `options` out of the source's table. Raises ConfigError.
    - `read_secret(text)`: key material. Raises ConfigError for an empty or unusable secret.
    - `certificate_url(delivery, trust)`: where the certificate is that `verify` needs, after
      everything that can be judged without it. Raises Refused.
    - `verify(delivery, trust, now)`: signature first, freshness second. Raises Refused.
    - `split(verified)`: its events, or the answer to a handshake. Raises Unintelligible.
    - `normalize(event)`: notifications, one per recipient and at least one; never raises for odd
      content that `split` let pass.
    - `simulate(simulation)`: a correctly signed request of one of `kinds`. Raises OperatorError.

    Facts: `retry_schedule_s` are the seconds between attempts, empty where unknown;
    `retry_horizon_s` is from the first to the last automatic attempt; `patience_s` is how long the
    sender waits for an answer. Without a secret a source that `needs_secret` tells everybody to
    come back; a certificate proves the others. `certificates` is the directory to take it from
    instead of fetching it. `feed` is the sender's own list of events, where it has one that can be
    polled; `recovery` is what else brings back what no retry will bring.
    """

    name: str
    title: str
    signs_body: bool
    signed_time: SignedTime
    tolerance_s: int | None
    answers: Answers = Answers()
    retry_schedule_s: tuple[int, ...] = ()
    retry_horizon_s: int | None = None
    patience_s: float | None = None
    key_kind: KeyKind
    console_steps: tuple[str, ...] = ()
    needs_secret: bool = True
    headers_kept: frozenset[str] = frozenset()
    options: frozenset[str] = frozenset()
    kinds: tuple[Kind, ...] = ()
    read_secret: Callable[[str], bytes | PublicKey]
    make_secret: Callable[[], str] | None = None
    verify: Callable[[Delivery, Trust, int], VerifiedDelivery]
    split: Callable[[VerifiedDelivery], Split | Handshake]
    normalize: Callable[[StoredEvent], tuple[Notification, ...]]
    simulate: Callable[[Simulation], Signed] | None = None
    certificate_url: Callable[[Delivery, Trust], str] | None = None
    certificates: Path | None = None
    feed: Feed | None = None
    recovery: str = ""
    configure: Callable[["Provider", Table], "Provider"] = no_options
