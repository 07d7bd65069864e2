"""`hookbox suppressions`: the addresses that must not be mailed, and a person's word about them."""

from dataclasses import asdict

import click

from hookbox.cli import door, options, person, terminal
from hookbox.cli.box import Box, check_source, pass_box
from hookbox.cli.nouns import Noun
from hookbox.cli.suppression_check import check
from hookbox.cli.suppression_export import export_suppressions
from hookbox.cli.suppression_import import import_suppressions
from hookbox.cli.terminal import Column
from hookbox.rules.addresses import bare
from hookbox.rules.suppression import Cause
from hookbox.store import database, pseudonyms, secrets, suppression_lists, suppressions
from hookbox.store.connections import Transaction
from hookbox.store.decisions import Verb
from hookbox.store.suppression_lists import SuppressionFilter
from hookbox.store.suppressions import Wanted
from hookbox.store.views import Page

COLUMNS = (
    Column("ID", "id", right=True),
    Column("SINCE", "since", terminal.when),
    Column("ADDRESS", "address", flexible=True),
    Column("SCOPE", "scope"),
    Column("REASON", "reason"),
    Column("EVENT", "event_id", right=True),
    Column("SOURCE", "source"),
)
WITH_LIFTS = (
    *COLUMNS,
    Column("LIFTED", "lifted_at", terminal.when),
    Column("BY", "lifted_by"),
    Column("WHY", "lift_reason", flexible=True),
)


@click.group(cls=Noun)
def command() -> None:
    """Addresses that must not be mailed: ask, list, exchange, add, lift.

    \b
    hookbox suppressions check someone@example.com
    hookbox suppressions lift someone@example.com --reason "wrote to us that she wants our mail"
    """


command.add_command(check)


@command.command("list")
@options.source
@click.option(
    "--reason",
    type=click.Choice([cause.value for cause in Cause]),
    metavar="REASON",
    help="Only for this: hard_bounce, complaint and so on.",
)
@options.scope("Only of this list.")
@options.since()
@click.option("--all", "lifted", is_flag=True, help="Also those that somebody lifted.")
@options.paged
@options.as_json
@pass_box
def list_suppressions(
    box: Box, /, lifted: bool, page: Page, as_json: bool, **asked: str | None
) -> None:
    """The newest suppressions, the newest one last.

    \b
    hookbox suppressions list --reason complaint --since 7d
    """
    with database.reading(box.state) as transaction:
        check_source(transaction, asked["source"])
        wanted = SuppressionFilter(**asked)
        found = suppression_lists.suppressions(transaction, wanted, page, lifted=lifted)
    if as_json:
        terminal.as_json(found)
        return
    terminal.table(found, WITH_LIFTS if lifted else COLUMNS, none="no such suppressions")
    options.tell_of_more(found, page)


command.add_command(export_suppressions)
command.add_command(import_suppressions)


def _address(_: click.Context, __: click.Parameter, text: str) -> str:
    address = bare(text)
    if address is None:
        raise click.BadParameter(f"{text!r} is not an address")
    return address


@command.command("add")
@click.argument("address", callback=_address)
@person.reason("Why; kept with your name.")
@options.scope("Only for this list. Without it: for all mail.")
@pass_box
def add_suppression(box: Box, address: str, reason: str, scope: str | None) -> None:
    """Suppress an address by hand.

    \b
    hookbox suppressions add someone@example.com --reason "asked us on the phone"
    """
    word = person.word(box, reason)
    wanted = Wanted(address=address, cause=Cause.MANUAL, since=word.at, scope=scope or "")

    def add(transaction: Transaction) -> door.Fields:
        return {"added": suppressions.add(transaction, [wanted], Verb.ADD, word)}

    fields = {"wanted": [asdict(wanted)], "verb": Verb.ADD, "who": word.who, "reason": reason}
    done = door.change(box, "suppressions.add", fields, add)
    click.echo(f"{address} {'is suppressed' if done['added'] else 'was suppressed already'}")


@command.command("lift")
@click.argument("address")
@person.reason("Why; kept with your name.")
@options.scope("Lift it from this list. Without it: from the global one.")
@pass_box
def lift_suppression(box: Box, address: str, reason: str, scope: str | None) -> None:
    """Take an address off the list. What happens after this moment can suppress it again.

    \b
    hookbox suppressions lift someone@example.com --reason "wrote to us from there"
    """
    word = person.word(box, reason)

    def lift(transaction: Transaction) -> door.Fields:
        names = pseudonyms.known(transaction, lambda: secrets.load_seal(box.state))
        suppressions.lift(transaction, address, scope or "", word, names)
        return {}

    fields = {"address": address, "scope": scope or "", "who": word.who, "reason": reason}
    door.change(box, "suppressions.lift", fields, lift)
    click.echo(f"{address} may be mailed again; it was lifted by {word.who}")
