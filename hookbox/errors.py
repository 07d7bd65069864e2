"""Every error hookbox raises.

    HookboxError
    ├── ConfigError         the configuration cannot be used (exit 78)
    ├── Refused             a delivery that nobody vouches for, or too old
    ├── Unintelligible      authentic, but cannot be read as events: goes to quarantine
    ├── Overloaded          more waits than the box can commit in time: come back
    ├── CannotVerify        what the proof needs cannot be had right now: come back
    ├── NetError            an outbound request came to nothing
    │   ├── AnswerTooLarge  more came back than is taken
    │   └── AddressRefused  it would have gone where the box must not go
    ├── StoreError          the database cannot take or give what was asked
    │   ├── StoreBusy       somebody else holds the write lock
    │   ├── StoreFull       no space left for a commit
    │   ├── StoreRejected   a row breaks the schema's rules: a mistake of ours
    │   └── StoreDamaged    the file is not, or no longer, a sound hookbox database
    ├── FeedError           the poller's upstream said no
    │   ├── CursorExpired   the events after the cursor are gone; never use that cursor again
    │   ├── CursorInvalid   the upstream cannot read the cursor; stop and keep it
    │   ├── FeedDenied      the credential was refused
    │   └── FeedThrottled   come back later, with the upstream's own delay where it gave one
    └── OperatorError       a command cannot be done as asked

Expected outcomes (a duplicate, a conflict, a failed attempt) are values, not errors. Every message
says what happened, to what, and what to do next. It exists apart from the rooms so that all floors
can import it without a loop.
"""

from enum import StrEnum


class HookboxError(Exception):
    """Something hookbox can name went wrong."""


class ConfigError(HookboxError):
    """The configuration cannot be used.

    `where` names the setting (`source.agent.tolerance`), `mend` what to write instead, `line` the
    line in the file where it is known. Shown whole; ends the program with exit code 78.
    """

    def __init__(
        self, message: str, *, where: str = "", mend: str = "", line: int | None = None
    ) -> None:
        super().__init__(message)
        self.message, self.where, self.mend, self.line = message, where, mend, line

    def at(self, where: str) -> "ConfigError":
        """The same, from somebody who knows which setting it is about."""
        return ConfigError(self.message, where=where, mend=self.mend, line=self.line)

    def __str__(self) -> str:
        place = f"line {self.line}: " if self.line else ""
        name = f"{self.where}: " if self.where else ""
        mend = f"\n  {self.mend}" if self.mend else ""
        return f"{place}{name}{self.message}{mend}"


class Reason(StrEnum):
    """Why a delivery was refused. Counted per source and shown by `hookbox refusals`, never told to
    the sender.
    """

    SIGNATURE_MISSING = "signature_missing"
    SIGNATURE_WRONG = "signature_wrong"
    HEADER_AMBIGUOUS = "header_ambiguous"  # sent twice: two readers could read two values
    HEADER_MALFORMED = "header_malformed"
    TIMESTAMP_MISSING = "timestamp_missing"
    TIMESTAMP_MALFORMED = "timestamp_malformed"
    STALE = "stale"  # rightly signed, too old
    FUTURE = "future"  # rightly signed, too far ahead
    CREDENTIALS_WRONG = "credentials_wrong"
    CREDENTIALS_MISSING = "credentials_missing"
    ADDRESS_NOT_LISTED = "address_not_listed"
    TOPIC_NOT_LISTED = "topic_not_listed"
    CERTIFICATE_REFUSED = "certificate_refused"
    CERTIFICATE_UNAVAILABLE = "certificate_unavailable"  # ours to fix; the sender comes back
    CONFIRMATION_REFUSED = "confirmation_refused"  # a subscription that leads somewhere else
    SIGNATURE_VERSION = "signature_version"  # signed in a way that this source does not take
    RAW_DELIVERY = "raw_delivery"
    TOKEN_REUSED = "token_reused"
    ENVELOPE_MALFORMED = "envelope_malformed"  # what must be read before trust cannot be read
    ID_MISSING = "id_missing"
    ID_MALFORMED = "id_malformed"
    ENCODING_UNSUPPORTED = "encoding_unsupported"
    TOO_LARGE = "too_large"
    NO_SECRET = "no_secret"


class Refused(HookboxError):
    """A delivery that is not vouched for.

    `authentic`: the signature was right and only the time is off; then the fault may be our own
    clock's. `skew_s`: our time minus the signed time in seconds, where a time was signed.
    """

    def __init__(
        self, reason: Reason, *, skew_s: float | None = None, authentic: bool = False
    ) -> None:
        super().__init__(reason.value)
        self.reason, self.skew_s, self.authentic = reason, skew_s, authentic


class Unintelligible(HookboxError):
    """Authentic, but not readable as events. `key`: the identity, where a header signs one."""

    def __init__(self, reason: str, *, key: str = "") -> None:
        super().__init__(reason)
        self.reason, self.key = reason, key


class Overloaded(HookboxError):
    """More deliveries wait than can be committed in time; the sender should come back soon."""


class CannotVerify(HookboxError):
    """What proves a sender (its certificate) cannot be had right now. Nobody is refused for it."""


class NetError(HookboxError):
    """An outbound request got no answer that can be used."""


class AnswerTooLarge(NetError):
    """The answer to an outbound request is larger than whoever asked takes."""


class AddressRefused(NetError):
    """A URL, or an address it leads to, that the box must not go to. Nothing was sent."""


class StoreError(HookboxError):
    """The database cannot do what was asked."""


class StoreBusy(StoreError):
    """Another program holds the database's write lock. `hookbox doctor` names it; the box goes on
    by itself.
    """


class StoreFull(StoreError):
    """No space left on the disk that holds the database. Free some; the box goes on by itself."""


class StoreRejected(StoreError):
    """A row breaks the schema's rules. A mistake of ours; whoever sent it is not to blame."""


class StoreDamaged(StoreError):
    """The file is not a sound hookbox database. Keep it, and restore a backup with `hookbox restore
    FILE`.
    """


class FeedError(HookboxError):
    """The sender's event stream could not be read."""


class CursorExpired(FeedError):
    """The events after the saved cursor are no longer kept upstream."""


class CursorInvalid(FeedError):
    """The upstream cannot read the saved cursor."""


class FeedDenied(FeedError):
    """The upstream refused the credential."""


class FeedThrottled(FeedError):
    """The upstream asks for a pause. `retry_after_s` is its own delay, where it gave one."""

    def __init__(self, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class OperatorError(HookboxError):
    """A command cannot be done as asked. The message says why, and what to do instead."""
