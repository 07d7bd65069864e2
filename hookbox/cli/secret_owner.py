"""Whose secret a command is about: a source's, that its sender signs with, or a destination's,
that hookbox signs with.
"""

from collections.abc import Callable
from dataclasses import dataclass

from hookbox.cli.box import chosen, chosen_destination
from hookbox.errors import OperatorError
from hookbox.providers.contract import Provider
from hookbox.settings import DestinationSettings, Reference, Settings
from hookbox.store import secrets


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """An owner of secrets. `reference`: where its secret lies, if not in the sealed store.

    `check` raises ConfigError for a text that is no secret for it, `make` OperatorError where
    somebody else makes it.
    """

    name: str
    title: str
    reference: Reference | None
    check: Callable[[str], object]
    make: Callable[[], str]


def kept_as(name: str, *, destination: bool) -> str:
    """Under which name the sealed store keeps its secrets."""
    return secrets.destination_owner(name) if destination else secrets.source_owner(name)


def owner_of(settings: Settings, name: str, *, destination: bool) -> Owner:
    """The owner of that name. Raises OperatorError when there is none that has a secret."""
    destinations = {each.name for each in settings.destinations}
    if not destination and name in destinations - {each.name for each in settings.sources}:
        raise OperatorError(f"{name} is a destination; add --destination")
    return _destination(settings, name) if destination else _source(settings, name)


def _source(settings: Settings, name: str) -> Owner:
    from hookbox.assembly import configured

    source = chosen(settings, name)
    provider = configured(source, settings.server.public_url)
    return Owner(
        name=name,
        title=f"source {name}",
        reference=source.secret,
        check=provider.read_secret,
        make=lambda: _made(provider),
    )


def _made(provider: Provider) -> str:
    if provider.make_secret is None:
        raise OperatorError(f"{provider.title} makes the secret; copy it from there")
    return provider.make_secret()


def _destination(settings: Settings, name: str) -> Owner:
    from hookbox.onward import key_of
    from hookbox.providers.secret_text import made_whsec

    destination = signing(settings, name)
    return Owner(
        name=name,
        title=f"destination {name}",
        reference=destination.secret,
        check=key_of,
        make=made_whsec,
    )


def signing(settings: Settings, name: str) -> DestinationSettings:
    """The destination of that name, which must be one that signs. Raises OperatorError."""
    from hookbox.destinations import DESTINATIONS

    found = chosen_destination(settings, name)
    kind = DESTINATIONS.get(found.type)
    if kind is None or not kind.needs_secret:
        raise OperatorError(f"destination {name} is of type {found.type}, which signs nothing")
    return found
