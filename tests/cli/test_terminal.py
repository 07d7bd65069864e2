"""How things look: alignment, width, escapes, times."""

import os
import pty
import struct
import subprocess
import sys
import termios
from fcntl import ioctl

import pytest

from hookbox.cli.terminal import Column, GrowingTable, escaped, span, table, width
from tests.cli.shell import Shell, delivery

COLUMNS = (Column("N", "n", right=True), Column("NAME", "name", flexible=True), Column("LAST", "x"))


def shown(capsys: pytest.CaptureFixture[str], *rows: dict[str, object]) -> list[str]:
    table(rows, COLUMNS, none="nothing")
    return capsys.readouterr().out.splitlines()


def test_columns_align_whatever_the_script(capsys: pytest.CaptureFixture[str]) -> None:
    """Chinese takes two places a sign, a combining accent none."""
    lines = shown(
        capsys,
        {"n": 1, "name": "日本", "x": "a"},
        {"n": 10, "name": "e\u0301lan", "x": "b"},
    )
    assert lines == [" N  NAME  LAST", " 1  日本  a", "10  e\u0301lan  b"]


def test_no_rows_are_said_beside_the_output(capsys: pytest.CaptureFixture[str]) -> None:
    table((), COLUMNS, none="nothing")
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", "nothing\n")


def test_nothing_is_cut_where_no_terminal_reads(capsys: pytest.CaptureFixture[str]) -> None:
    assert "a" * 500 in shown(capsys, {"n": 1, "name": "a" * 500, "x": None})[1]


def test_long_addresses_are_cut_to_the_terminal(shell: Shell) -> None:
    shell.receive(delivery("k", to=f"{'long.' * 12}name@example.com"))
    outer, inner = pty.openpty()
    ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 110, 0, 0))
    command = [sys.executable, "-m", "hookbox", "--config", str(shell.config)]
    command += ["--state", str(shell.state), "events"]
    env = {**os.environ, "PYTHONIOENCODING": "utf-8"}
    env.pop("COLUMNS", None)
    assert subprocess.run(command, stdin=inner, stdout=inner, env=env).returncode == 0
    os.close(inner)
    told = os.read(outer, 65_536).decode()
    os.close(outer)
    header, row = told.splitlines()
    assert "…" in row
    assert max(width(header), width(row)) <= 110


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain text, übung, 日本", "plain text, übung, 日本"),
        ("\x1b[2J", r"\x1b[2J"),
        ("\x9b2J", r"\x9b2J"),
        ("a\nb\tc\r", r"a\nb\tc\r"),
        ("\u202eevil", r"\u202eevil"),
        ("\x00\x7f", r"\x00\x7f"),
        ("\U000e0041", r"\U000e0041"),
        ("\ud800", r"\ud800"),
    ],
)
def test_what_could_steer_a_terminal_is_written_out(text: str, expected: str) -> None:
    assert escaped(text) == expected


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0, "0 s"), (119, "119 s"), (120, "2 min"), (7199, "119 min"), (7200, "2 h"), (2e5, "2 d")],
)
def test_span_is_as_exact_as_one_can_feel(seconds: float, expected: str) -> None:
    assert span(seconds) == expected


def test_growing_table_gives_a_column_more_room_when_a_row_needs_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    table = GrowingTable([(Column("ID", "id", right=True), 4), (Column("NAME", "name"), 6)])
    assert not capsys.readouterr().out  # no titles above nothing
    for name in ("short", "a longer one", "x"):
        table.add({"id": 1, "name": name, "more": 0})
    table.add({"id": 12_345, "name": "\x1b[2J"})
    assert capsys.readouterr().out.splitlines() == [
        "  ID  NAME",
        "   1  short",
        "   1  a longer one",
        "   1  x",
        r"12345  \x1b[2J",
    ]


def test_titles_of_a_growing_table_stand_above_its_first_row(
    capsys: pytest.CaptureFixture[str],
) -> None:
    table = GrowingTable([(Column("NAME", "name"), 4), (Column("LAST", "x"), 4)])
    table.add({"name": "a longer one", "x": "a"})
    assert capsys.readouterr().out.splitlines() == ["NAME          LAST", "a longer one  a"]
