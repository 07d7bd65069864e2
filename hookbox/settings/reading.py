"""From the file to Settings: every fixed key is read, and what cannot be meant is refused."""

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import cast, get_args

from hookbox.errors import ConfigError
from hookbox.settings.destinations import destination, refuse_unknown_sources
from hookbox.settings.doors import Listen, network, public_url
from hookbox.settings.polling import PollSettings, read_poll
from hookbox.settings.records import (
    BODY_MAX_BYTES,
    BODY_MAX_CEILING_BYTES,
    BODY_MAX_FLOOR_BYTES,
    LocalSettings,
    RetentionSettings,
    ServerSettings,
    Settings,
    Skew,
    SourceSettings,
    SuppressionSettings,
)
from hookbox.settings.reference import Reference
from hookbox.settings.tables import Table, count, flag, one_or_many, words
from hookbox.settings.toml_lines import line_of
from hookbox.settings.units import duration, duration_text, size, size_text

CONFIG_MAX_BYTES = 1 << 20  # a thousand sources fit; a database named by mistake does not

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")  # a part of the source's URL
NAME_MEND = "use small letters, digits and -, at most 64, starting with a letter or digit"

PRIVATE_DOOR_CLOSED = "off"


def load(config_path: Path, state: Path) -> Settings:
    """The settings in a file, or a ConfigError with line, reason and mend."""
    try:
        with config_path.open("rb") as file:
            raw = file.read(CONFIG_MAX_BYTES + 1)
    except FileNotFoundError:
        raise ConfigError(
            f"there is no configuration at {config_path}", mend="write one with: hookbox init"
        ) from None
    except OSError as error:
        raise ConfigError(
            f"{config_path} cannot be read: {error.strerror}",
            mend="check who may read it, or name another file with --config",
        ) from None
    if len(raw) > CONFIG_MAX_BYTES:
        raise ConfigError(
            f"{config_path} is larger than {size_text(CONFIG_MAX_BYTES)}",
            mend="check that it is the right file",
        )
    return parse(_decoded(raw), config_path, state)


def parse(text: str, config_path: Path, state: Path) -> Settings:
    """The settings in a text, as `load` reads them."""
    root = Table(values=_toml(text), path=(), text=text)
    settings = Settings(
        config_path=config_path,
        state=state,
        server=_server(root.table("server")),
        local=_local(root.table("local")),
        retention=_retention(root.table("retention")),
        suppression=_suppression(root.table("suppression")),
        sources=tuple(_source(table) for table in _named(root.table("source"))),
        destinations=tuple(destination(table) for table in _named(root.table("destination"))),
        text=text,
    )
    root.done()
    _refuse_shared_doors(root, settings)
    refuse_unknown_sources(root, settings)
    return settings


def _decoded(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigError("is not UTF-8", mend="save the file as UTF-8", line=line) from None


def _toml(text: str) -> dict[str, object]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        reason, _, place = str(error).partition(" (at ")
        line = re.match(r"line (\d+)", place)
        last = text.count("\n") + 1
        raise ConfigError(
            f"this is not TOML: {reason[:1].lower()}{reason[1:]}",
            mend="texts stand in quotes, and each key and table is written once",
            line=int(line[1]) if line else last,
        ) from None
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits, 1,000 lists in lists
        raise ConfigError(
            f"this cannot be read: {error}", mend="nothing here needs such large values"
        ) from None


def _server(table: Table) -> ServerSettings:
    default = ServerSettings()
    server = ServerSettings(
        listen=table.take("listen", one_or_many(Listen.parse), default.listen),
        public_url=table.take("public_url", public_url, None),
        trusted_proxies=table.take("trusted_proxies", one_or_many(network), ()),
        body_max=table.take("body_max", _body_max, BODY_MAX_BYTES),
    )
    table.done()
    return server


def _local(table: Table) -> LocalSettings:
    local = LocalSettings(listen=table.take("listen", _private_listen, LocalSettings().listen))
    table.done()
    return local


def _private_listen(value: object) -> Listen | None:
    if value == PRIVATE_DOOR_CLOSED:
        return None
    listen = Listen.parse(value)
    if not listen.loopback:
        raise ConfigError(
            f"{value!r} can be reached from outside, and this door is for this machine alone",
            mend='use "127.0.0.1:8081", and come from elsewhere through a tunnel',
        )
    return listen


def _retention(table: Table) -> RetentionSettings:
    default = RetentionSettings()
    retention = RetentionSettings(
        bodies_s=table.take("bodies", duration, default.bodies_s),
        keys_s=table.take("keys", duration, default.keys_s),
    )
    table.done()
    bodies, keys = duration_text(retention.bodies_s), duration_text(retention.keys_s)
    if retention.bodies_s > retention.keys_s:
        raise table.error(
            f"bodies are kept longer ({bodies}) than keys ({keys})",
            "bodies",
            mend=f'write keys = "{bodies}" or more, or bodies = "{keys}" or less',
        )
    return retention


def _suppression(table: Table) -> SuppressionSettings:
    default = SuppressionSettings()
    suppression = SuppressionSettings(
        transient_budget=table.take("transient_budget", count, default.transient_budget),
        transient_window_s=table.take("transient_window", duration, default.transient_window_s),
    )
    table.done()
    return suppression


def _named(table: Table) -> Iterator[Table]:
    """The tables of `[source.NAME]` or `[destination.NAME]`, in the order of the file."""
    for name in list(table.values):
        if not NAME.fullmatch(name):
            raise table.error(f"{name!r} cannot be a name", name, mend=NAME_MEND)
        yield table.table(name)


def _source(table: Table) -> SourceSettings:
    return SourceSettings(
        name=table.path[-1],
        line=table.line,
        provider=table.need(
            "provider", words, mend='add a line like provider = "standardwebhooks"'
        ),
        secret=table.take("secret", Reference.parse, None),
        previous_secret=table.take("previous_secret", Reference.parse, None),
        tolerance_s=table.take("tolerance", duration, None),
        skew=table.take("skew", _skew, "enforce"),
        body_max=table.take("body_max", _body_max, None),
        suppress_ambiguous=table.take("suppress_ambiguous", flag, False),
        scope=table.take("scope", words, ""),
        responses=_responses(table.table("responses")),
        poll=_poll(table),
        options=dict(table.values),
    )


def _skew(value: object) -> Skew:
    if value not in get_args(Skew):
        raise ConfigError(f"{value!r} is not a rule for skew", mend='write "enforce" or "observe"')
    return cast(Skew, value)


def _body_max(value: object) -> int:
    found = size(value)
    if not BODY_MAX_FLOOR_BYTES <= found <= BODY_MAX_CEILING_BYTES:
        least, most = size_text(BODY_MAX_FLOOR_BYTES), size_text(BODY_MAX_CEILING_BYTES)
        raise ConfigError(f"{value!r} is out of range", mend=f"use {least} to {most}")
    return found


def _responses(table: Table) -> Mapping[str, int]:
    """The statuses that a source's own `responses` table overrides."""
    found = {key: table.take(key, read, None) for key, read in _STATUSES.items()}
    table.done()
    return {key: status for key, status in found.items() if status is not None}


def _status(fits: Callable[[int], bool], what: str) -> Callable[[object], int]:
    def read(value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not fits(value):
            raise ConfigError(f"{value!r} cannot be the answer here", mend=f"use {what}")
        return value

    return read


def _turns_away(status: int) -> bool:
    """No redirect, which few senders follow; no 410, which makes some end the subscription."""
    return 400 <= status < 600 and status != 410


_STATUSES = {
    "ok": _status(lambda status: 200 <= status < 300, "200 to 299"),
    "refused": _status(_turns_away, "400 to 599, and never 410"),
    "unreadable": _status(
        lambda status: 200 <= status < 300 or _turns_away(status), "2xx, 4xx or 5xx, and never 410"
    ),
    "busy": _status(
        lambda status: status == 429 or 500 <= status < 600,
        "429 or 500 to 599, so that the sender comes back",
    ),
}


def _poll(table: Table) -> PollSettings | None:
    written = "poll" in table.values
    poll = table.table("poll")
    return read_poll(poll) if written else None


def _refuse_shared_doors(root: Table, settings: Settings) -> None:
    """Two doors at one address: the second could not be opened."""
    public, private = settings.server.listen, settings.local.listen
    for place, listen in enumerate(public):
        if any(listen.overlaps(other) for other in public[:place]):
            raise root.error(
                f"{listen.text} is named twice", "server", "listen", mend="name it once"
            )
        if private and listen.overlaps(private):
            written = line_of(settings.text, ("local",)) is not None
            raise root.error(
                f"the private door is at {private.text}, and {listen.text} takes that too",
                "local" if written else "server",
                "listen",
                mend="give each door its own port",
            )
