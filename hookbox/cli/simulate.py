"""`hookbox simulate`: one correctly signed request through the real HTTP path, seen to its end."""

import asyncio
import http.client
import json
from dataclasses import dataclass

import click

from hookbox.cli import door, options, terminal
from hookbox.cli.box import Box, pass_box
from hookbox.errors import OperatorError
from hookbox.model import Kind
from hookbox.settings import Listen
from hookbox.store import database, views
from hookbox.store.views import Line

ANSWER_MAX_S = 10.0  # no sender waits longer
APPLIED_MAX_S = 10.0  # the worker gives way to senders, but never for longer than a second
LOOK_EVERY_S = 0.02
HERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  (where "everywhere" is, seen from here)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the public door said. `word` is the `status` in it, where there is one."""

    status: int
    word: str
    took_ms: float


@click.command()
@options.source_argument
@click.argument("kind", metavar="KIND", type=click.Choice([kind.value for kind in Kind]))
@click.option("--to", required=True, metavar="ADDRESS", help="The recipient it is about.")
@pass_box
def command(box: Box, source: str, kind: str, to: str) -> None:
    """Send the running server an event as the sender of SOURCE would, and follow it.

    The event is stored like any other, and marked `simulate`.

    \b
    hookbox simulate demo bounced --to someone@example.com
    """
    signed = door.ask(box.state, "simulate", {"source": source, "kind": kind, "to": to})
    if signed is None:
        raise OperatorError(f"no server is running on {box.state}; start it: {box.hint('serve')}")
    answer = _sent(box, Listen.parse(signed["listen"]), source, signed)
    event = _stored(box, source, signed["key"], answer)
    proof = event["verified_by"]
    click.echo(f"verified by the {'certificate' if proof == 'none' else f'{proof} secret'}")
    click.echo(f"stored as event {event['id']}")
    click.echo(f"acknowledged in {answer.took_ms:.0f} ms ({answer.status})")
    _tell_outcome(box, asyncio.run(_followed(box, event)))


def _sent(box: Box, listen: Listen, source: str, signed: door.Fields) -> Answer:
    """The answer of the public door. Raises OperatorError when there is none."""
    connection: http.client.HTTPConnection
    if listen.path is not None:
        connection = door.SocketConnection(listen.path, ANSWER_MAX_S)
    else:
        host = HERE.get(listen.host, listen.host)
        connection = http.client.HTTPConnection(host, listen.port, timeout=ANSWER_MAX_S)
    started = box.clock.monotonic()
    try:
        body = signed["body"].encode("latin-1")
        connection.request("POST", f"/hooks/{source}", body, dict(signed["headers"]))
        response = connection.getresponse()
        told = response.read()
    except (OSError, http.client.HTTPException) as error:
        raise OperatorError(
            f"the server runs, but its public door at {listen.text} does not answer: {error!r}"
        ) from error
    finally:
        connection.close()
    took_ms = (box.clock.monotonic() - started) * 1000
    return Answer(status=response.status, word=_word(told), took_ms=took_ms)


def _word(told: bytes) -> str:
    try:
        return str(json.loads(told)["status"])
    except (ValueError, TypeError, KeyError):
        return told[:80].decode("utf-8", "replace")


def _stored(box: Box, source: str, key: str, answer: Answer) -> Line:
    """The event that came of it. Raises OperatorError that says why there is none."""
    with database.reading(box.state) as transaction:
        event = views.event_by_key(transaction, source, key)
    if event is not None:
        return event
    refusals = box.hint(f"refusals --source {source}")
    why = {
        "refused": f"refused; the reason: {refusals}",
        "quarantined": f"set aside; see: {box.hint(f'quarantine list --source {source}')}",
        "busy": f"told to come back later; the reason: {refusals}, or in the server's log",
        "not found": "not known there; does another program listen at that address?",
    }
    told = why.get(answer.word, f"answered with {answer.word!r}, and nothing was stored")
    raise OperatorError(f"the request was {told} (status {answer.status})")


async def _followed(box: Box, event: Line) -> Line:
    """The event once it is applied, or as it is when that takes too long."""
    deadline = box.clock.monotonic() + APPLIED_MAX_S
    while event["state"] == "pending" and box.clock.monotonic() < deadline:
        await box.clock.sleep(LOOK_EVERY_S)
        with database.reading(box.state) as transaction:
            event = views.event(transaction, int(str(event["id"]))) or event
    return event


def _tell_outcome(box: Box, event: Line) -> None:
    """What the event was understood to say. Raises OperatorError when it was not applied."""
    if event["state"] != "applied":
        show = box.hint(f"events show {event['id']}")
        raise OperatorError(f"it is not applied, its state is {event['state']}; see: {show}")
    with database.reading(box.state) as transaction:
        said = views.notifications(transaction, int(str(event["id"])))
    for notification in said:
        bounce, effect = notification["bounce_class"], notification["effect"]
        sentence = f"applied: {terminal.plain(notification['recipient'])} {notification['kind']}"
        sentence += f" ({bounce})" if bounce else ""
        sentence += f" → {effect}" if effect else ""
        click.echo(terminal.escaped(sentence))
