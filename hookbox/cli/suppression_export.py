"""`hookbox suppressions export`: the whole list, for another program or another box."""

import csv
import sys
from collections.abc import Iterable, Iterator

import click

from hookbox.cli import options, terminal
from hookbox.cli.box import Box, pass_box
from hookbox.rules.mentions import PREFIX
from hookbox.store import database, suppression_lists
from hookbox.store.suppression_lists import SuppressionFilter
from hookbox.store.views import Line

FIELDS = (
    "address",
    "scope",
    "reason",
    "since",
    "event_id",
    "source",
    "lifted_at",
    "lifted_by",
    "lift_reason",
)


@click.command("export")
@options.scope("Only this list.")
@click.option("--all", "lifted", is_flag=True, help="Also what somebody lifted.")
@options.as_json
@pass_box
def export_suppressions(box: Box, scope: str | None, lifted: bool, as_json: bool) -> None:
    """The whole list as CSV, or as JSON lines with --json; `import` takes both.

    \b
    hookbox suppressions export > suppressed.csv
    """
    wanted = SuppressionFilter(scope=scope)
    erased = 0

    def known(found: Iterable[Line]) -> Iterator[Line]:
        """Those whose address is known; the name of an erased one means nothing elsewhere."""
        nonlocal erased
        for line in found:
            if str(line["address"]).startswith(PREFIX):
                erased += 1
            else:
                yield line

    with database.reading(box.state) as transaction:
        found = known(suppression_lists.every(transaction, wanted, lifted=lifted))
        if as_json:
            terminal.as_json({name: line[name] for name in FIELDS} for line in found)
        else:
            _as_csv(found)
    if erased:
        terminal.say(f"{erased} left out: their addresses were erased, so only this box knows them")


def _as_csv(found: Iterable[Line]) -> None:
    """Every field as it is: what a spreadsheet may make of `=` in front is worth less than an
    address that comes back unchanged.
    """
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(encoding="utf-8", newline="")  # csv ends its lines by itself
    sheet = csv.writer(sys.stdout, lineterminator="\n")
    sheet.writerow(FIELDS)
    sheet.writerows([line[name] for name in FIELDS] for line in found)
