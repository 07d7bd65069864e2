"""`hookbox secret`: what senders sign with, kept sealed, with room for the old one beside the new.

A secret is typed without echo or piped in. It is never an argument, which every user of the machine
could read in the list of programs, and which the shell keeps in its history.
"""

import sys

import click

from hookbox.cli import door, options, terminal
from hookbox.cli.box import Box, chosen, pass_box
from hookbox.cli.nouns import Noun
from hookbox.cli.terminal import Column
from hookbox.errors import ConfigError, OperatorError
from hookbox.model import Slot
from hookbox.providers.contract import Provider
from hookbox.rules.signatures import is_private_key
from hookbox.settings import SourceSettings
from hookbox.store import secrets
from hookbox.store.connections import Transaction

SECRET_MAX_BYTES = 65_536  # the longest key fits many times; a log piped in by mistake does not

COLUMNS = (
    Column("OWNER", "owner"),
    Column("SLOT", "slot"),
    Column("KEPT", "kept"),
    Column("SET", "set_at", terminal.when),
    Column("ACCEPTED", "accepted", right=True),
    Column("LAST USED", "last_used_at", terminal.when),
    Column("ADVICE", "advice", flexible=True),
)


@click.group(cls=Noun)
def command() -> None:
    """Secrets that senders sign with: set, rotate, drop, and see which are in use.

    \b
    hookbox secret set demo                      (asks, without echo)
    hookbox secret set demo < /path/to/secret
    hookbox secret rotate demo
    hookbox secret list
    """


no_argument = click.argument("refused", nargs=-1, metavar="")
generate = click.option(
    "--generate", is_flag=True, help="Make one, and print what the sender needs."
)


@command.command("set")
@options.source_argument
@no_argument
@generate
@pass_box
def set_secret(box: Box, source: str, refused: tuple[str, ...], generate: bool) -> None:
    """Set the secret of a source, read from the terminal or from standard input.

    A running server uses it from then on. The one before is gone; to keep it valid until the sender
    has changed over, use `rotate`.

    \b
    hookbox secret set demo
    hookbox secret set demo --generate
    """
    _store(box, source, refused, generate=generate, rotate=False)
    terminal.say(f"the secret of {source} is set")


@command.command("rotate")
@options.source_argument
@no_argument
@generate
@click.option("--force", is_flag=True, help="Even if the one before it may still be needed.")
@pass_box
def rotate_secret(
    box: Box, source: str, refused: tuple[str, ...], generate: bool, force: bool
) -> None:
    """Set a new secret and go on accepting the one before.

    \b
    hookbox secret rotate demo
    """
    if not force:
        _check_previous(box, source)
    _store(box, source, refused, generate=generate, rotate=True)
    terminal.say(f"{source} has a new secret, and the one before still counts")
    terminal.say(f"when it may be dropped: {box.hint('secret list')}")


def _check_previous(box: Box, source: str) -> None:
    """There is room for two: a third would silently push out one that retries may still carry."""
    from hookbox.cli.slots import KEEP, slots

    for line in slots(box.settings(), box.state, box.clock.now()):
        if (line["owner"], line["slot"]) != (f"source.{source}", Slot.PREVIOUS.value):
            continue
        if str(line["advice"]).startswith(KEEP):
            raise OperatorError(
                f"{source} has a secret from before already: {line['advice']}; "
                "to forget it all the same, add --force"
            )


def _store(
    box: Box, source: str, refused: tuple[str, ...], *, generate: bool, rotate: bool
) -> None:
    if refused:
        raise click.UsageError(
            "a secret is not taken as an argument, where others can read it; have the sender make "
            "a new one, and type it when asked, or pipe it in"
        )
    text = _read(box, source, generate=generate)
    slot, now = Slot.CURRENT, box.clock.now()

    def keep(transaction: Transaction) -> door.Fields:
        from hookbox.assembly import owner

        sealed = secrets.load_seal(box.state).close(text)
        if rotate:
            secrets.rotate(transaction, owner(source), sealed, now)
        else:
            secrets.put(transaction, owner(source), slot, sealed, now)
        return {}

    door.change(box, "secret.set", {"source": source, "text": text, "rotate": rotate}, keep)
    if generate and is_private_key(text):
        simulate = box.hint(f"simulate {source} bounced --to ADDRESS")
        terminal.say(f"no real sender has this key, it is for: {simulate}")
    elif generate:
        click.echo(text)


def _read(box: Box, name: str, *, generate: bool) -> str:
    """A usable secret for this source, or an error that never repeats what was given."""
    from hookbox.assembly import configured

    settings = box.settings()
    source = chosen(settings, name)
    if source.secret is not None:
        raise OperatorError(
            f"source {name} takes its secret from {source.secret}; change it there, "
            f"or remove that line from {settings.config_path}"
        )
    provider = configured(source, settings.server.public_url)
    text = _made(provider) if generate else _given(source)
    try:
        provider.read_secret(text)
    except ConfigError as error:
        raise OperatorError(f"the secret of {name} stays as it is: {error}") from None
    return text


def _made(provider: Provider) -> str:
    if provider.make_secret is None:
        raise OperatorError(f"{provider.title} makes the secret; copy it from there")
    return provider.make_secret()


def _given(source: SourceSettings) -> str:
    if sys.stdin.isatty():
        return str(click.prompt(f"secret of {source.name}", hide_input=True, err=True)).strip()
    raw = sys.stdin.buffer.read(SECRET_MAX_BYTES + 1)
    if len(raw) > SECRET_MAX_BYTES:
        raise OperatorError("what was piped in is too long for a secret")
    try:
        return raw.decode().strip()
    except UnicodeDecodeError:
        raise OperatorError("what was piped in is not text") from None


@command.command("drop")
@options.source_argument
@click.option(
    "--slot",
    type=click.Choice([Slot.PREVIOUS.value, Slot.CURRENT.value]),
    default=Slot.PREVIOUS.value,
    show_default=True,
    help="Which of the two.",
)
@pass_box
def drop_secret(box: Box, source: str, slot: str) -> None:
    """Forget a secret of a source: the previous one, unless told otherwise.

    \b
    hookbox secret drop demo
    """

    def drop(transaction: Transaction) -> door.Fields:
        from hookbox.assembly import owner

        secrets.drop(transaction, owner(source), Slot(slot))
        return {}

    door.change(box, "secret.drop", {"source": source, "slot": slot}, drop)
    terminal.say(f"the {slot} secret of {source} is dropped")


@command.command("list")
@options.as_json
@pass_box
def list_secrets(box: Box, as_json: bool) -> None:
    """Which secrets there are and how often each proved a delivery; never what they are.

    It also says when the previous secret of a source may be dropped.

    \b
    hookbox secret list
    """
    from hookbox.cli.slots import slots

    door.flush(box)
    found = slots(box.settings(), box.state, box.clock.now())
    if as_json:
        terminal.as_json(found)
    else:
        terminal.table(found, COLUMNS, none="no sources, so no secrets")
