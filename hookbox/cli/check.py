"""`hookbox check`: the configuration as it would run, read by the very code that runs it."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import click

from hookbox import assembly, onward
from hookbox.cli import terminal
from hookbox.cli.box import Box, pass_box
from hookbox.flows.sources import Source
from hookbox.model import Slot
from hookbox.settings import Settings, masked
from hookbox.store import database, secrets
from hookbox.store.connections import Transaction
from hookbox.store.secrets import Seal

Opened = Mapping[str, Mapping[Slot, str]]


@click.command()
@pass_box
def command(box: Box) -> None:
    """Check the configuration and show what is in force, secrets masked.

    Ends with 78 and names the line, the reason and the mend when it cannot be used.

    \b
    hookbox check
    hookbox --config ./hookbox.toml check
    """
    settings = box.settings()
    sources = live_sources(settings)
    outlets = onward.outlets(settings, onward.with_made(settings, sealed_onward(settings)), {})
    terminal.facts(masked(settings))
    for warning in sorted(assembly.warnings(settings, sources.values())):
        terminal.say(warning)
    told = f"{_counted(len(sources), 'source')}, {_counted(len(outlets), 'destination')}"
    click.echo(f"\nthis configuration can be used: {told}")


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def live_sources(settings: Settings) -> dict[str, Source]:
    """The sources as `serve` would run them, sealed secrets included. Raises ConfigError."""
    return assembly.live_sources(settings, {}, _sealed(settings))


def _sealed(settings: Settings) -> assembly.Sealed:
    def opened(transaction: Transaction, seal: Seal) -> assembly.Sealed:
        return assembly.open_secrets(transaction, seal, assembly.providers_of(settings))

    return _looked_up(settings.state, opened)


def sealed_onward(settings: Settings) -> onward.Sealed:
    """The destinations' secrets that are there already."""
    return _looked_up(settings.state, partial(onward.open_secrets, settings=settings))


def _looked_up(state: Path, opened: Callable[[Transaction, Seal], Opened]) -> Opened:
    """What the sealed store holds; without making it, nor its key."""
    if not (state / database.FILE_NAME).exists():
        return {}
    with database.reading(state) as transaction:
        if not secrets.any_sealed(transaction):
            return {}
        return opened(transaction, secrets.load_seal(state))
