"""`hookbox serve`: receive until stopped."""

import click

from hookbox.cli.box import Box, pass_box
from hookbox.cli.init import DEMO, write_first
from hookbox.cli.source import url


@click.command()
@pass_box
@click.pass_context
def command(ctx: click.Context, box: Box) -> None:
    """Receive webhooks until stopped.

    Where there is no configuration, one with a `demo` source to try is written first. SIGHUP reads
    the configuration again; SIGTERM stops and loses nothing.

    \b
    hookbox serve
    hookbox --config ./hookbox.toml --state ./state serve
    """
    if not box.config.exists():
        write_first(box)
        click.echo(f"configuration  {box.config}  (new)")
        click.echo(f"state          {box.state}")
        click.echo(f"source         {DEMO}, at {url(box.settings(), DEMO)}")
        click.echo("In a second terminal, send it a correctly signed event:\n")
        click.echo(f"    {box.hint(f'simulate {DEMO} bounced --to someone@example.com')}\n")
    ctx.exit(box.serve(box.settings(), box.settings))
