"""`hookbox recipients erase`: forget an address, but not that it must not be mailed."""

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from hookbox.cli import door, options, person, terminal
from hookbox.cli.box import Box, pass_box
from hookbox.cli.failures import Failure
from hookbox.store import database, secrets
from hookbox.store.decisions import Word

if TYPE_CHECKING:
    from hookbox.store.writer import Writer

PATIENCE_S = 3_600.0  # every byte is looked at: some seconds a gigabyte, more beside senders


@click.command("erase")
@click.argument("address")
@person.reason("Why; kept with your name.")
@options.as_json
@pass_box
def erase_recipient(box: Box, address: str, reason: str, as_json: bool) -> None:
    """Forget an address: it goes from everything that is stored, and so does every content in
    which it is mentioned.

    What happened to its mail stays under a name that only this box can make from the address; so
    that, if it is suppressed, `suppressions check` still says so. Backups made before still hold
    it, and an event that comes later is stored as any other.

    \b
    hookbox recipients erase someone@example.com --reason "asked us to, letter of 3 May"
    """
    word = person.word(box, reason)
    fields = {"address": address, "who": word.who, "reason": word.reason}
    done = door.ask(box.state, "recipients.erase", fields, PATIENCE_S)
    if done is None:
        done = _erased_alone(box, address, word)
    if as_json:
        terminal.as_json([done])
    else:
        click.echo(f"it goes by the name {done['name']} now")
        click.echo(f"{done['statuses']} statuses and {done['rows']} other rows were changed")
    if done["pending"]:
        raise Failure(
            f"{done['pending']} contents that mention it are still to be applied, and were left; "
            "run this again when they are (see: hookbox events list)"
        )
    if not done["folded"]:
        raise Failure(
            "somebody reads the database, so old pages may still hold it; run this again when "
            "that is over"
        )


def _erased_alone(box: Box, address: str, word: Word) -> door.Fields:
    import asyncio

    from hookbox.cli.alone import alone
    from hookbox.flows.erase import Erasures

    async def erase(writer: "Writer") -> door.Fields:
        path, seal = box.state / database.FILE_NAME, secrets.load_seal(box.state)
        erasures = Erasures(writer, path, seal, box.clock, asyncio.Lock())
        return asdict(await erasures.erase(address, word))

    return alone(box, erase)
