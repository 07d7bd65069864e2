"""`hookbox init`: the first configuration, with a source to try."""

import click

from hookbox.cli.box import Box, chosen, pass_box
from hookbox.model import Slot
from hookbox.settings import DEMO_CONFIG, parse, write_config

DEMO = "demo"


@click.command()
@pass_box
def command(box: Box) -> None:
    """Write a commented configuration with a `demo` source. One that exists is left alone.

    \b
    hookbox init
    hookbox --config ./hookbox.toml init
    """
    write_first(box)
    click.echo(f"configuration written to {box.config}")
    click.echo(f"next: {box.hint('serve')}")


def write_first(box: Box) -> None:
    """The configuration and, before it, its demo source's secret: a kill in between leaves a secret
    that nobody uses, where the other way round would leave a source that nobody can use.
    """
    if not box.config.exists():
        _make_secret(box)
    write_config(box.config, DEMO_CONFIG)


def _make_secret(box: Box) -> None:
    """A secret for the demo source, unless an earlier one is still in the sealed store."""
    from hookbox.providers import PROVIDERS
    from hookbox.store import database, secrets
    from hookbox.store.connections import Transaction
    from hookbox.store.state import prepare_state

    demo = chosen(parse(DEMO_CONFIG, box.config, box.state), DEMO)
    make = PROVIDERS[demo.provider].make_secret
    assert make is not None, "the demo's provider takes any secret"
    text = make()
    owner = secrets.source_owner(DEMO)
    prepare_state(box.state)

    def keep(transaction: Transaction) -> None:
        if Slot.CURRENT not in secrets.of_owner(transaction, owner):
            sealed = secrets.load_seal(box.state).close(text)
            secrets.put(transaction, owner, Slot.CURRENT, sealed, box.clock.now())

    with database.exclusive(box.state) as run:
        run(keep)
