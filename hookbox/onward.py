"""Onward: destinations as they are configured become outlets, and those that sign get their keys.

`hookbox check`, `hookbox serve` and a reload all come through here, as sources come through
assembly.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from hookbox import bounds
from hookbox.destinations import DESTINATIONS
from hookbox.destinations.contract import DestinationType, Outfit, Reading
from hookbox.errors import ConfigError
from hookbox.flows.forward import FAILURES_MAX, SCHEDULE_S, Outlet
from hookbox.flows.routes import Route
from hookbox.model import Slot
from hookbox.net import Way
from hookbox.providers.secret_text import made_whsec, whsec_only
from hookbox.rules.folding import folded
from hookbox.settings import DestinationSettings, Settings, duration, placed, size, suggestion
from hookbox.settings.doors import network
from hookbox.settings.tables import count, one_or_many, words
from hookbox.store import secrets
from hookbox.store.connections import Transaction
from hookbox.store.secrets import Seal, destination_owner

# Opened secrets of the sealed store: destination name -> slot -> text.
Sealed = Mapping[str, Mapping[Slot, str]]
Options = Mapping[str, Any]

COUNT_MAX = 1_000  # files that are kept: each is looked for when one is turned over


def outlets(
    settings: Settings, sealed: Sealed, previous: Mapping[str, Outlet]
) -> dict[str, Outlet]:
    """Every configured destination, ready to be brought parcels. One that has not changed is the
    previous one, still live; the others hold nothing yet.

    Raises ConfigError with the line, the reason and the mend.
    """
    found: dict[str, Outlet] = {}
    owned: dict[Path, str] = {}
    for chosen in settings.destinations:
        try:
            bounds.check_name(chosen.name)
            kind = _type_of(chosen)
            options = _options(kind, chosen)
            bounds.stay_outside(settings, kind, options)
            bounds.claim(kind, chosen.name, options, owned)
            keys = tuple(_keys(kind, chosen, sealed.get(chosen.name, {})))
            mark, outlet = _fingerprint(chosen, keys), previous.get(chosen.name)
            if outlet is None or outlet.fingerprint != mark:
                outlet = _outlet(settings, kind, chosen, options, keys, mark)
        except ConfigError as error:
            table = ("destination", chosen.name)
            raise placed(error, settings.text, table, chosen.line) from error
        found[chosen.name] = outlet
    return found


def routes(settings: Settings) -> list[Route]:
    """What the configured destinations want, for those who bring them nothing."""
    return [_route(chosen) for chosen in settings.destinations]


def warnings(settings: Settings) -> set[str]:
    """What a person should know about destinations that can be used as they are configured."""
    told = set()
    for chosen in settings.destinations:
        kind = _type_of(chosen)
        doubts = kind.doubts(_options(kind, chosen))
        told |= {f"destination {chosen.name}: {doubt}" for doubt in doubts}
    return told


def _outlet(
    settings: Settings,
    kind: DestinationType,
    chosen: DestinationSettings,
    options: Options,
    keys: tuple[bytes, ...],
    fingerprint: str,
) -> Outlet:
    way = partial(Way, networks=options.get("networks", ())) if kind.needs_net else None
    box = {"HOOKBOX_CONFIG": str(settings.config_path), "HOOKBOX_STATE": str(settings.state)}
    outfit = Outfit(name=chosen.name, options=options, keys=keys, way=way, box=box)
    retry_s = SCHEDULE_S if chosen.retry_s is None else tuple(map(float, chosen.retry_s))
    return Outlet(
        name=chosen.name,
        route=_route(chosen),
        destination=kind.open(outfit),
        schedule_s=retry_s,
        concurrency=chosen.concurrency or kind.concurrency,
        failures_max=chosen.failures_max or FAILURES_MAX,
        fingerprint=fingerprint,
    )


def _fingerprint(chosen: DestinationSettings, keys: tuple[bytes, ...]) -> str:
    """Tells one configuration of a destination from another, wherever in the file it stands."""
    marks = [hashlib.sha256(key).hexdigest() for key in keys]
    return hashlib.sha256(repr((replace(chosen, line=0), marks)).encode()).hexdigest()


def _route(chosen: DestinationSettings) -> Route:
    return Route(
        destination=chosen.name,
        sources=frozenset(chosen.sources),
        kinds=frozenset(chosen.kinds),
        domains=frozenset(folded(f"@{domain}")[1:] for domain in chosen.domains),
        order=chosen.order,
    )


def _type_of(chosen: DestinationSettings) -> DestinationType:
    kind = DESTINATIONS.get(chosen.type)
    if kind is None:
        raise ConfigError(
            f"no type of destination is called {chosen.type!r}",
            where="type",
            mend=suggestion(chosen.type, DESTINATIONS),
        )
    return kind


# --- options


def _path(value: object) -> Path:
    path = Path(words(value))
    if not path.is_absolute() or "\0" in str(path) or path.name in ("", ".."):
        raise ConfigError(f"{value!r} is not a full path", mend='write it like "/var/log/x.jsonl"')
    return path


def _count(value: object) -> int:
    found = count(value)
    if found > COUNT_MAX:
        raise ConfigError(f"{value!r} is out of range", mend=f"use at most {COUNT_MAX}")
    return found


READERS: Mapping[Reading, Callable[[object], Any]] = {
    Reading.TEXT: words,
    Reading.URL: words,
    Reading.TEXTS: one_or_many(words),
    Reading.DURATION: duration,
    Reading.SIZE: size,
    Reading.COUNT: _count,
    Reading.NETWORKS: one_or_many(network),
    Reading.PATH: _path,
}


def _options(kind: DestinationType, chosen: DestinationSettings) -> Options:
    """The options that the table holds, read."""
    for name in chosen.options:
        if name not in kind.options:
            raise ConfigError(
                f"a destination of type {kind.name} has no such setting",
                where=name,
                mend=suggestion(name, kind.options),
            )
    for name in sorted(kind.required - chosen.options.keys()):
        raise ConfigError(
            f"`{name}` is missing", mend=f"a destination of type {kind.name} needs one"
        )
    return {name: _read(kind.options[name], name, value) for name, value in chosen.options.items()}


def _read(reading: Reading, name: str, value: object) -> Any:
    try:
        return READERS[reading](value)
    except ConfigError as error:
        raise error.at(name) from None


# --- keys


def _keys(
    kind: DestinationType, chosen: DestinationSettings, sealed: Mapping[Slot, str]
) -> Iterator[bytes]:
    """What it signs with, the current key first."""
    slots = (
        (Slot.CURRENT, "secret", chosen.secret),
        (Slot.PREVIOUS, "previous_secret", chosen.previous_secret),
    )
    for slot, setting, reference in slots:
        try:
            if kind.needs_secret:
                text = reference.read() if reference is not None else sealed.get(slot)
                if text is not None:
                    yield key_of(text)
            elif reference is not None:
                raise ConfigError(f"the type {kind.name} signs nothing", mend="remove the line")
        except ConfigError as error:
            raise error.at(setting) from None


def key_of(text: str) -> bytes:
    """The key in a secret's text. Raises ConfigError."""
    try:
        return whsec_only(text)
    except ConfigError as error:
        mend = "it is whsec_ and the base64 of 32 random bytes; without one, the box makes one"
        raise ConfigError(error.message, mend=mend) from None


def open_secrets(transaction: Transaction, seal: Seal, settings: Settings) -> Sealed:
    """The sealed store's secrets of the configured destinations, opened."""
    return {
        each.name: secrets.opened(transaction, seal, destination_owner(each.name))
        for each in settings.destinations
    }


def lacking(settings: Settings, sealed: Mapping[str, Iterable[Slot]]) -> list[str]:
    """The destinations that sign and have nothing to sign with."""
    return [
        each.name
        for each in settings.destinations
        if each.secret is None
        and each.type in DESTINATIONS
        and DESTINATIONS[each.type].needs_secret
        and Slot.CURRENT not in sealed.get(each.name, ())
    ]


def ensure_secrets(transaction: Transaction, seal: Seal, settings: Settings, now: int) -> None:
    """Make and seal a secret for each destination that needs one and has none."""
    sealed = {
        each.name: secrets.of_owner(transaction, destination_owner(each.name))
        for each in settings.destinations
    }
    for name in lacking(settings, sealed):
        sealed_text = seal.close(made_whsec())
        secrets.put(transaction, destination_owner(name), Slot.CURRENT, sealed_text, now)


def with_made(settings: Settings, sealed: Sealed) -> Sealed:
    """The secrets as they will be once those that are lacking were made."""
    made = {name: {Slot.CURRENT: made_whsec()} for name in lacking(settings, sealed)}
    return {**sealed, **made}
