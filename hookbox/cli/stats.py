"""`hookbox stats`: the state of the box in one line for each source."""

import click

from hookbox.cli import door, options, terminal
from hookbox.cli.box import Box, pass_box
from hookbox.cli.terminal import Column
from hookbox.flows.outages import Verdict, verdicts
from hookbox.rules.losses import Loss
from hookbox.store import database, polls, views
from hookbox.store.connections import Transaction
from hookbox.store.views import Line


def _age(value: object) -> str:
    return terminal.span(value) if isinstance(value, int) else terminal.NOTHING


def _ago(value: object) -> str:
    return f"{terminal.span(value)} ago" if isinstance(value, int) else terminal.NOTHING


COLUMNS = (
    Column("SOURCE", "source"),
    Column("EVENTS", "events", right=True),
    Column("REPEATS", "duplicates", right=True),
    Column("IDS MADE", "synthesised", right=True),
    Column("QUARANTINED", "quarantined", right=True),
    Column("REFUSED IN 24 H", "refused_24h", right=True),
    Column("LAST EVENT", "last_event_at", terminal.when),
    Column("PENDING", "pending", right=True),
    Column("OLDEST PENDING", "queue_age_s", _age, right=True),
)
OUTAGES = (
    Column("SOURCE", "source"),
    Column("ANYTHING LOST", "loss"),
    Column("OUTAGE FROM", "outage_from", terminal.when),
    Column("TO", "outage_to", terminal.when),
    Column("WHAT TO DO", "step", flexible=True),
)
POLLS = (
    Column("SOURCE", "source"),
    Column("CURSOR", "cursor"),
    Column("CURSOR AGE", "cursor_age_s", _age, right=True),
    Column("LIST READ", "lag_s", _ago, right=True),
    Column("GAPS", "gaps", right=True),
    Column("EARLY", "early", right=True),
    Column("TROUBLE", "trouble", flexible=True),
)


@click.command()
@options.as_json
@pass_box
def command(box: Box, as_json: bool) -> None:
    """Each source's events, repeats, quarantine, refusals, and work that waits; what outages of
    the last week may have cost; how far the senders' own lists are read.

    IDS MADE: events that came without an id and are known by one made from their content.

    \b
    hookbox stats
    """
    running = door.flush(box)
    with database.reading(box.state) as transaction:
        found = _lines(transaction, box.clock.now())
    if as_json:
        terminal.as_json(found)
        return
    terminal.table(found, COLUMNS, none=f"no sources yet; start with: {box.hint('serve')}")
    terminal.section("Outages", [line for line in found if line["loss"] != Loss.SAFE], OUTAGES)
    terminal.section("Lists", [line for line in found if line["polled_at"]], POLLS)
    if not running:
        terminal.say(f"no server is running; start it with: {box.hint('serve')}")


def _lines(transaction: Transaction, now: int) -> list[Line]:
    """One for each source, with everything about it."""
    judged = {verdict.source: verdict for verdict in verdicts(transaction, now)}
    polled = {line["source"]: line for line in polls.lines(transaction, now)}
    return [
        {**line, **_outage(judged[str(line["source"])]), **polled[line["source"]]}
        for line in views.stats(transaction, now)
    ]


def _outage(verdict: Verdict) -> Line:
    outage = verdict.outage
    return {
        "loss": verdict.loss.value,
        "outage_from": None if outage is None else views.iso(outage.from_at),
        "outage_to": None if outage is None else views.iso(outage.to_at),
        "step": verdict.step,
    }
