"""The words of hookbox: the records that every floor speaks in.

Owns no behaviour beyond what keeps a record consistent. Instants are integer milliseconds UTC and
end in `_at`; durations end in `_s` or `_ms`; sizes in `_bytes` or `_max`. Records are frozen and
are built by keyword.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, StrEnum, auto


class Kind(StrEnum):
    """What an event says about mail: Anymail's event types, plus `account` and `control`."""

    QUEUED = "queued"
    SENT = "sent"
    REJECTED = "rejected"
    FAILED = "failed"
    BOUNCED = "bounced"
    DEFERRED = "deferred"
    DELIVERED = "delivered"
    AUTORESPONDED = "autoresponded"
    OPENED = "opened"
    CLICKED = "clicked"
    COMPLAINED = "complained"
    UNSUBSCRIBED = "unsubscribed"
    SUBSCRIBED = "subscribed"
    INBOUND = "inbound"
    INBOUND_FAILED = "inbound_failed"
    ACCOUNT = "account"
    CONTROL = "control"
    UNKNOWN = "unknown"


class BounceClass(StrEnum):
    """How lasting a bounce is. Only `hard` is about the address itself."""

    HARD = "hard"
    SOFT = "soft"
    BLOCK = "block"
    UNDETERMINED = "undetermined"


class RejectReason(StrEnum):
    """Why a message was refused: Anymail's reject reasons, unchanged."""

    INVALID = "invalid"
    BOUNCED = "bounced"
    TIMED_OUT = "timed_out"
    BLOCKED = "blocked"
    SPAM = "spam"
    UNSUBSCRIBED = "unsubscribed"
    OTHER = "other"


class Via(StrEnum):
    """By which way a delivery reached the box."""

    WEBHOOK = "webhook"
    POLL = "poll"
    SIMULATE = "simulate"


class Slot(StrEnum):
    """Which of a source's two secrets proved a delivery. `none`: the sender does not sign (a poll,
    for one).
    """

    CURRENT = "current"
    PREVIOUS = "previous"
    NONE = "none"


class TimeSource(StrEnum):
    """Where the time of an event came from: the event, the signature's time, or our own clock."""

    EVENT = "event"
    SIGNED = "sign_time"
    RECEIVED = "received"


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One inbound HTTP POST, before anybody vouched for it.

    `headers` are the pairs as sent, names in lower case; a header sent twice is there twice. `body`
    is every byte received, in its Content-Encoding. `remote` is the sender's address behind trusted
    proxies.
    """

    source: str
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes
    received_at: int
    query: bytes = b""
    remote: str = ""
    via: Via = Via.WEBHOOK


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitEvent:
    """One event of a verified delivery, as the store will keep it.

    `key` is the event's identity inside its source; `digest` is 32 bytes over the canonical form of
    the event's own content. The content is `body[start:end]` of the delivery; `content` is set
    instead where the event's bytes are not a slice of the body (compressed bodies, form fields).
    `synthesised`: the sender gave no usable id and the key was made from content; each such event
    is counted and shown. `jobs`: what the outbox must do about a new event besides applying it.
    """

    key: str
    digest: bytes
    raw_kind: str = ""
    start: int = 0
    end: int | None = None
    content: bytes | None = None
    synthesised: bool = False
    jobs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotten:
    """An authentic piece of a delivery that cannot be read as an event. It is quarantined, the rest
    goes on.
    """

    reason: str
    content: bytes
    key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Handshake:
    """A verified request that wants an answer, not an effect (a challenge to echo, a ping)."""

    answer: bytes = b""
    content_type: str = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """What one verified delivery holds: events in the sender's order, and pieces that could not be
    read.

    `token`: what the sender signed instead of the content. It vouches for the first content that
    comes with it and for no other.
    """

    events: tuple[SplitEvent, ...] = ()
    rotten: tuple[Rotten, ...] = ()
    token: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredEvent:
    """An event read back from the store, for `normalize`.

    `headers` holds the headers that the provider asked to keep, names in lower case, decoded as
    latin-1. `signed_at` is the time inside the signature where the sender signs one. `forgotten`: a
    person wants the sender's replay of it to be news.
    """

    id: int
    source: str
    source_id: int = 0
    key: str
    raw_kind: str
    content: bytes
    headers: Mapping[str, str]
    received_at: int
    signed_at: int | None = None
    via: Via = Via.WEBHOOK
    forgotten: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """What one event says about one recipient, in hookbox's own words.

    `recipient` is a bare address with its case preserved; None when the sender does not say which
    of several (`ambiguous`, with the possible ones in `candidates`), or when the event is about no
    recipient. `occurred_at` is None where the event carries no readable time; the ledger then takes
    the receive time. `suppress` is the sender's own advice where its rules go beyond kind and class
    (a provider-side suppression). `scope` is set where an unsubscribe concerns a list or group
    only; such a fact never suppresses globally. `meaning` is the same for two events that report
    one fact under two keys; the ledger lets it count once. `extras` are further readable facts
    (smtp_code, diagnostic, url, ip, tags, metadata …), JSON values only.
    """

    kind: Kind
    recipient: str | None = None
    bounce_class: BounceClass | None = None
    reject_reason: RejectReason | None = None
    occurred_at: int | None = None
    time_source: TimeSource = TimeSource.EVENT
    message_id: str | None = None
    ambiguous: bool = False
    candidates: tuple[str, ...] = ()
    suppress: bool = False
    scope: str = ""
    meaning: str | None = None
    extras: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """What the store did with one delivery: how many of its events were new, known, or known with
    other content. `token_reused`: nothing was stored, since its token vouched for other content.
    """

    new: int = 0
    duplicate: int = 0
    conflicting: int = 0
    quarantined: int = 0
    token_reused: bool = False

    @classmethod
    def of(cls, parts: "Sequence[Admission]") -> "Admission":
        """What became of a delivery that was stored in parts."""
        return cls(
            new=sum(part.new for part in parts),
            duplicate=sum(part.duplicate for part in parts),
            conflicting=sum(part.conflicting for part in parts),
            quarantined=sum(part.quarantined for part in parts),
            token_reused=any(part.token_reused for part in parts),
        )


class Drive(StrEnum):
    """What admits the events of a source: whichever way is faster, or its event list alone."""

    WEBHOOK = "webhook"
    CURSOR = "cursor"


class Order(StrEnum):
    """Whose events are brought one after the other, in the order in which they were applied."""

    NONE = "none"
    RECIPIENT = "recipient"
    SOURCE = "source"


class Verdict(Enum):
    """What one attempt says about its job."""

    DONE = auto()
    LATER = auto()
    NEVER = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """How one attempt went. `outcome` is a word for people; `excerpt` is cut to 200 characters.

    `blames_target`: a failure that counts for the circuit breaker. `spared`: one that does not
    count against the job's schedule.
    """

    verdict: Verdict
    outcome: str
    status: int | None = None
    excerpt: str = ""
    retry_after_s: float | None = None
    blames_target: bool = True
    spared: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Parcel:
    """One event on its way to a destination.

    `body` is the event as JSON (UTF-8), the same for every destination. `idempotency_key` is the
    event's id, with `:rN` for a person's replay N: it stays the same however often the parcel is
    brought. `sent_at` is the time of this attempt, which is number `attempt`, from 1.
    """

    event_id: int
    replay: int
    attempt: int
    sent_at: int
    source: str
    kind: str | None
    recipient: str | None
    message_id: str | None
    body: bytes

    @property
    def idempotency_key(self) -> str:
        return f"{self.event_id}:r{self.replay}" if self.replay else str(self.event_id)
