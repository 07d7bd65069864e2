"""`hookbox purge`: let go now of what was kept for long enough."""

from collections import Counter

import click

from hookbox import assembly
from hookbox.cli import door, options, terminal
from hookbox.cli.box import Box, pass_box
from hookbox.cli.terminal import Column
from hookbox.store import database, old
from hookbox.store.checkpoints import PAGE_BYTES
from hookbox.store.writer import Writer

SLICE_S = 2.0  # the server works so long before it tells how far it came

WHAT = {
    "bodies": "contents of deliveries",
    "attempts": "attempts at jobs that are over",
    "events": "events, with their identity",
    "notifications": "what these said",
    "jobs": "their jobs",
    "quarantine": "resolved entries of the quarantine",
    "tokens": "signed tokens",
    "refusals": "counts of refusals, by the minute",
    "probed": "requests kept by probes",
}
COLUMNS = (Column("WHAT", "what"), Column("COUNT", "count", right=True))


@click.command()
@click.option("--dry-run", is_flag=True, help="Only count what would go.")
@options.as_json
@pass_box
def command(box: Box, dry_run: bool, as_json: bool) -> None:
    """Let go now of what [retention] says is old enough, and make the file shorter.

    A running server does so by itself once an hour, but keeps some free room in the file. What is
    not applied, not brought to its destinations or in quarantine keeps its content. Suppressions
    always stay.

    \b
    hookbox purge --dry-run
    """
    counts = _counted(box) if dry_run else _purged(box)
    told = {kind: counts[kind] for kind in WHAT} | {"bytes": counts["bytes"]}
    if as_json:
        terminal.as_json([{**told, "dry_run": dry_run}])
        return
    rows = [{"what": WHAT[kind], "count": told[kind]} for kind in WHAT if told[kind]]
    terminal.table(rows, COLUMNS, none="nothing is old enough")
    shorter = terminal.amount(counts["bytes"])
    if dry_run:
        terminal.say(f"the file would become about {shorter} shorter; nothing was changed")
    else:
        terminal.say(f"the file became {shorter} shorter")


def _counted(box: Box) -> Counter[str]:
    horizons = assembly.ages(box.settings()).horizons(box.clock.now())
    with database.reading(box.state) as transaction:
        return old.old(transaction, horizons)


def _purged(box: Box) -> Counter[str]:
    """By the running server, a slice at a time, or in its place."""
    counts: Counter[str] = Counter()
    done = False
    while not done:
        answer = door.ask(box.state, "retention.purge", {"seconds": SLICE_S})
        if answer is None:
            counts.update(_purged_alone(box))
            break
        counts.update(answer["took"])
        done = answer["done"]
    counts["bytes"] = counts["pages"] * PAGE_BYTES
    return counts


def _purged_alone(box: Box) -> Counter[str]:
    import asyncio

    from hookbox.cli.alone import alone
    from hookbox.flows.retain import Retention

    ages = assembly.ages(box.settings())

    async def purge(writer: Writer) -> Counter[str]:
        retention = Retention(writer, box.clock, asyncio.Lock())
        retention.ages = ages
        counts, done = await retention.purge_some(float("inf"))
        assert done, "nothing ends it before its end"
        return counts

    return alone(box, purge)
