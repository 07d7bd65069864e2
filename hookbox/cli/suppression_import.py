"""`hookbox suppressions import`: a list from another box or another program.

The list is read twice: once to see that all of it can be taken, then to take it. It goes in by
small transactions, since a running server has senders to answer in between; taking it again does no
harm.
"""

import contextlib
import io
import itertools
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, TextIO

import click

from hookbox.cli import door, options, person, terminal
from hookbox.cli.box import Box, pass_box
from hookbox.cli.failures import Failure
from hookbox.cli.suppression_rows import BadRow, rows
from hookbox.store import suppressions
from hookbox.store.connections import Transaction
from hookbox.store.decisions import Verb, Word
from hookbox.store.suppressions import Wanted

CHUNK = 500  # rows a transaction: under 10 ms of the writer's time
COMPLAINTS_MAX = 20  # a file of another kind would fill the screen


@dataclass(slots=True)
class _Seen:
    """What the first reading found."""

    good: int = 0
    lifted: int = 0
    bad: int = 0


@click.command("import")
@click.argument("file", type=click.Path(dir_okay=False, allow_dash=True))
@options.scope("The list for rows that name none. Without it: the global one.")
@click.option("--skip-bad", is_flag=True, help="Take the good rows where others cannot be read.")
@pass_box
def import_suppressions(box: Box, file: str, scope: str | None, skip_bad: bool) -> None:
    """Suppress the addresses of a CSV or JSON lines file, or of the standard input with `-`.

    CSV has a first row with the names of its columns, of which address (or email), since, reason
    and scope count, or is a bare list of addresses. What is suppressed already keeps its earlier
    cause.

    \b
    hookbox suppressions import suppressed.csv
    ssh old.example.com hookbox suppressions export | hookbox suppressions import -
    """
    now = box.clock.now()
    with _opened(file) as stream:
        seen = _look(rows(stream, now, scope or ""))
        if seen.bad and not skip_bad:
            raise Failure("nothing was imported; mend these rows, or leave them out: --skip-bad")
        stream.seek(0)
        good = (row for row in rows(stream, now, scope or "") if isinstance(row, Wanted))
        added = _take(box, good, person.word(box, f"import of {file}"))
    told = f"{added} suppressed, {seen.good - added} were already"
    left = f"; {seen.lifted} lifted ones left out" if seen.lifted else ""
    click.echo(told + left)


@contextlib.contextmanager
def _opened(file: str) -> Iterator[TextIO]:
    """The list as text that can be read twice. What is no UTF-8 shows in the row it stands in."""
    with contextlib.ExitStack() as stack:
        given = sys.stdin.buffer if file == "-" else stack.enter_context(Path(file).open("rb"))
        binary: IO[bytes] = given
        if file == "-" or not given.seekable():
            binary = stack.enter_context(tempfile.TemporaryFile())
            shutil.copyfileobj(given, binary)
            binary.seek(0)
        yield io.TextIOWrapper(binary, encoding="utf-8-sig", errors="surrogateescape", newline="")


def _look(found: Iterable[Wanted | BadRow | None]) -> _Seen:
    seen = _Seen()
    for row in found:
        if row is None:
            seen.lifted += 1
        elif isinstance(row, Wanted):
            seen.good += 1
        else:
            seen.bad += 1
            if seen.bad <= COMPLAINTS_MAX:
                terminal.say(f"line {row.line}: {row.why}")
    if seen.bad > COMPLAINTS_MAX:
        terminal.say(f"and {seen.bad - COMPLAINTS_MAX} more")
    return seen


def _take(box: Box, wanted: Iterator[Wanted], word: Word) -> int:
    added = 0
    while chunk := list(itertools.islice(wanted, CHUNK)):

        def take(transaction: Transaction, chunk: Sequence[Wanted] = chunk) -> door.Fields:
            return {"added": suppressions.add(transaction, chunk, Verb.IMPORT, word)}

        fields = {
            "wanted": [asdict(each) for each in chunk],
            "verb": Verb.IMPORT,
            "who": word.who,
            "reason": word.reason,
        }
        added += door.change(box, "suppressions.add", fields, take)["added"]
    return added
