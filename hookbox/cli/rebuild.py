"""`hookbox rebuild`: statuses and suppressions worked out anew, compared, and taken over."""

from collections.abc import Sequence

import click

from hookbox import assembly
from hookbox.cli import door, options, person, terminal
from hookbox.cli.box import Box, pass_box
from hookbox.cli.failures import Failure
from hookbox.cli.rebuild_lines import COLUMNS, lines, summary
from hookbox.cli.terminal import Row
from hookbox.errors import StoreBusy
from hookbox.flows.rebuild import Outcome, Rebuild
from hookbox.store import database, order, scratch, sources, swap
from hookbox.store.connections import Transaction

ROUNDS_MAX = 10  # each is shorter than the one before, unless events come in too fast
FEW = 500  # steps that are caught up with in a tenth of a second
# Rows that a running server swaps at once: in about a second, which every sender waits.
ROWS_MAX = 20_000
TOLD_EVERY = 100_000
SHOWN_MAX = 50


@click.command()
@click.option("--dry-run", is_flag=True, help="Only show what would change.")
@click.option(
    "--allow-loosening",
    is_flag=True,
    help="Also lift suppressions that no stored event asks for any more; in your name.",
)
@options.as_json
@pass_box
def command(box: Box, dry_run: bool, allow_loosening: bool, as_json: bool) -> None:
    """Read the stored events again, and take over where the outcome differs.

    For after a mend: a provider that was read wrongly, another transient budget. What persons
    decided stays, and so does what is known from events that are no longer kept. A running server
    goes on meanwhile.

    \b
    hookbox rebuild --dry-run
    """
    with database.reading(box.state) as live, scratch.fresh(box.state) as (name, fresh):
        rebuild = _begun(box, live, fresh)
        refusal = _finish(box, rebuild, fresh, name, take=not dry_run, loosen=allow_loosening)
        names = {source_id: source for source, source_id in sources.known(live).items()}
    found = list(lines(rebuild.outcome, names))
    _show(found, as_json=as_json)
    terminal.say(summary(rebuild.outcome))
    if refusal:
        raise Failure(refusal)
    if not rebuild.outcome.empty:
        terminal.say("nothing was changed: a dry run" if dry_run else "taken over")


def _begun(box: Box, live: Transaction, fresh: Transaction) -> Rebuild:
    """A rebuild that has caught up with nearly everything, and compared it."""
    settings = box.settings()
    known = assembly.reading_sources(settings, sources.known(live))
    rebuild = Rebuild(live, fresh, known, assembly.budget(settings))
    last = order.last_place(live)
    milestones = iter(range(TOLD_EVERY, last, TOLD_EVERY))
    next_one = next(milestones, None)

    def told(place: int) -> None:
        nonlocal next_one
        if next_one is not None and place >= next_one:
            terminal.say(f"{place} of {last} read")
            next_one = next(milestones, None)

    rebuild.follow(told)
    rebuild.compare()
    for _ in range(ROUNDS_MAX):
        if rebuild.follow() < FEW:
            return rebuild
    raise StoreBusy(
        "events are applied faster than they can be read again, so nothing was changed; "
        "try it at a quieter hour, or stop the server for it"
    )


def _finish(
    box: Box, rebuild: Rebuild, fresh: Transaction, name: str, *, take: bool, loosen: bool
) -> str:
    """The last comparison, with the ledger held still, and the swap; why there was none, if so."""
    settings = assembly.fingerprint(box.settings())
    held = door.ask(box.state, "rebuild.hold", {"settings": settings}) is not None
    swapped = False
    try:
        rebuild.follow()
        rebuild.compare_again()
        refusal = _refusal(rebuild.outcome, held=held, loosen=loosen) if take else ""
        if take and not refusal and not rebuild.outcome.empty:
            swapped = True
            _swap(box, rebuild, fresh, name)
    finally:
        if held and not swapped:
            door.ask(box.state, "rebuild.end", {})
    return refusal


def _swap(box: Box, rebuild: Rebuild, fresh: Transaction, name: str) -> None:
    outcome = rebuild.outcome
    swap.note(fresh, outcome.differences, outcome.retold | outcome.reworded)
    word = person.word(box, "rebuild")

    def offline(transaction: Transaction) -> door.Fields:
        path = scratch.named(box.state, name)
        return {"rows": swap.swap(transaction, path, rebuild.position, word)}

    fields = {
        "scratch": name,
        "position": rebuild.position,
        "who": word.who,
        "reason": word.reason,
    }
    door.change(box, "rebuild.swap", fields, offline)


def _show(found: Sequence[Row], *, as_json: bool) -> None:
    if as_json:
        terminal.as_json(found)
        return
    terminal.section("What differs", found[:SHOWN_MAX], COLUMNS)
    if len(found) > SHOWN_MAX:
        terminal.say(f"and {len(found) - SHOWN_MAX} more; all of them with --json")


def _refusal(outcome: Outcome, *, held: bool, loosen: bool) -> str:
    rows = len(outcome.differences) + len(outcome.retold)
    if held and rows > ROWS_MAX:
        return (
            f"{rows} rows differ; to take over more than {ROWS_MAX}, stop the server for it: "
            "senders would wait too long"
        )
    if outcome.loosening and not loosen:
        return (
            f"{len(outcome.loosening)} suppressions would be lifted, so nothing was changed; "
            "if that is right: --allow-loosening"
        )
    return ""
