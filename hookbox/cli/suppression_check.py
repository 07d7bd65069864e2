"""`hookbox suppressions check`: may these be mailed? Made to be asked before every mailing."""

import itertools
import sys
from collections.abc import Iterator, Sequence

import click

from hookbox.cli import options, terminal
from hookbox.cli.box import Box, pass_box
from hookbox.store import database, pseudonyms, secrets, suppressions, views
from hookbox.store.suppressions import CHUNK, NOT_AN_ADDRESS, Verdict

DO_NOT_MAIL = 3  # told apart from every failure, so that a script can act on it
NOT_READABLE = 1


@click.command("check")
@click.argument("addresses", metavar="[ADDRESS]...", nargs=-1)
@options.scope("Ask about this list and the global one only.")
@options.as_json
@pass_box
@click.pass_context
def check(
    ctx: click.Context, box: Box, addresses: tuple[str, ...], scope: str | None, as_json: bool
) -> None:
    """May these addresses be mailed? Exits 3 when one of them must not be, 0 otherwise.

    Without ADDRESS, or with `-`, they are read from the standard input, one a line; as many as you
    like. Without --scope every list counts.

    \b
    hookbox suppressions check someone@example.com
    hookbox suppressions check --json < addresses.txt
    """
    asked = iter(addresses) if addresses not in ((), ("-",)) else _lines()
    exit_code = 0
    with database.reading(box.state) as transaction:
        names = pseudonyms.known(transaction, lambda: secrets.load_seal(box.state))
        while chunk := list(itertools.islice(asked, CHUNK)):
            found = suppressions.verdicts(transaction, chunk, scope, names)
            _show(found, as_json=as_json)
            exit_code = max(exit_code, *map(_exit_code, found))
    ctx.exit(exit_code)


def _lines() -> Iterator[str]:
    """What stands on the standard input, blank lines left out."""
    for line in sys.stdin.buffer:
        if text := line.decode("utf-8", "replace").strip():
            yield text


def _exit_code(verdict: Verdict) -> int:
    if verdict.suppressed:
        return DO_NOT_MAIL
    return NOT_READABLE if verdict.reason == NOT_AN_ADDRESS else 0


def _show(found: Sequence[Verdict], *, as_json: bool) -> None:
    if as_json:
        terminal.as_json(map(_line, found))
        return
    click.echo("\n".join(terminal.escaped(_sentence(verdict)) for verdict in found))


def _line(verdict: Verdict) -> views.Line:
    return {
        "address": verdict.address,
        "suppressed": verdict.suppressed,
        "reason": verdict.reason,
        "since": None if verdict.since is None else views.iso(verdict.since),
        "event_id": verdict.event_id,
        "source": verdict.source,
        "scope": verdict.scope,
    }


def _sentence(verdict: Verdict) -> str:
    if verdict.reason == NOT_AN_ADDRESS:
        return f"{verdict.address}: not an address"
    if verdict.since is None:
        return f"{verdict.address}: may be mailed"
    since = terminal.when(views.iso(verdict.since))
    told = f"{verdict.address}: do not mail, {verdict.reason} since {since}"
    if verdict.event_id is not None:
        told += f", event {verdict.event_id} of {verdict.source}"
    return f"{told}, scope {verdict.scope}" if verdict.scope else told
