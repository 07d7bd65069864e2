"""`hookbox check`: the configuration as it would run, read by the very code that runs it."""

import click

from hookbox import assembly
from hookbox.cli import terminal
from hookbox.cli.box import Box, pass_box
from hookbox.flows.sources import Source
from hookbox.settings import Settings, masked
from hookbox.store import database, secrets


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
    terminal.facts(masked(settings))
    for warning in sorted(assembly.warnings(settings, sources.values())):
        terminal.say(warning)
    count = len(sources)
    click.echo(f"\nthis configuration can be used: {count} source{'' if count == 1 else 's'}")


def live_sources(settings: Settings) -> dict[str, Source]:
    """The sources as `serve` would run them, sealed secrets included. Raises ConfigError."""
    return assembly.live_sources(settings, {}, _sealed(settings))


def _sealed(settings: Settings) -> assembly.Sealed:
    if not (settings.state / database.FILE_NAME).exists():
        return {}
    with database.reading(settings.state) as transaction:
        if not secrets.any_sealed(transaction):
            return {}
        seal = secrets.load_seal(settings.state)
        return assembly.open_secrets(transaction, seal, assembly.providers_of(settings))
