"""`hookbox poll`: ask a sender for what its webhooks did not bring, now."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

import click

from hookbox import assembly
from hookbox.cli import door, options, terminal
from hookbox.cli.box import Box, chosen, pass_box
from hookbox.cli.failures import Failure, TryAgain
from hookbox.errors import ConfigError, StoreBusy
from hookbox.flows.polling import End
from hookbox.settings import line_of

# A round has a hundred pages at most, each with half a minute at most; it mostly takes a second.
ROUND_MAX_S = 3_600.0
# Between two tries, where the sender asks for nothing else; then somebody should look.
PATIENCE_S = (15.0, 30.0, 60.0, 120.0, 300.0, 300.0, 300.0)

Told = Mapping[str, Any]
Go = Callable[[str | None], Awaitable[Told]]

SENTENCES = {
    End.CAUGHT_UP: "the end of the list is reached",
    End.MORE: "there is more: it goes on from here",
    End.THROTTLED: "the sender asks for a pause; the cursor stays where it is",
    End.FAILED: "the list could not be read to its end; the cursor stays where it is",
    End.STUCK: "the list leads nowhere; the cursor stays where it is",
    End.STOPPED: "not asked again until this is mended; the cursor stays where it is",
}


@click.command()
@options.source_argument
@click.option("--once", is_flag=True, help="One round; do not wait where the sender wants a pause.")
@click.option(
    "--from",
    "begin",
    metavar="CURSOR",
    help="Begin there instead of at the saved cursor; `start` is the beginning of the list.",
)
@click.option(
    "--close-gaps",
    is_flag=True,
    help="Only say that you have looked: no gap of this source is open any more.",
)
@options.as_json
@pass_box
def command(
    box: Box, source: str, once: bool, begin: str | None, close_gaps: bool, as_json: bool
) -> None:
    """Read the sender's own list of events from the saved cursor to its end.

    A running server does it, and is told so; without one it is done here, and what came is applied
    when the server runs again. Events that webhooks brought are repeats and change nothing.

    \b
    hookbox poll agent
    hookbox poll agent --once --json
    hookbox poll agent --from 1400
    """
    if close_gaps and (once or begin is not None):
        raise click.UsageError("--close-gaps goes alone")
    _check_polled(box, source)
    if close_gaps:
        told = asyncio.run(_close_gaps(box, source))
        click.echo(f"{told['closed']} gap{'' if told['closed'] == 1 else 's'} closed")
        return
    told = asyncio.run(_poll(box, source, begin, patient=not once))
    if as_json:
        terminal.as_json([told])
    else:
        terminal.facts(_facts(told))
    _end(told)


def _check_polled(box: Box, name: str) -> None:
    """Raises ConfigError (78) where the configuration has no way to poll this source."""
    settings = box.settings()
    source = chosen(settings, name)
    if assembly.polling_of(settings, source) is None:
        raise ConfigError(
            f"source {name} has no `poll` table, so nobody knows where its list of events is",
            where=f"source.{name}",
            mend=f'add [source.{name}.poll] with url = "https://..." and token = "env:NAME"',
            line=line_of(settings.text, ("source", name)) or source.line,
        )


async def _poll(box: Box, name: str, begin: str | None, *, patient: bool) -> Told:
    """By the server that runs, else in its place."""
    fields = {"source": name, "begin": begin}
    told = door.ask(box.state, "poll", fields, ROUND_MAX_S)
    if told is not None:

        async def ask(_: str | None) -> Told:
            answer = door.ask(box.state, "poll", {"source": name}, ROUND_MAX_S)
            if answer is None:
                raise StoreBusy(
                    "the server has stopped meanwhile; what it stored is kept, ask again"
                )
            return answer

        return await _rounds(box, told, ask, patient=patient)
    from hookbox.alone import pollers_alone

    async with pollers_alone(box.settings(), name, box.clock) as pollers:

        async def go(begin: str | None) -> Told:
            return asdict(await pollers.ask(name, begin))

        return await _rounds(box, await go(begin), go, patient=patient)


async def _rounds(box: Box, told: Told, go: Go, *, patient: bool) -> Told:
    """Round after round to the end of the list; what all of them brought."""
    total, pauses = told, list(PATIENCE_S if patient else ())
    while told["end"] == End.MORE or (pauses and told["end"] in (End.THROTTLED, End.FAILED)):
        if told["end"] != End.MORE:
            wait_s = max(pauses.pop(0), told["retry_after_s"] or 0.0)
            terminal.say(f"{told['told']}; trying again in {terminal.span(wait_s)}")
            await box.clock.sleep(wait_s)
        told = await go(None)
        total = {**told, **{name: total[name] + told[name] for name in COUNTS}}
    return total


COUNTS = ("pages", "new", "duplicate", "conflicting", "quarantined", "reconciled")


async def _close_gaps(box: Box, name: str) -> Told:
    told = door.ask(box.state, "poll.close_gaps", {"source": name})
    if told is not None:
        return told
    from hookbox.alone import pollers_alone

    async with pollers_alone(box.settings(), name, box.clock) as pollers:
        return {"closed": await pollers.close_gaps(name)}


def _facts(told: Told) -> Iterator[tuple[str, str]]:
    yield "source", told["source"]
    yield "pages", str(told["pages"])
    yield "new events", str(told["new"])
    yield "repeats", str(told["duplicate"])
    if told["conflicting"] or told["quarantined"]:
        yield "put aside", str(told["conflicting"] + told["quarantined"])
    if told["reconciled"]:
        yield "read from the sender's state", str(told["reconciled"])
    yield "cursor", terminal.plain(told["cursor"])
    yield "ended", SENTENCES[End(told["end"])]
    if told["told"]:
        yield "because", told["told"]


def _end(told: Told) -> None:
    end = End(told["end"])
    message = f"{told['source']}: {told['told'] or SENTENCES[end]}"
    if end in (End.THROTTLED, End.FAILED):
        raise TryAgain(message)
    if end in (End.STUCK, End.STOPPED):
        raise Failure(message)
