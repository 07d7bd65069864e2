"""`hookbox suppressions`: the addresses that must not be mailed, and a person's word about them."""

import click

from hookbox.cli.nouns import Noun
from hookbox.cli.suppression_check import check


@click.group(cls=Noun)
def command() -> None:
    """Addresses that must not be mailed: ask, list, exchange, add, lift.

    \b
    hookbox suppressions check someone@example.com
    """


command.add_command(check)
