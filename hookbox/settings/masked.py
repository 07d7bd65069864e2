"""The settings as they may be shown: defaults filled in, secrets by where they lie."""

import re
from collections.abc import Iterator, Mapping

from hookbox.errors import ConfigError
from hookbox.settings.polling import PollSettings
from hookbox.settings.reading import PRIVATE_DOOR_CLOSED
from hookbox.settings.records import DestinationSettings, Settings, SourceSettings
from hookbox.settings.reference import Reference
from hookbox.settings.units import duration_text, size_text

Shown = tuple[str, str]

SEALED = "in the sealed store"
MASK = "(hidden)"
_TELLING = re.compile(r"(password|secret|token|authorization|api[_-]?key)$", re.IGNORECASE)


def masked(settings: Settings) -> list[Shown]:
    """Each setting in force by its full name, in the order of the file."""
    server, local = settings.server, settings.local
    retention, suppression = settings.retention, settings.suppression
    shown = [
        ("configuration", str(settings.config_path)),
        ("state", str(settings.state)),
        ("server.listen", ", ".join(listen.text for listen in server.listen)),
        ("server.public_url", server.public_url or "not set"),
        ("server.trusted_proxies", ", ".join(map(str, server.trusted_proxies)) or "none"),
        ("server.body_max", size_text(server.body_max)),
        ("local.listen", local.listen.text if local.listen else PRIVATE_DOOR_CLOSED),
        ("retention.bodies", duration_text(retention.bodies_s)),
        ("retention.keys", duration_text(retention.keys_s)),
        ("suppression.transient_budget", str(suppression.transient_budget)),
        ("suppression.transient_window", duration_text(suppression.transient_window_s)),
    ]
    for source in settings.sources:
        shown += _source(source)
    for destination in settings.destinations:
        shown += _destination(destination)
    return shown


def _source(source: SourceSettings) -> Iterator[Shown]:
    name = f"source.{source.name}"
    yield f"{name}.provider", source.provider
    yield f"{name}.secret", str(source.secret or SEALED)
    yield f"{name}.previous_secret", str(source.previous_secret or SEALED)
    if source.tolerance_s is not None:
        yield f"{name}.tolerance", duration_text(source.tolerance_s)
    yield f"{name}.skew", source.skew
    if source.body_max is not None:
        yield f"{name}.body_max", size_text(source.body_max)
    if source.suppress_ambiguous:
        yield f"{name}.suppress_ambiguous", "true"
    if source.scope:
        yield f"{name}.scope", source.scope
    yield from _tree(f"{name}.responses", source.responses)
    yield from _tree(name, source.options)
    if source.poll is not None:
        yield from _poll(f"{name}.poll", source.poll)


def _poll(name: str, poll: PollSettings) -> Iterator[Shown]:
    yield f"{name}.url", poll.url
    yield f"{name}.token", str(poll.token)
    yield f"{name}.every", duration_text(poll.every_s)
    yield f"{name}.drive", poll.drive
    yield f"{name}.scoped", _text(poll.scoped)
    if poll.read is not None:
        yield f"{name}.read", poll.read
    if poll.limit is not None:
        yield f"{name}.limit", str(poll.limit)
    yield from _tree(name, poll.options)


def _destination(destination: DestinationSettings) -> Iterator[Shown]:
    name = f"destination.{destination.name}"
    yield f"{name}.type", destination.type
    for key in ("sources", "kinds", "domains"):
        yield f"{name}.{key}", ", ".join(getattr(destination, key)) or "all"
    if destination.retry_s is not None:
        yield f"{name}.retry", ", ".join(map(duration_text, destination.retry_s))
    if destination.concurrency is not None:
        yield f"{name}.concurrency", str(destination.concurrency)
    yield f"{name}.order", destination.order
    if destination.failures_max is not None:
        yield f"{name}.failures_max", str(destination.failures_max)
    for key in ("secret", "previous_secret"):
        reference = getattr(destination, key)
        if reference is not None:
            yield f"{name}.{key}", str(reference)
    yield from _tree(name, destination.options)


def _tree(name: str, table: Mapping[str, object]) -> Iterator[Shown]:
    """Keys for others to judge; one that sounds secret shows a reference or nothing."""
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _tree(f"{name}.{key}", value)
        elif _TELLING.search(key):
            yield f"{name}.{key}", _reference_or_mask(value)
        else:
            yield f"{name}.{key}", _text(value)


def _reference_or_mask(value: object) -> str:
    try:
        return str(Reference.parse(value))
    except ConfigError:
        return MASK


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ", ".join(map(_text, value)) if isinstance(value, list) else str(value)
