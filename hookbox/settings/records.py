"""What the configuration says, read and checked. Secrets are not in it, only where they lie."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from hookbox.model import Kind, Order
from hookbox.settings.doors import Listen, Network
from hookbox.settings.polling import PollSettings
from hookbox.settings.reference import Reference

DAY_S = 86_400

PUBLIC_DOOR = Listen(host="127.0.0.1", port=8080)
PRIVATE_DOOR = Listen(host="127.0.0.1", port=8081)

# Events are a few KB, or some 500 KB for a batch of 1,000. Inbound mail brings its attachments:
# 25 to 50 MB, a third more in base64; and a body is held in memory whole.
BODY_MAX_BYTES = 1 << 20
BODY_MAX_CEILING_BYTES = 100 << 20
BODY_MAX_FLOOR_BYTES = 1 << 10

Skew = Literal["enforce", "observe"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """The public door. `trusted_proxies` are believed when they say whom they speak for."""

    listen: tuple[Listen, ...] = (PUBLIC_DOOR,)
    public_url: str | None = None
    trusted_proxies: tuple[Network, ...] = ()
    body_max: int = BODY_MAX_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalSettings:
    """The private door. Without `listen` only the Unix socket in the state directory is open."""

    listen: Listen | None = PRIVATE_DOOR


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionSettings:
    """How long content is kept, and how long an event's identity is known."""

    bodies_s: int = 30 * DAY_S
    keys_s: int = 90 * DAY_S


@dataclass(frozen=True, slots=True, kw_only=True)
class SuppressionSettings:
    """How many messages may end in a soft bounce before the address is suppressed."""

    transient_budget: int = 5
    transient_window_s: int = 30 * DAY_S


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSettings:
    """One `[source.NAME]`. `options` are the keys that belong to its provider, as TOML values.

    Without `secret` or `previous_secret` the sealed store's slot of that name is used. None in
    `tolerance_s` and `body_max` leaves the choice to the provider and to `[server]`. `responses`
    holds only what the file says.
    """

    name: str
    provider: str
    secret: Reference | None = None
    previous_secret: Reference | None = None
    tolerance_s: int | None = None
    skew: Skew = "enforce"
    body_max: int | None = None
    suppress_ambiguous: bool = False
    scope: str = ""
    responses: Mapping[str, int] = field(default_factory=dict)
    options: Mapping[str, object] = field(default_factory=dict)
    poll: PollSettings | None = None
    line: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DestinationSettings:
    """One `[destination.NAME]`. `options` are the keys that belong to its type, as TOML values.

    An empty filter (`sources`, `kinds`, `domains`) wants everything. None leaves the choice to the
    type, or to the outbox. Secrets are the sealed store's as those of a source.
    """

    name: str
    type: str
    sources: tuple[str, ...] = ()
    kinds: tuple[Kind, ...] = ()
    domains: tuple[str, ...] = ()
    retry_s: tuple[int, ...] | None = None
    concurrency: int | None = None
    order: Order = Order.NONE
    failures_max: int | None = None
    secret: Reference | None = None
    previous_secret: Reference | None = None
    options: Mapping[str, object] = field(default_factory=dict)
    line: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The whole configuration. `text` is the file as it was read, for finding lines in it."""

    config_path: Path
    state: Path
    server: ServerSettings = ServerSettings()
    local: LocalSettings = LocalSettings()
    retention: RetentionSettings = RetentionSettings()
    suppression: SuppressionSettings = SuppressionSettings()
    sources: tuple[SourceSettings, ...] = ()
    destinations: tuple[DestinationSettings, ...] = ()
    text: str = field(default="", repr=False)
