"""`hookbox token`: what programs show at the private port."""

import click

from hookbox.cli import door
from hookbox.cli.box import Box, pass_box
from hookbox.store import bearer
from hookbox.store.connections import Transaction


@click.command()
@click.option("--new", is_flag=True, help="Make another; the old one is worth nothing from now on.")
@pass_box
def command(box: Box, new: bool) -> None:
    """The bearer token for questions through the private port.

    \b
    curl -H "Authorization: Bearer $(hookbox token)" \\
      "http://127.0.0.1:8081/v1/can-send?to=someone@example.com"
    """
    if new:

        def renew(_: Transaction) -> door.Fields:
            return {"token": bearer.renew(box.state)}

        click.echo(door.change(box, "token.renew", {}, renew)["token"])
        return
    click.echo(bearer.read(box.state))
