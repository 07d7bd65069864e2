"""`hookbox outbox`: what is still to be done about events, and a person's say in it."""

from collections.abc import Iterator

import click

from hookbox.cli import door, options, person, terminal
from hookbox.cli.box import Box, chosen_destination, pass_box
from hookbox.cli.nouns import Noun
from hookbox.cli.terminal import Column
from hookbox.errors import OperatorError
from hookbox.store import database, outbox, outbox_views
from hookbox.store.connections import Transaction
from hookbox.store.forwarding import PREFIX, target_of
from hookbox.store.jobs import APPLY
from hookbox.store.views import Line, Page

STATES = ("available", "running", "completed", "exhausted", "cancelled", "held")

COLUMNS = (
    Column("JOB", "id", right=True),
    Column("EVENT", "event_id", right=True),
    Column("TARGET", "target"),
    Column("REPLAY", "replay", right=True),
    Column("STATE", "state"),
    Column("ATTEMPTS", "attempts", right=True),
    Column("DUE", "run_at", terminal.when),
    Column("LAST OUTCOME", "last_outcome", flexible=True),
)
ATTEMPTS = (
    Column("ATTEMPT", "number", right=True),
    Column("STARTED", "started_at", terminal.when),
    Column("TOOK MS", "took_ms", right=True),
    Column("OUTCOME", "outcome"),
    Column("STATUS", "status"),
    Column("EXCERPT", "excerpt", flexible=True),
)


@click.group(cls=Noun)
def command() -> None:
    """What is to be done about events: jobs, their attempts, and destinations that stand still.

    \b
    hookbox outbox
    hookbox outbox --to app --state exhausted
    hookbox outbox retry 17
    hookbox outbox pause app --reason "moving house"
    """


@command.command("list")
@click.option(
    "--to",
    metavar="DESTINATION",
    help="Only what goes to this destination; `apply`: what hookbox itself does.",
)
@click.option("--state", type=click.Choice(STATES), help="Only in this state.")
@click.option("--event", "event_id", type=options.ID, metavar="ID", help="Only about this event.")
@options.paged
@options.as_json
@pass_box
def list_jobs(
    box: Box, to: str | None, state: str | None, event_id: int | None, page: Page, as_json: bool
) -> None:
    """The newest jobs, the newest one last, and which destinations stand still.

    \b
    hookbox outbox list --state held
    hookbox outbox list --after 1200 --json
    """
    target = APPLY if to == APPLY else None if to is None else target_of(to)
    with database.reading(box.state) as transaction:
        found = outbox_views.jobs(transaction, page, target=target, state=state, event_id=event_id)
        standing = outbox_views.lanes(transaction)
    if to not in (None, APPLY) and not found:
        _known(box, str(to))
    if as_json:
        terminal.as_json(found)
        return
    terminal.table(
        found, COLUMNS, none="no such jobs" if to or state or event_id else "no jobs yet"
    )
    options.tell_of_more(found, page)
    for lane in standing:
        terminal.say(_standing(box, lane))


def _standing(box: Box, lane: Line) -> str:
    """Why a destination gets nothing, and what to do about it."""
    name = str(lane["target"]).removeprefix(PREFIX)
    if lane["paused_at"] is not None:
        return (
            f"{name} is paused since {terminal.when(lane['paused_at'])} by {lane['paused_by']}: "
            f"{lane['pause_reason']}; to go on: {box.hint(f'outbox resume {name}')}"
        )
    return (
        f"{name} is left alone since {terminal.when(lane['broken_at'])}, after {lane['failures']} "
        f"failures in a row (the last one: {lane['last_failure']}); "
        f"one job is tried at {terminal.when(lane['probe_at'])}"
    )


@command.command("show")
@click.argument("job_id", metavar="JOB", type=options.ID)
@options.as_json
@pass_box
def show_job(box: Box, job_id: int, as_json: bool) -> None:
    """One job with its attempts.

    \b
    hookbox outbox show 17
    """
    with database.reading(box.state) as transaction:
        job = outbox_views.job(transaction, job_id)
        attempts = outbox_views.attempts(transaction, job_id)
    if job is None:
        raise OperatorError(f"no job {job_id}; see: {box.hint('outbox list')}")
    if as_json:
        terminal.as_json([{**job, "tries": attempts}])
        return
    terminal.facts(_facts(job))
    terminal.section("Attempts", attempts, ATTEMPTS)


def _facts(job: Line) -> Iterator[tuple[str, str]]:
    yield "job", str(job["id"])
    yield "event", str(job["event_id"])
    yield "target", str(job["target"])
    if job["replay"]:
        yield "replay", str(job["replay"])
    yield "state", str(job["state"])
    yield "attempts", str(job["attempts"])
    if job["state"] in ("available", "held"):
        yield "due", terminal.exactly(job["run_at"])
    yield "last outcome", terminal.plain(job["last_outcome"])


@command.command("retry")
@click.argument("job_ids", metavar="[JOB]...", type=options.ID, nargs=-1)
@click.option("--to", metavar="DESTINATION", help="All that this destination was given up on for.")
@pass_box
def retry_jobs(box: Box, job_ids: tuple[int, ...], to: str | None) -> None:
    """Try jobs now, with their whole schedule before them again.

    \b
    hookbox outbox retry 17 18
    hookbox outbox retry --to app           (everything that was exhausted there)
    """
    if bool(job_ids) == (to is not None):
        raise click.UsageError("name jobs, or a destination with --to")
    now = box.clock.now()

    def retry(transaction: Transaction) -> door.Fields:
        if to is not None:
            return {"retried": outbox.retry_exhausted(transaction, to, now, limit=-1)}
        outbox.retry(transaction, job_ids, now)
        return {"retried": len(job_ids)}

    fields: door.Fields = {"ids": list(job_ids)} if to is None else {"destination": _known(box, to)}
    retried = door.change(box, "outbox.retry", fields, retry)["retried"]
    if to is not None and not retried:
        waiting = box.hint(f"outbox --to {to}")
        click.echo(f"nothing was given up on at {to}; what waits for its time: {waiting}")
        return
    standing = _lanes_of(box, job_ids, to)
    when = "when the destination goes on" if standing else "now"
    click.echo(f"{_jobs(retried)} will be tried {when}")
    for lane in standing:
        terminal.say(_standing(box, lane))


def _lanes_of(box: Box, job_ids: tuple[int, ...], to: str | None) -> list[Line]:
    """The standing lanes of these jobs, or of a destination."""
    with database.reading(box.state) as transaction:
        jobs = [outbox_views.job(transaction, job_id) for job_id in job_ids]
        targets = {job["target"] for job in jobs if job} | ({target_of(to)} if to else set())
        return [lane for lane in outbox_views.lanes(transaction) if lane["target"] in targets]


@command.command("cancel")
@click.argument("job_ids", metavar="JOB...", type=options.ID, nargs=-1, required=True)
@person.reason("Why; kept with your name.")
@pass_box
def cancel_jobs(box: Box, job_ids: tuple[int, ...], reason: str) -> None:
    """Give jobs up. The event stays, and can be replayed.

    \b
    hookbox outbox cancel 17 --reason "the order was cancelled"
    """
    word = person.word(box, reason)

    def cancel(transaction: Transaction) -> door.Fields:
        outbox.cancel(transaction, job_ids, word)
        return {}

    fields = {"ids": list(job_ids), "who": word.who, "reason": reason}
    door.change(box, "outbox.cancel", fields, cancel)
    click.echo(f"{_jobs(len(job_ids))} cancelled")


@command.command("pause")
@click.argument("destination")
@person.reason("Why; kept with your name.", default="asked for on the command line")
@pass_box
def pause(box: Box, destination: str, reason: str) -> None:
    """Bring nothing more to a destination. What is for it waits, also over a restart.

    \b
    hookbox outbox pause app --reason "moving house"
    """
    name, word = _known(box, destination), person.word(box, reason)

    def stop(transaction: Transaction) -> door.Fields:
        outbox.pause(transaction, name, word)
        return {"held": outbox.hold(transaction, name, limit=-1)}

    fields = {"destination": name, "who": word.who, "reason": reason}
    held = door.change(box, "outbox.pause", fields, stop)["held"]
    click.echo(
        f"{name} is paused, {_jobs(held)} held; to go on: {box.hint(f'outbox resume {name}')}"
    )


@command.command("resume")
@click.argument("destination")
@pass_box
def resume(box: Box, destination: str) -> None:
    """Let a paused destination go on.

    \b
    hookbox outbox resume app
    """
    name = _known(box, destination)

    def go_on(transaction: Transaction) -> door.Fields:
        outbox.resume(transaction, name)
        return {"released": outbox.release(transaction, name, limit=-1)}

    released = door.change(box, "outbox.resume", {"destination": name}, go_on)["released"]
    click.echo(f"{name} goes on, {_jobs(released)} released")


def _known(box: Box, name: str) -> str:
    """The name, if a destination is called so. Raises OperatorError."""
    return chosen_destination(box.settings(), name).name


def _jobs(count: int) -> str:
    return f"{count} job{'' if count == 1 else 's'}"
