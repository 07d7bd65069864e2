"""What a person sees: aligned tables, readable times, and nothing that could steer the terminal.

Text that came from outside is shown through `escaped` and in no other way: a sender may put escape
sequences into a subject, and some terminals obey them.
"""

import contextlib
import json
import shutil
import sys
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import click

GAP = 2
NARROWEST = 12  # a column is never cut shorter than this; the terminal wraps instead
NOTHING = "-"


def escaped(text: str, keep: str = "") -> str:
    """The text with every character that is no ink or plain blank written out, as in `\\x1b`."""
    if text.isprintable():
        return text
    return "".join(
        sign if sign.isprintable() or sign in keep else sign.encode("unicode_escape").decode()
        for sign in text
    )


def plain(value: object) -> str:
    """A value as it is."""
    return NOTHING if value is None or value == "" else str(value)


def when(value: object) -> str:
    """An ISO instant as local time, to the second."""
    if not isinstance(value, str):
        return NOTHING
    return f"{datetime.fromisoformat(value).astimezone():%Y-%m-%d %H:%M:%S}"


def minute(value: object) -> str:
    """An ISO instant as local time, to the minute."""
    return when(value).rpartition(":")[0] or NOTHING


def exactly(value: object) -> str:
    """An ISO instant as local time with milliseconds and its zone."""
    if not isinstance(value, str):
        return NOTHING
    at = datetime.fromisoformat(value).astimezone()
    return f"{at:%Y-%m-%d %H:%M:%S}.{at.microsecond // 1000:03} {at:%z}"


def span(seconds: float) -> str:
    """A length of time, as exact as one can feel: `42 s`, `3 min`, `5 h`, `12 d`."""
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{int(seconds // length)} {unit}"
    return f"{int(seconds)} s"


def amount(size: float) -> str:
    """A number of bytes, as exact as one can feel: `312 bytes`, `4 KB`, `1.2 GB`."""
    for unit, length in (("GB", 1e9), ("MB", 1e6)):
        if size >= length:
            return f"{size / length:.1f} {unit}"
    return f"{size / 1e3:.0f} KB" if size >= 1e3 else f"{int(size)} bytes"


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table: its title, the field it shows and how.

    `flexible` columns are cut where the terminal is too narrow for all of them.
    """

    title: str
    field: str
    shown: Callable[[object], str] = plain
    right: bool = False
    flexible: bool = False


Row = Mapping[str, object]


def as_json(rows: Iterable[Row]) -> None:
    """Rows for a program: one object a line, in printable ASCII alone."""
    for row in rows:
        click.echo(json.dumps(row).replace("\x7f", "\\u007f"))


def table(rows: Sequence[Row], columns: Sequence[Column], none: str) -> None:
    """Rows for a person; `none` is said, beside the output, when there are none."""
    if not rows:
        say(none)
        return
    cells = [_cells(row, columns) for row in rows]
    lines = [[column.title for column in columns], *cells]
    widths = [max(map(width, place)) for place in zip(*lines, strict=True)]
    _narrow(widths, columns)
    for line in lines:
        click.echo(_laid_out(line, columns, widths))


class GrowingTable:
    """A table whose rows come one after the other. A column has the room that it is given, and more
    from the first row on that needs it.
    """

    def __init__(self, columns: Sequence[tuple[Column, int]]) -> None:
        self._columns = [column for column, _ in columns]
        self._widths = [room for _, room in columns]
        self._begun = False

    def add(self, row: Row) -> None:
        cells = _cells(row, self._columns)
        wider = zip(self._widths, map(width, cells), strict=True)
        self._widths = [max(pair) for pair in wider]
        if not self._begun:
            self._say([column.title for column in self._columns])
            self._begun = True
        self._say(cells)

    def _say(self, cells: Sequence[str]) -> None:
        widths = list(self._widths)
        _narrow(widths, self._columns)
        click.echo(_laid_out(cells, self._columns, widths))


def _cells(row: Row, columns: Sequence[Column]) -> list[str]:
    return [escaped(column.shown(row[column.field])) for column in columns]


def section(title: str, rows: Sequence[Row], columns: Sequence[Column]) -> None:
    """A titled table, and nothing at all when there are no rows."""
    if rows:
        click.echo(f"\n{title}")
        table(rows, columns, none="")


def say(text: str) -> None:
    """Something for the person that is no part of the output."""
    click.echo(escaped(text, keep="\n"), err=True)


def content(text: object, title: str = "Content") -> None:
    """An event's content: JSON laid out, anything else as it stands; nothing where it is gone."""
    click.echo(f"\n{title}")
    if not isinstance(text, str):
        click.echo("(no longer kept)")
        return
    with contextlib.suppress(ValueError, RecursionError):
        text = json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    click.echo(escaped(text, keep="\n\t"))


def facts(pairs: Iterable[tuple[str, str]]) -> None:
    """Names and values, one pair a line, the values in one column."""
    shown = [(escaped(name), escaped(value)) for name, value in pairs]
    widest = max((width(name) for name, _ in shown), default=0)
    for name, value in shown:
        click.echo(f"{_padded(name, widest + GAP)}{value}")


def width(text: str) -> int:
    """How many places a terminal takes for the text."""
    if text.isascii():
        return len(text)
    return sum(_places(sign) for sign in text)


def _places(sign: str) -> int:
    if unicodedata.category(sign) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(sign) in "WF" else 1


def _narrow(widths: list[int], columns: Sequence[Column]) -> None:
    """Take from the widest flexible column until the table fits the terminal, if there is one."""
    flexible = [place for place, column in enumerate(columns) if column.flexible]
    if not sys.stdout.isatty() or not flexible:
        return
    excess = sum(widths) + GAP * (len(widths) - 1) - shutil.get_terminal_size().columns
    for _ in range(excess):
        widest = max(flexible, key=widths.__getitem__)
        widths[widest] = max(NARROWEST, widths[widest] - 1)


def _laid_out(line: Sequence[str], columns: Sequence[Column], widths: Sequence[int]) -> str:
    cells = [
        _padded(_cut(cell, room), room, right=column.right)
        for cell, column, room in zip(line, columns, widths, strict=True)
    ]
    return (" " * GAP).join(cells).rstrip()


def _padded(text: str, room: int, *, right: bool = False) -> str:
    blank = " " * (room - width(text))
    return blank + text if right else text + blank


def _cut(text: str, room: int) -> str:
    if width(text) <= room:
        return text
    kept, used = "", 1  # one place for the sign that something is missing
    for sign in text:
        used += _places(sign)
        if used > room:
            break
        kept += sign
    return kept + "…"
