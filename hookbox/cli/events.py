"""`hookbox events`: what came in, and what it was understood to say."""

from collections.abc import Iterator

import click

from hookbox.cli import door, options, outbox, person, terminal
from hookbox.cli.box import Box, check_source, pass_box
from hookbox.cli.events_replay import replay_events
from hookbox.cli.events_tail import tail_events
from hookbox.cli.nouns import Noun
from hookbox.cli.terminal import Column
from hookbox.errors import OperatorError
from hookbox.model import Kind
from hookbox.store import database, reprocess, views
from hookbox.store.connections import Transaction
from hookbox.store.views import EventFilter, Line, Page

STATES = ("pending", "applied", "quarantined", "failed")

COLUMNS = (
    Column("ID", "id", right=True),
    Column("RECEIVED", "received_at", terminal.when),
    Column("SOURCE", "source"),
    Column("KIND", "kind"),
    Column("RECIPIENT", "recipient", flexible=True),
    Column("MESSAGE", "message_id", flexible=True),
    Column("STATE", "state"),
    Column("VIA", "via"),
    Column("REPEATS", "duplicates", right=True),
)
SAYS = (
    Column("RECIPIENT", "recipient"),
    Column("KIND", "kind"),
    Column("BOUNCE", "bounce_class"),
    Column("REASON", "reject_reason"),
    Column("MESSAGE", "message_id"),
    Column("EFFECT", "effect"),
)
OUTBOX = tuple(column for column in outbox.COLUMNS if column.field != "event_id")
ATTEMPTS = (Column("JOB", "job_id", right=True), *outbox.ATTEMPTS)


@click.group(cls=Noun)
def command() -> None:
    """Events: list them, follow them, show one in full, give one a second chance.

    \b
    hookbox events --kind bounced --since 2h
    hookbox events show 17
    """


@command.command("list")
@options.source
@click.option(
    "--kind",
    type=click.Choice([kind.value for kind in Kind]),
    metavar="KIND",
    help="Only this kind: bounced, complained, delivered and so on.",
)
@click.option("--state", type=click.Choice(STATES), help="Only in this state.")
@click.option("--recipient", metavar="ADDRESS", help="Only about this recipient.")
@click.option("--key", help="Only the event with this id of the sender's.")
@options.since()
@options.paged
@options.as_json
@pass_box
def list_events(box: Box, /, page: Page, as_json: bool, **asked: str | None) -> None:
    """The newest events, the newest one last.

    With --after or --before those next to an event instead; `--after 0` begins with the oldest.

    \b
    hookbox events list --recipient someone@example.com
    hookbox events list --after 1200 --json
    """
    with database.reading(box.state) as transaction:
        check_source(transaction, asked["source"])
        found = views.events(transaction, EventFilter(**asked), page)
    if as_json:
        terminal.as_json(found)
        return
    begin = f"no events yet; try: {box.hint('simulate SOURCE bounced --to ADDRESS')}"
    narrowed = any(asked.values()) or page.after is not None or page.before is not None
    terminal.table(found, COLUMNS, none="no such events" if narrowed else begin)
    options.tell_of_more(found, page)


command.add_command(tail_events)


@command.command("show")
@click.argument("event_id", metavar="ID", type=options.ID)
@options.as_json
@pass_box
def show_event(box: Box, event_id: int, as_json: bool) -> None:
    """One event: what it says, what was done about it, and its content.

    \b
    hookbox events show 17
    """
    with database.reading(box.state) as transaction:
        event = views.event(transaction, event_id)
        if event is None:
            raise OperatorError(f"no event {event_id}; see: {box.hint('events list')}")
        says = views.notifications(transaction, event_id)
        jobs = views.outbox(transaction, event_id)
        attempts = views.attempts(transaction, event_id)
    if as_json:
        terminal.as_json([event])
        return
    terminal.facts(_facts(event))
    terminal.section("What it says", says, SAYS)
    terminal.section("What was done about it", jobs, OUTBOX)
    terminal.section("Attempts", attempts, ATTEMPTS)
    terminal.content(event["content"])


command.add_command(replay_events)


@command.command("forget")
@click.argument("key")
@click.option("--source", required=True, metavar="NAME", help="Whose event it is.")
@person.reason("Why; kept with your name.")
@pass_box
def forget_event(box: Box, key: str, source: str, reason: str) -> None:
    """Let the sender's own replay of an event be news. What is stored of it stays.

    \b
    hookbox events forget evt_41 --source demo --reason "read wrongly before the mend"
    """
    word = person.word(box, reason)

    def forget(transaction: Transaction) -> door.Fields:
        return {"event_id": reprocess.forget(transaction, source, key, word)}

    fields = {"source": source, "key": key, "who": word.who, "reason": reason}
    event_id = door.change(box, "events.forget", fields, forget)["event_id"]
    click.echo(f"event {event_id} keeps what it led to; {key} is a new event when it comes again")


def _facts(event: Line) -> Iterator[tuple[str, str]]:
    yield "event", str(event["id"])
    yield "source", f"{event['source']} ({event['provider']})"
    yield "key", str(event["key"])
    if event["synthesised"]:
        yield "key made", "from the content: the sender gave no id"
    yield "kind", f"{terminal.plain(event['kind'])} ({terminal.plain(event['raw_kind'])})"
    yield "recipient", terminal.plain(event["recipient"])
    yield "message", terminal.plain(event["message_id"])
    yield "occurred", terminal.exactly(event["occurred_at"])
    yield "received", terminal.exactly(event["received_at"])
    yield "via", str(event["via"])
    yield "proved by", PROOFS.get(str(event["verified_by"]), "")
    yield "state", str(event["state"])
    if event["duplicates"]:
        last = terminal.exactly(event["last_duplicate_at"])
        yield "repeats", f"{event['duplicates']}, the last one {last}"


PROOFS = {
    "current": "the current secret",
    "previous": "the previous secret",
    "none": "no secret: the box fetched it, or a certificate proved it",
}
