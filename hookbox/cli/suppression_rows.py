"""Reading lists of suppressed addresses: CSV or JSON lines, from another box or another program.

A row is what it says or a complaint with its line number; nothing is guessed.
"""

import csv
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TextIO

from hookbox.rules.addresses import bare
from hookbox.rules.instants import instant
from hookbox.rules.suppression import Cause
from hookbox.store.suppressions import Wanted

# What other programs call the column.
ADDRESS_NAMES = ("address", "email", "email address", "recipient")
DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")

Fields = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class BadRow:
    """A row that cannot be taken, and why."""

    line: int
    why: str


def rows(stream: TextIO, now: int, scope: str) -> Iterator[Wanted | BadRow | None]:
    """Every row of a list; None for one that was lifted where it comes from.

    `now` and `scope` are for rows that do not say since when, or which list.
    """
    first = stream.readline()
    stream.seek(0)
    read = _json_lines if first.lstrip().startswith("{") else _csv_rows
    for line, fields in read(stream):
        yield fields if isinstance(fields, BadRow) else _row(line, fields, now, scope)


def _row(line: int, fields: Fields, now: int, scope: str) -> Wanted | BadRow | None:
    if fields.get("lifted_at"):
        return None
    text = next((fields[name] for name in ADDRESS_NAMES if fields.get(name)), "")
    address = bare(text)
    if address is None:
        return BadRow(line=line, why=f"{_short(text)} is not an address")
    since = _instant(fields["since"]) if fields.get("since") else now
    if since is None:
        return BadRow(line=line, why=f"{_short(fields['since'])} is not a time")
    scope = str(fields.get("scope") or scope)
    if not scope.isprintable():
        return BadRow(line=line, why=f"{_short(scope)} is no name of a list")
    cause = _cause(fields.get("reason"))
    return Wanted(address=address, cause=cause, since=min(since, now), scope=scope)


def _instant(told: object) -> int | None:
    """A time, or the first moment of a day."""
    return instant(f"{told}T00:00") if DAY.fullmatch(str(told)) else instant(told)


def _short(value: object) -> str:
    return f"{value!r:.60}"


def _cause(told: object) -> Cause:
    """The reason, where it is one of our own words."""
    return next((cause for cause in Cause if cause == told), Cause.IMPORTED)


def _json_lines(stream: TextIO) -> Iterator[tuple[int, Fields | BadRow]]:
    for line, text in enumerate(stream, 1):
        if text.isspace():
            continue
        try:
            fields = json.loads(text)
        except (ValueError, RecursionError):
            fields = None
        readable = isinstance(fields, dict)
        yield line, fields if readable else BadRow(line=line, why="not a JSON object")


def _csv_rows(stream: TextIO) -> Iterator[tuple[int, Fields | BadRow]]:
    """With a row of names first, or a bare list of addresses."""
    sheet = csv.reader(stream, strict=True)
    names: Sequence[str] = ()
    while True:
        line = sheet.line_num + 1
        try:
            cells = next(sheet)
        except StopIteration:
            return
        except csv.Error as error:
            yield line, BadRow(line=line, why=str(error))
            continue
        if not any(cells):
            continue
        if not names:
            names = [cell.strip().lower() for cell in cells]
            if any(name in names for name in ADDRESS_NAMES):
                continue
            names = ADDRESS_NAMES[:1]
        yield line, dict(zip(names, cells, strict=False))
