"""Floor 5, door: the `hookbox` command.

One file for each noun, imported when its command is asked for. Commands that only look read the
database themselves; commands that change something go through `door.change`. Nothing here imports
the web door or any of its libraries: `hookbox.__main__` brings the two together.
"""

import importlib
import sys

import click

from hookbox import __version__
from hookbox.cli.box import Box, Serve
from hookbox.cli.failures import told
from hookbox.settings import places

# In the order of the help; each is a module of this package with a `command`.
COMMANDS = {
    "serve": "Receive webhooks until stopped",
    "init": "Write a first configuration",
    "check": "Check the configuration and show what is in force",
    "source": "The senders: list, show, add, test-certificate",
    "secret": "Signing secrets: set, rotate, drop, list, reveal",
    "simulate": "Send the box a correctly signed event and follow it",
    "probe": "Find out what a sender does when it is told to come back",
    "events": "What came in: list, show, tail, replay, forget",
    "outbox": "What is still to be done about events: retry, cancel, pause",
    "quarantine": "What was set aside: look, accept, discard",
    "recipients": "How far each message got, and the story of one address",
    "suppressions": "Who must not be mailed: check, list, import, add, lift",
    "poll": "Ask a sender for what its webhooks did not bring",
    "refusals": "Who was turned away, and why",
    "stats": "Each source in one line, outages, and how far lists are read",
    "purge": "Let go now of what was kept for long enough",
    "rebuild": "Work statuses and suppressions out anew from what is stored",
    "once": "Run a command whose effect must not happen twice",
    "backup": "Put the database into one file, with the server running or not",
    "restore": "Put a backup in the place of the database",
    "token": "What programs show at the private port",
}


class Root(click.Group):
    """Imports a command's module when it is needed, and turns its errors into sentences."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"hookbox.cli.{cmd_name}")
        found: click.Command = module.command
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))  # told without importing them all

    def invoke(self, ctx: click.Context) -> object:
        with told():
            return super().invoke(ctx)


@click.command(cls=Root, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--config", metavar="FILE", help="The configuration file  [env: HOOKBOX_CONFIG]")
@click.option("--state", metavar="DIR", help="The state directory  [env: HOOKBOX_STATE]")
@click.version_option(__version__, prog_name="hookbox")
@click.pass_context
def root(ctx: click.Context, config: str | None, state: str | None) -> None:
    """Receives email-event webhooks and never loses, repeats or misreads one.

    Start with `hookbox serve`: without a configuration it writes one and says what to type next.

    \b
    Exit codes: 0 done, 1 failed or not found, 2 wrong usage, 3 do not mail
    (suppressions check), 75 try again (in use), 78 the configuration cannot be used.
    """
    given = {"--config": config, "--state": state}
    options = tuple(part for name, text in given.items() if text for part in (name, text))
    config_path, state_path = places(config, state)
    ctx.obj = Box(config=config_path, state=state_path, serve=ctx.obj, options=options)


def main(serve: Serve) -> None:
    """Run the command that was typed. `serve` opens the doors; `hookbox serve` calls it."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # an old locale is no reason to stop
    root.main(prog_name="hookbox", obj=serve)
