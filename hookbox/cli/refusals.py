"""`hookbox refusals`: who was turned away, why, and how far the clocks were apart."""

import click

from hookbox.cli import door, options, terminal
from hookbox.cli.box import Box, check_source, pass_box
from hookbox.cli.terminal import Column
from hookbox.store import database, views


def skew(value: object) -> str:
    """Our time minus the signed time, in words: where the sender's clock stands beside ours."""
    if not isinstance(value, int | float):
        return terminal.NOTHING
    return f"{abs(value):.0f} s {'ahead' if value < 0 else 'behind'}"


COLUMNS = (
    Column("SOURCE", "source"),
    Column("REASON", "reason"),
    Column("COUNT", "count", right=True),
    Column("LAST SKEW", "last_skew_s", skew),
    Column("LAST REMOTE", "last_remote"),
    Column("FIRST", "first_minute", terminal.minute),
    Column("LAST", "last_minute", terminal.minute),
)


@click.command()
@options.source
@options.since(default="24h")
@options.limit
@options.as_json
@pass_box
def command(box: Box, source: str | None, since: str, limit: int, as_json: bool) -> None:
    """Deliveries that were refused, by source and reason; with --json minute by minute.

    A skew of "312 s behind" says that the signed time was 312 seconds before ours. Under
    `skew = "observe"` what would have been refused for its age is counted here too.

    \b
    hookbox refusals --source agent --since 7d
    """
    door.flush(box)
    with database.reading(box.state) as transaction:
        check_source(transaction, source)
        if as_json:
            terminal.as_json(views.refusals(transaction, source, since, limit))
            return
        found = views.refusal_sums(transaction, source, since)
    terminal.table(found, COLUMNS, none="nobody was refused")
