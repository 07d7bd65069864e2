"""`hookbox secret`: what senders sign with, and what hookbox signs with, kept sealed, with room for
the old one beside the new.

A secret is typed without echo or piped in. It is never an argument, which every user of the machine
could read in the list of programs, and which the shell keeps in its history.
"""

import sys
from pathlib import Path

import click

from hookbox.cli import door, options, terminal
from hookbox.cli.box import Box, pass_box
from hookbox.cli.nouns import Noun
from hookbox.cli.secret_owner import Owner, kept_as, owner_of, signing
from hookbox.cli.terminal import Column
from hookbox.errors import ConfigError, OperatorError
from hookbox.model import Slot
from hookbox.rules.signatures import is_private_key
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
    """Secrets that senders sign with, or hookbox itself: set, rotate, drop, see which are in use.

    \b
    hookbox secret set demo                      (asks, without echo)
    hookbox secret set demo < /path/to/secret
    hookbox secret rotate demo
    hookbox secret list
    hookbox secret reveal app                    (of a destination)
    """


no_argument = click.argument("refused", nargs=-1, metavar="")
generate = click.option(
    "--generate", is_flag=True, help="Make one, and print what the other side needs."
)
destination = click.option(
    "--destination", is_flag=True, help="NAME is a destination, not a source."
)
name_argument = click.argument("name", shell_complete=options.owner_names)


@command.command("set")
@name_argument
@no_argument
@generate
@destination
@pass_box
def set_secret(
    box: Box, name: str, refused: tuple[str, ...], generate: bool, destination: bool
) -> None:
    """Set a secret, read from the terminal or from standard input.

    A running server uses it from then on. The one before is gone; to keep it valid until the sender
    has changed over, use `rotate`.

    \b
    hookbox secret set demo
    hookbox secret set demo --generate
    """
    _check_no_argument(refused)
    _store(box, name, destination=destination, generate=generate, rotate=False)
    terminal.say(f"the secret of {name} is set")


@command.command("rotate")
@name_argument
@no_argument
@generate
@click.option("--force", is_flag=True, help="Even if the one before it may still be needed.")
@destination
@pass_box
def rotate_secret(
    box: Box,
    name: str,
    refused: tuple[str, ...],
    generate: bool,
    force: bool,
    destination: bool,
) -> None:
    """Set a new secret and go on accepting the one before, or, for a destination, signing with it.

    \b
    hookbox secret rotate demo
    hookbox secret rotate app --destination --generate
    """
    _check_no_argument(refused)
    if not force:
        _check_previous(box, name, kept_as(name, destination=destination))
    _store(box, name, destination=destination, generate=generate, rotate=True)
    terminal.say(f"{name} has a new secret, and the one before still counts")
    terminal.say(f"when it may be dropped: {box.hint('secret list')}")


def _check_previous(box: Box, name: str, owner: str) -> None:
    """There is room for two: a third would silently push out one that retries may still carry."""
    from hookbox.cli.slots import KEEP, slots

    for line in slots(box.settings(), box.state, box.clock.now()):
        if (line["owner"], line["slot"]) != (owner, Slot.PREVIOUS.value):
            continue
        if str(line["advice"]).startswith(KEEP):
            raise OperatorError(
                f"{name} has a secret from before already: {line['advice']}; "
                "to forget it all the same, add --force"
            )


def _check_no_argument(refused: tuple[str, ...]) -> None:
    if refused:
        raise click.UsageError(
            "a secret is not taken as an argument, where others can read it; have the sender make "
            "a new one, and type it when asked, or pipe it in"
        )


def _store(box: Box, name: str, *, destination: bool, generate: bool, rotate: bool) -> None:
    settings = box.settings()
    text = _usable(
        owner_of(settings, name, destination=destination), settings.config_path, generate
    )
    owner, now = kept_as(name, destination=destination), box.clock.now()

    def keep(transaction: Transaction) -> door.Fields:
        sealed = secrets.load_seal(box.state).close(text)
        if rotate:
            secrets.rotate(transaction, owner, sealed, now)
        else:
            secrets.put(transaction, owner, Slot.CURRENT, sealed, now)
        return {}

    door.change(box, "secret.set", {"owner": owner, "text": text, "rotate": rotate}, keep)
    if generate and is_private_key(text):
        simulate = box.hint(f"simulate {name} bounced --to ADDRESS")
        terminal.say(f"no real sender has this key, it is for: {simulate}")
    elif generate:
        click.echo(text)


def _usable(owner: Owner, config: Path, generate: bool) -> str:
    """A usable secret for its owner, or an error that never repeats what was given."""
    if owner.reference is not None:
        raise OperatorError(
            f"{owner.title} takes its secret from {owner.reference}; change it there, "
            f"or remove that line from {config}"
        )
    text = owner.make() if generate else _given(owner.name)
    try:
        owner.check(text)
    except ConfigError as error:
        raise OperatorError(f"the secret of {owner.name} stays as it is: {error}") from None
    return text


def _given(name: str) -> str:
    if sys.stdin.isatty():
        return str(click.prompt(f"secret of {name}", hide_input=True, err=True)).strip()
    raw = sys.stdin.buffer.read(SECRET_MAX_BYTES + 1)
    if len(raw) > SECRET_MAX_BYTES:
        raise OperatorError("what was piped in is too long for a secret")
    try:
        return raw.decode().strip()
    except UnicodeDecodeError:
        raise OperatorError("what was piped in is not text") from None


@command.command("drop")
@name_argument
@click.option(
    "--slot",
    type=click.Choice([Slot.PREVIOUS.value, Slot.CURRENT.value]),
    default=Slot.PREVIOUS.value,
    show_default=True,
    help="Which of the two.",
)
@destination
@pass_box
def drop_secret(box: Box, name: str, slot: str, destination: bool) -> None:
    """Forget a secret: the previous one, unless told otherwise.

    \b
    hookbox secret drop demo
    """
    owner = kept_as(name, destination=destination)

    def drop(transaction: Transaction) -> door.Fields:
        secrets.drop(transaction, owner, Slot(slot))
        return {}

    door.change(box, "secret.drop", {"owner": owner, "slot": slot}, drop)
    terminal.say(f"the {slot} secret of {name} is dropped")


@command.command("reveal")
@click.argument("name", shell_complete=options.destination_names)
@pass_box
def reveal_secret(box: Box, name: str) -> None:
    """Print the current secret of a destination, for the program that receives from it.

    What senders sign with is never shown; ask the sender.

    \b
    hookbox secret reveal app
    """
    from hookbox.cli.check import sealed_onward

    settings = box.settings()
    reference = signing(settings, name).secret
    text = (
        reference.read()
        if reference is not None
        else sealed_onward(settings).get(name, {}).get(Slot.CURRENT)
    )
    if text is None:
        raise OperatorError(
            f"destination {name} has no secret yet; it is made when the server starts, "
            f"or by: {box.hint(f'secret set {name} --destination --generate')}"
        )
    click.echo(text.strip())


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
