"""`hookbox probe`: what a sender really does when it is told "our fault", found out by trying."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

import click

from hookbox import assembly
from hookbox.cli import door, options, terminal
from hookbox.cli.box import Box, chosen, pass_box
from hookbox.cli.terminal import Column
from hookbox.errors import OperatorError
from hookbox.flows import probe
from hookbox.providers.contract import Provider
from hookbox.store import database, probes, views
from hookbox.store.probes import ProbeRequest, ProbeRow


def _answered(word: object) -> str:
    return "our fault" if word == "busy" else "accepted"


def _gap(seconds: object) -> str:
    return f"{seconds:.1f} s" if isinstance(seconds, float) else terminal.NOTHING


def _agrees(value: object) -> str:
    return terminal.NOTHING if value is None else "yes" if value else "NO"


REQUESTS = (
    Column("#", "number", right=True),
    Column("RECEIVED", "received_at", terminal.when),
    Column("ANSWERED", "answered", _answered),
    Column("GAP", "gap_s", _gap, right=True),
    Column("EVENT", "key", flexible=True),
)
FINDINGS = (
    Column("QUESTION", "question"),
    Column("FOUND", "found", flexible=True),
    Column("DECLARED", "declared"),
    Column("AGREES", "agrees", _agrees),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A probe, what it kept, and the sender that it is about."""

    row: ProbeRow
    requests: Sequence[ProbeRequest]
    provider: Provider


@click.command()
@options.source_argument
@click.option(
    "--fail",
    "failures",
    type=click.IntRange(1, probe.FAILURES_MAX),
    metavar="N",
    help="How many deliveries are answered so; 1 unless told otherwise.",
)
@click.option("--show", is_flag=True, help="Start none; show the last one, over or not.")
@click.option("--stop", is_flag=True, help="End the one that is under way.")
@options.as_json
@pass_box
def command(
    box: Box, source: str, failures: int | None, show: bool, stop: bool, as_json: bool
) -> None:
    """Answer the next delivery of SOURCE as if something were wrong here, and watch what comes.

    It is stored all the same, so nothing is lost. Its retry is compared with it, and with what is
    declared of this sender. A probe that is under way is shown rather than started.

    \b
    hookbox probe demo
    hookbox probe demo --show
    """
    if show + stop + (failures is not None) > 1:
        raise click.UsageError("--fail, --show and --stop exclude each other")
    chosen(box.settings(), source)
    started = False
    if stop:
        _ask(box, source, 0)
    elif failures or not (show or _under_way(box, _latest(box, source))):
        _ask(box, source, failures or 1)
        started = True
    seen = _latest(box, source)
    if seen is None:
        raise OperatorError(f"{source} was never probed; start with: {box.hint(f'probe {source}')}")
    if as_json:
        terminal.as_json([_line(seen)])
    elif started:
        _tell_start(box, seen)
    else:
        _show(box, seen)


def _ask(box: Box, source: str, failures: int) -> None:
    if door.ask(box.state, "probe", {"source": source, "failures": failures}) is None:
        raise OperatorError(f"no server is running on {box.state}; start it: {box.hint('serve')}")


def _latest(box: Box, source: str) -> Seen | None:
    settings = box.settings()
    with database.reading(box.state) as transaction:
        row = probes.latest(transaction, source)
        if row is None:
            return None
        kept = probes.requests(transaction, row.id)
    provider = assembly.configured(chosen(settings, source), settings.server.public_url)
    return Seen(row=row, requests=kept, provider=provider)


def _under_way(box: Box, seen: Seen | None) -> bool:
    """The server notes the end of a probe's time only when something comes."""
    return seen is not None and seen.row.ended_at is None and box.clock.now() < seen.row.ends_at


def _tell_start(box: Box, seen: Seen) -> None:
    row, status = seen.row, seen.provider.answers.busy
    next_ones = "delivery is" if row.failures == 1 else f"{row.failures} deliveries are"
    click.echo(f"the next verified {next_ones} stored, and answered {status}: our fault")
    click.echo(_expectation(seen.provider))
    click.echo(f"what came of it: {box.hint(f'probe {row.source} --show')}")
    terminal.say("simulated events do not count; have the sender make a real one")


def _expectation(provider: Provider) -> str:
    """What is declared of this sender, and when the probe ends by itself."""
    title, schedule, horizon_s = provider.title, provider.retry_schedule_s, provider.retry_horizon_s
    end = (
        f"the probe ends after {terminal.span(horizon_s or probe.DEFAULT_HORIZON_S)} at the latest"
    )
    if schedule:
        return f"{title} should come again in {terminal.span(schedule[0])}; {end}"
    if horizon_s:
        return f"{title} should come again, it is not known when; {end}"
    return f"it is not known whether {title} comes again; {end}"


def _show(box: Box, seen: Seen) -> None:
    found = _findings(seen)
    terminal.facts(_facts(box, seen))
    terminal.section("What came", _requests(seen), REQUESTS)
    terminal.section("What it shows", found, FINDINGS)
    if _under_way(box, seen) and not found:
        click.echo()
        click.echo(_expectation(seen.provider) if seen.requests else "nothing has come yet")


def _facts(box: Box, seen: Seen) -> Iterator[tuple[str, str]]:
    row = seen.row
    yield "source", f"{row.source} ({seen.provider.title})"
    yield "started", terminal.exactly(views.iso(row.started_at))
    yield "deliveries to fail", str(row.failures)
    if _under_way(box, seen):
        yield "under way until", terminal.exactly(views.iso(row.ends_at))
    else:
        yield "ended", terminal.exactly(views.iso(row.ended_at or row.ends_at))
        yield "because", row.outcome or "horizon over"


def _requests(seen: Seen) -> list[dict[str, object]]:
    """Each with the time since the one before it that brought the same event."""
    last: dict[str, int] = {}
    lines: list[dict[str, object]] = []
    for request in seen.requests:
        at, before = request.received_at, last.get(request.key)
        signed_at = request.signed_at
        lines.append(
            {
                "number": request.number,
                "key": request.key,
                "received_at": views.iso(at),
                "signed_at": None if signed_at is None else views.iso(signed_at),
                "answered": request.answered,
                "gap_s": None if before is None else (at - before) / 1000,
                "headers": request.headers,
            }
        )
        last[request.key] = at
    return lines


def _findings(seen: Seen) -> list[dict[str, object]]:
    return [asdict(each) for each in probe.findings(seen.provider, seen.requests)]


def _line(seen: Seen) -> dict[str, object]:
    row = seen.row
    return {
        "source": row.source,
        "started_at": views.iso(row.started_at),
        "ends_at": views.iso(row.ends_at),
        "failures": row.failures,
        "ended_at": None if row.ended_at is None else views.iso(row.ended_at),
        "outcome": row.outcome,
        "requests": _requests(seen),
        "findings": _findings(seen),
    }
