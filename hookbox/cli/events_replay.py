"""`hookbox events replay`: have what was handled wrongly handled again."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import click

from hookbox.cli import door, options, person, terminal
from hookbox.cli.box import Box, check_source, chosen_destination, pass_box
from hookbox.errors import OperatorError
from hookbox.model import Kind
from hookbox.store import database, reprocess, views
from hookbox.store.connections import Transaction
from hookbox.store.forwarding import PREFIX
from hookbox.store.reprocess import APPLY_ONLY
from hookbox.store.views import EventFilter, Page

PAGE = 200  # events in one transaction, or read together for a rehearsal
SHOWN_MAX = 10  # refusals that a person reads; all of them are in the output of --json


@dataclass(slots=True)
class _Outcome:
    queued: list[door.Fields] = field(default_factory=list)
    refused: list[door.Fields] = field(default_factory=list)


@click.command("replay")
@click.argument("event_ids", metavar="[ID]...", type=options.ID, nargs=-1)
@options.source
@click.option(
    "--kind", type=click.Choice([kind.value for kind in Kind]), metavar="KIND", help="Of this kind."
)
@click.option("--recipient", metavar="ADDRESS", help="About this recipient.")
@options.since()
@click.option(
    "--to",
    multiple=True,
    metavar="DESTINATION",
    help="Bring them to this destination alone; `apply`: apply them, bring them nowhere.",
)
@click.option("--dry-run", is_flag=True, help="Say what would happen, and change nothing.")
@person.reason("Why; kept with your name.", default="asked for on the command line")
@options.as_json
@pass_box
def replay_events(
    box: Box,
    /,
    event_ids: tuple[int, ...],
    to: tuple[str, ...],
    dry_run: bool,
    reason: str,
    as_json: bool,
    **asked: str | None,
) -> None:
    """Apply events once more and bring them once more to their destinations.

    Each replay has its number, which is part of the idempotency key that destinations see. No
    status goes back, no suppression is lifted, and nothing is counted twice.

    \b
    hookbox events replay 17
    hookbox events replay --source demo --kind bounced --since 2h --dry-run
    hookbox events replay --since 2026-01-31 --to app
    """
    if bool(event_ids) == any(asked.values()):
        raise click.UsageError("name events, or choose them with --source, --kind and so on")
    for name in to:
        if name != APPLY_ONLY:
            chosen_destination(box.settings(), name)
    chosen = _chosen(box, event_ids, EventFilter(**asked))
    if dry_run:
        from hookbox.cli.events_rehearsal import rehearse

        rehearse(box, chosen, to, as_json=as_json)
        return
    outcome = _replay(box, chosen, to, reason)
    if as_json:
        terminal.as_json([*outcome.queued, *outcome.refused])
    else:
        _tell(box, outcome)
    if not outcome.queued:
        raise SystemExit(1)


def _chosen(box: Box, event_ids: Sequence[int], wanted: EventFilter) -> Iterator[Sequence[int]]:
    """The events, a page at a time, oldest first."""
    if event_ids:
        for at in range(0, len(event_ids), PAGE):
            yield event_ids[at : at + PAGE]
        return
    page = Page(limit=PAGE, after=0)
    while True:
        with database.reading(box.state) as transaction:
            check_source(transaction, wanted.source)
            found = views.event_ids(transaction, wanted, page)
        if not found:
            return
        page = Page(limit=PAGE, after=found[-1])
        yield found


def _replay(box: Box, chosen: Iterator[Sequence[int]], to: Sequence[str], reason: str) -> _Outcome:
    word, outcome = person.word(box, reason), _Outcome()
    for ids in chosen:

        def replay(transaction: Transaction, ids: Sequence[int] = ids) -> door.Fields:
            done = reprocess.replay_each(transaction, ids, to, word)
            return {"queued": done.queued, "refused": done.refused}

        fields = {"event_ids": list(ids), "to": list(to), "who": word.who, "reason": reason}
        told = door.change(box, "events.replay", fields, replay)
        outcome.queued += told["queued"]
        outcome.refused += told["refused"]
    return outcome


def _tell(box: Box, outcome: _Outcome) -> None:
    queued, refused = outcome.queued, outcome.refused
    if len(queued) == 1:
        event_id, target = queued[0]["event_id"], queued[0]["target"]
        where = f" for {target.removeprefix(PREFIX)}" if target.startswith(PREFIX) else ""
        click.echo(
            f"event {event_id} is queued{where}, replay {queued[0]['replay']}; "
            f"see: {box.hint(f'events show {event_id}')}"
        )
    elif queued:
        click.echo(f"{len(queued)} replays are queued; see: {box.hint('outbox list')}")
    for each in refused[:SHOWN_MAX]:
        terminal.say(each["why"])
    if len(refused) > SHOWN_MAX:
        terminal.say(f"and {len(refused) - SHOWN_MAX} more that cannot be replayed")
    if not queued and not refused:
        raise OperatorError("no such events")
