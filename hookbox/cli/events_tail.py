"""`hookbox events tail`: events as they come in, over restarts of the server."""

import contextlib
from collections.abc import Iterator, Sequence
from urllib.parse import urlencode

import click

from hookbox.cli import options, server_events, terminal
from hookbox.cli.box import Box, pass_box
from hookbox.cli.terminal import Column, GrowingTable, Row
from hookbox.errors import OperatorError, StoreBusy
from hookbox.model import Kind

AGAIN_S = 0.5  # between two attempts to reach a server that was there before

# Each with the room that most of what it shows fits into.
COLUMNS = (
    (Column("ID", "id", right=True), 7),
    (Column("RECEIVED", "received_at", terminal.when), 19),
    (Column("SOURCE", "source"), 12),
    (Column("KIND", "kind"), 12),
    (Column("RECIPIENT", "recipient", flexible=True), 28),
    (Column("MESSAGE", "message_id", flexible=True), 24),
    (Column("STATE", "state"), 7),
    (Column("VIA", "via"), 7),
)


@click.command("tail")
@click.option("--after", type=options.ID, metavar="ID", help="Begin right after this.")
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    type=click.Choice([kind.value for kind in Kind]),
    metavar="KIND",
    help="Only this kind; may be given several times.",
)
@options.as_json
@pass_box
def tail_events(box: Box, after: int | None, kinds: tuple[str, ...], as_json: bool) -> None:
    """Follow the events of a running server as they come in, until Ctrl-C.

    Begins with what comes next, or next to the event --after; `--after 0` begins with the oldest.
    With --json each event comes with all that it says.

    \b
    hookbox events tail --kind bounced --kind complained
    hookbox events tail --after 1200 --json
    """
    with contextlib.suppress(KeyboardInterrupt):
        documents = _followed(box, after, kinds)
        if as_json:
            terminal.as_json(documents)
            return
        table = GrowingTable(COLUMNS)
        for document in documents:
            table.add(document)


def _followed(box: Box, after: int | None, kinds: Sequence[str]) -> Iterator[Row]:
    """Each event once, although the server may be stopped and started meanwhile. Raises
    OperatorError when none is there to begin with.
    """
    cursor, met, lost = after, False, False
    while True:
        try:
            for sent in server_events.read(box.state, _path(cursor, kinds)):
                if lost:
                    terminal.say("the server is back")
                cursor, met, lost = sent.id, True, False
                if sent.document is not None:
                    yield sent.document
        except OperatorError:
            if not met:
                raise
        if not met:
            raise StoreBusy("the running server did not answer; try again in a moment")
        if not lost:
            terminal.say(f"the server is gone; when it is back, this goes on after event {cursor}")
            lost = True
        box.pause(AGAIN_S)


def _path(after: int | None, kinds: Sequence[str]) -> str:
    asked = [("kinds", kind) for kind in kinds]
    asked += [] if after is None else [("after", str(after))]
    return f"/v1/events/tail?{urlencode(asked)}"
