"""Bounds: where a destination must not lead, and what it must not be called.

What leads back into the box is refused when the configuration is read: an event that comes in again
goes out again, for ever, and lines of JSON in the midst of the database would be its end.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hookbox.destinations.contract import DestinationType, Reading
from hookbox.errors import AddressRefused, ConfigError
from hookbox.rules.reach import Target, literal, parsed
from hookbox.settings import Listen, Settings
from hookbox.store.reprocess import APPLY_ONLY

EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104  (recognised here, bound where a person asks)

Options = Mapping[str, Any]


def check_name(name: str) -> None:
    """Raises ConfigError for a word that means something else."""
    if name == APPLY_ONLY:
        raise ConfigError(
            f"{name!r} cannot be the name of a destination",
            mend=f"choose another; `replay --to {name}` brings an event nowhere",
        )


def stay_outside(settings: Settings, kind: DestinationType, options: Options) -> None:
    """Raises ConfigError for what leads back into the box."""
    for name, reading in kind.options.items():
        if reading is Reading.URL and is_own_door(settings, options[name]):
            raise ConfigError(
                "this is a door of this box itself",
                where=name,
                mend="write where the program listens that is to have the events",
            )
    state = settings.state.resolve()
    for name, path in kind.files(options):
        if state in path.resolve().parents:
            raise ConfigError(
                "this lies in the box's own state directory",
                where=name,
                mend="choose another directory",
            )


def claim(kind: DestinationType, name: str, options: Options, owned: dict[Path, str]) -> None:
    """Two destinations in one place would undo each other's work. Raises ConfigError."""
    for option, path in kind.files(options):
        place = path.resolve()
        if owned.setdefault(place, name) != name:
            raise ConfigError(
                f"destination {owned[place]} has the same: it writes {path}, too",
                where=option,
                mend="choose another",
            )


def is_own_door(settings: Settings, url: str) -> bool:
    """Whether whoever goes there comes here, as far as the configuration shows it."""
    try:
        target = parsed(url)
    except AddressRefused:  # for others to refuse
        return False
    public = settings.server.public_url
    if public is not None and url.startswith(f"{public}/hooks/"):
        return True
    private = settings.local.listen
    doors = (*settings.server.listen, *((private,) if private else ()))
    return any(_answers(door, target) for door in doors)


def _answers(door: Listen, target: Target) -> bool:
    if door.path is not None or door.port != target.port:
        return False
    if door.host == target.host:
        return True
    called_here = target.host == "localhost" or any(
        each.is_loopback for each in literal(target.host)
    )
    by_name = door.loopback and "localhost" in (door.host, target.host)
    return called_here and (door.host in EVERYWHERE or by_name)
