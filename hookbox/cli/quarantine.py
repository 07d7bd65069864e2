"""`hookbox quarantine`: authentic content that was put aside, and a person's decision about it."""

from collections.abc import Callable, Iterator

import click

from hookbox.cli import door, options, terminal
from hookbox.cli.box import Box, check_source, pass_box
from hookbox.cli.nouns import Noun
from hookbox.cli.terminal import Column
from hookbox.errors import OperatorError
from hookbox.providers.contract import Provider
from hookbox.store import database, quarantine, views
from hookbox.store.connections import Transaction
from hookbox.store.views import Line, Page

COLUMNS = (
    Column("ID", "id", right=True),
    Column("RECEIVED", "received_at", terminal.when),
    Column("SOURCE", "source"),
    Column("REASON", "reason"),
    Column("KEY", "key", flexible=True),
    Column("CONTENT", "content", flexible=True),
)
WITH_RESOLUTION = (*COLUMNS[:-1], Column("RESOLUTION", "resolution", flexible=True), COLUMNS[-1])

EXCERPT_MAX = 60


@click.group(cls=Noun)
def command() -> None:
    """What was proved authentic but could not be applied: look at it, accept or discard it.

    \b
    hookbox quarantine
    hookbox quarantine show 3
    hookbox quarantine accept 3
    """


@command.command("list")
@options.source
@click.option("--all", "resolved", is_flag=True, help="Also what has been decided already.")
@options.paged
@options.as_json
@pass_box
def list_entries(box: Box, source: str | None, resolved: bool, page: Page, as_json: bool) -> None:
    """The newest entries that wait for a decision, the newest one last.

    \b
    hookbox quarantine list --source demo
    """
    with database.reading(box.state) as transaction:
        check_source(transaction, source)
        found = views.quarantine(transaction, source, page, resolved=resolved)
    if as_json:
        terminal.as_json(found)
        return
    columns = WITH_RESOLUTION if resolved else COLUMNS
    terminal.table([_shortened(entry) for entry in found], columns, none="nothing in quarantine")
    options.tell_of_more(found, page)


def _shortened(entry: Line) -> Line:
    return entry | {"content": terminal.plain(entry["content"])[:EXCERPT_MAX]}


@command.command("show")
@click.argument("entry_id", metavar="ID", type=options.ID)
@options.as_json
@pass_box
def show_entry(box: Box, entry_id: int, as_json: bool) -> None:
    """One entry with its content.

    \b
    hookbox quarantine show 3
    """
    with database.reading(box.state) as transaction:
        entry = views.quarantined(transaction, entry_id)
    if entry is None:
        raise OperatorError(f"no quarantine entry {entry_id}; see: {box.hint('quarantine list')}")
    if as_json:
        terminal.as_json([entry])
        return
    terminal.facts(_facts(entry))
    terminal.content(entry["content"])


def _facts(entry: Line) -> Iterator[tuple[str, str]]:
    yield "entry", str(entry["id"])
    yield "source", str(entry["source"])
    yield "reason", str(entry["reason"])
    yield "key", terminal.plain(entry["key"])
    yield "received", terminal.exactly(entry["received_at"])
    if entry["resolved_at"] is not None:
        yield "resolved", terminal.exactly(entry["resolved_at"])
        yield "resolution", terminal.plain(entry["resolution"])


@command.command("accept")
@click.argument("entry_ids", metavar="ID...", type=options.ID, nargs=-1, required=True)
@click.option(
    "--unread", is_flag=True, help="Keep what cannot be read as an event of kind unknown."
)
@pass_box
def accept_entries(box: Box, entry_ids: tuple[int, ...], unread: bool) -> None:
    """Let entries through: what could not be read is read again, as its source is configured now;
    an event that could not be applied is applied again; a contradiction becomes an event.

    \b
    hookbox quarantine accept 3
    """
    for entry_id in entry_ids:

        def accept(transaction: Transaction, entry_id: int = entry_id) -> door.Fields:
            from hookbox.flows.release import release

            now = box.clock.now()
            told = release(transaction, entry_id, provider_of(box), now, unread=unread)
            return {"told": told}

        done = door.change(box, "quarantine.accept", {"id": entry_id, "unread": unread}, accept)
        click.echo(f"entry {entry_id} {done['told']}")


def provider_of(box: Box) -> Callable[[str], Provider | None]:
    """The providers as the sources are configured, for when no server runs."""
    from hookbox import assembly

    settings = box.settings()
    chosen = {each.name: each for each in settings.sources}

    def find(name: str) -> Provider | None:
        source = chosen.get(name)
        return None if source is None else assembly.configured(source, settings.server.public_url)

    return find


@command.command("discard")
@click.argument("entry_ids", metavar="ID...", type=options.ID, nargs=-1, required=True)
@click.option("--reason", required=True, help="Why; kept with the entry.")
@pass_box
def discard_entries(box: Box, entry_ids: tuple[int, ...], reason: str) -> None:
    """Close entries without effect. The content stays readable until retention takes it.

    \b
    hookbox quarantine discard 3 --reason "a test of the sender's"
    """
    if not reason.strip():
        raise click.BadParameter("say why", param_hint="--reason")
    for entry_id in entry_ids:

        def discard(transaction: Transaction, entry_id: int = entry_id) -> door.Fields:
            quarantine.discard(transaction, entry_id, reason, box.clock.now())
            return {}

        door.change(box, "quarantine.discard", {"id": entry_id, "reason": reason}, discard)
        click.echo(f"entry {entry_id} discarded")
