"""`hookbox stats`: the state of the box in one line for each source."""

import click

from hookbox.cli import door, options, terminal
from hookbox.cli.box import Box, pass_box
from hookbox.cli.terminal import Column
from hookbox.store import database, views


def _age(value: object) -> str:
    return terminal.span(value) if isinstance(value, int) else terminal.NOTHING


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


@click.command()
@options.as_json
@pass_box
def command(box: Box, as_json: bool) -> None:
    """Each source's events, repeats, quarantine, refusals, and work that waits.

    IDS MADE: events that came without an id and are known by one made from their content.

    \b
    hookbox stats
    """
    running = door.flush(box)
    with database.reading(box.state) as transaction:
        found = views.stats(transaction, box.clock.now())
    if as_json:
        terminal.as_json(found)
        return
    terminal.table(found, COLUMNS, none=f"no sources yet; start with: {box.hint('serve')}")
    if not running:
        terminal.say(f"no server is running; start it with: {box.hint('serve')}")
