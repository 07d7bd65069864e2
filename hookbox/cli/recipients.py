"""`hookbox recipients`: how far each message got with whom, and the whole story of one address."""

from collections.abc import Iterator

import click

from hookbox.cli import options, terminal
from hookbox.cli.box import Box, check_source, pass_box
from hookbox.cli.nouns import Noun
from hookbox.cli.recipients_erase import erase_recipient
from hookbox.cli.terminal import Column
from hookbox.errors import OperatorError
from hookbox.rules import lifecycle
from hookbox.store import database, pseudonyms, recipients, secrets, suppressions, views
from hookbox.store.recipients import RecipientFilter, Story
from hookbox.store.suppressions import Verdict
from hookbox.store.views import Line, Page

STATUSES = sorted({kind.value for kind, _ in lifecycle.RANKS})

COLUMNS = (
    Column("EVENT", "event_id", right=True),
    Column("AT", "status_at", terminal.when),
    Column("SOURCE", "source"),
    Column("RECIPIENT", "recipient", flexible=True),
    Column("STATUS", "status"),
    Column("BOUNCE", "bounce_class"),
    Column("MESSAGE", "message_id", flexible=True),
)
TIMELINE = (
    Column("OCCURRED", "occurred_at", terminal.when),
    Column("RECEIVED", "received_at", terminal.when),
    Column("SOURCE", "source"),
    Column("KIND", "kind"),
    Column("BOUNCE", "bounce_class"),
    Column("MESSAGE", "message_id", flexible=True),
    Column("EVENT", "event_id", right=True),
    Column("EFFECT", "effect", flexible=True),
)
SUPPRESSIONS = (
    Column("SCOPE", "scope"),
    Column("REASON", "reason"),
    Column("SINCE", "since", terminal.when),
    Column("EVENT", "event_id", right=True),
    Column("SOURCE", "source"),
    Column("LIFTED", "lifted_at", terminal.when),
    Column("BY", "lifted_by"),
    Column("WHY", "lift_reason", flexible=True),
)
CAUSES = (
    Column("REASON", "reason"),
    Column("SINCE", "since", terminal.when),
    Column("EVENT", "event_id", right=True),
    Column("SOURCE", "source"),
    Column("BY", "decided_by"),
    Column("WHY", "decision", flexible=True),
)
PLACES = (
    Column("SOURCE", "source"),
    Column("MESSAGE", "message_id"),
    Column("INBOX", "inbox_id"),
    Column("THREAD", "thread_id"),
)


@click.group(cls=Noun)
def command() -> None:
    """Recipients: how far each message got, and all that is known about one address.

    \b
    hookbox recipients --status bounced
    hookbox recipients show someone@example.com
    """


@command.command("list")
@options.source
@click.option("--status", type=click.Choice(STATUSES), help="Only those that got this far.")
@click.option("--message", metavar="ID", help="Only of this message.")
@click.option("--address", help="Only this recipient.")
@options.paged
@options.as_json
@pass_box
def list_recipients(box: Box, /, page: Page, as_json: bool, **asked: str | None) -> None:
    """The statuses that moved last, the newest one last.

    --after and --before take the number of an event.

    \b
    hookbox recipients list --message 0100018c-41
    """
    with database.reading(box.state) as transaction:
        check_source(transaction, asked["source"])
        found = recipients.recipients(transaction, RecipientFilter(**asked), page)
    if as_json:
        terminal.as_json(found)
        return
    terminal.table(found, COLUMNS, none="no such recipients")
    options.tell_of_more(found, page, by="event_id")


command.add_command(erase_recipient)


@command.command("show")
@click.argument("address")
@options.limit
@options.as_json
@pass_box
def show_recipient(box: Box, address: str, limit: int, as_json: bool) -> None:
    """The story of one address over all sources, in the order in which it happened.

    \b
    hookbox recipients show someone@example.com
    """
    with database.reading(box.state) as transaction:
        story = recipients.story(transaction, address, limit)
        names = pseudonyms.known(transaction, lambda: secrets.load_seal(box.state))
        [verdict] = suppressions.verdicts(transaction, [address], pseudonyms=names)
    if not (story.known or verdict.suppressed):
        raise OperatorError(f"nothing is known about {address}; see: {box.hint('recipients list')}")
    if as_json:
        terminal.as_json([_line(story, verdict)])
        return
    _show(story, verdict)
    if len(story.timeline) == limit:
        terminal.say(f"these are the newest {limit}; more of them: --limit {limit * 2}")


def _line(story: Story, verdict: Verdict) -> dict[str, object]:
    causes: dict[object, list[Line]] = {}
    for cause in story.causes:
        row = dict(cause)
        causes.setdefault(row.pop("suppression_id"), []).append(row)
    rows = ({**row, "causes": causes.get(row["id"], [])} for row in story.suppressions)
    return {
        "address": story.address,
        "suppressed": verdict.suppressed,
        "reason": verdict.reason,
        "timeline": story.timeline,
        "statuses": story.statuses,
        "suppressions": [{name: row[name] for name in row if name != "id"} for row in rows],
        "places": story.places,
    }


def _show(story: Story, verdict: Verdict) -> None:
    terminal.facts(_facts(story, verdict))
    terminal.section("What happened", story.timeline, TIMELINE)
    terminal.section("How far each message got", story.statuses, COLUMNS)
    terminal.section("Suppressions", story.suppressions, SUPPRESSIONS)
    terminal.section("Their causes", story.causes, CAUSES)
    terminal.section("Where the messages are", story.places, PLACES)


def _facts(story: Story, verdict: Verdict) -> Iterator[tuple[str, str]]:
    yield "address", story.address
    if verdict.since is None:
        yield "may be mailed", "yes"
        return
    yield "may be mailed", f"no: {verdict.reason}"
    yield "since", terminal.exactly(views.iso(verdict.since))
    if verdict.event_id is not None:
        yield "event", f"{verdict.event_id} of {verdict.source}"
