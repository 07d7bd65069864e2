"""What holds for every command: help, README row, exit code, no web framework, no traceback."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from hookbox.cli import COMMANDS, root
from hookbox.store import database
from tests.cli.shell import Shell, delivery

README = (Path(__file__).parents[2] / "README.md").read_text()
[COMMANDS_SECTION] = re.findall(r"^## Commands$.*?(?=^## )", README, re.MULTILINE | re.DOTALL)
HEAVY = (
    "litestar", "uvicorn", "uvloop", "httpx", "httptools", "cryptography", "tomlkit", "asyncio",
)  # fmt: skip


def walk(command: click.Command, ctx: click.Context) -> Iterator[tuple[str, click.Command]]:
    """Every command with what is typed for it."""
    if isinstance(command, click.Group):
        for name in command.list_commands(ctx):
            found = command.get_command(ctx, name)
            assert found is not None
            yield from walk(found, click.Context(found, info_name=name, parent=ctx))
    yield ctx.command_path, command


ROOT = click.Context(root, info_name="hookbox")
EVERY = sorted(walk(root, ROOT))


@pytest.mark.parametrize(("typed", "command"), EVERY, ids=[typed for typed, _ in EVERY])
def test_every_command_and_option_has_help(typed: str, command: click.Command) -> None:
    assert command.help
    options = [each for each in command.params if isinstance(each, click.Option)]
    assert [option.name for option in options if not option.help] == []
    assert typed in command.help, "an example of itself"


@pytest.mark.parametrize("name", COMMANDS)
def test_readme_has_a_row_for_every_command(name: str) -> None:
    [row] = re.findall(rf"^\| `{name}[` ].*", COMMANDS_SECTION, re.MULTILINE)
    command = dict(EVERY)[f"hookbox {name}"]
    verbs = command.list_commands(ROOT) if isinstance(command, click.Group) else []
    assert [verb for verb in verbs if not re.search(rf"\b{verb}\b", row)] == []


def test_readme_has_the_columns_of_every_view(shell: Shell) -> None:
    shell.receive()
    documented = dict(re.findall(r"^\| `(\w+)` \| (\w+(?:, \w+)+) \|$", README, re.MULTILINE))
    with database.reading(shell.state) as transaction:
        names = transaction.execute("SELECT name FROM sqlite_schema WHERE type = 'view'")
        for (name,) in names.fetchall():
            columns = [x[0] for x in transaction.execute(f"SELECT * FROM {name}").description]
            assert documented.pop(name) == ", ".join(columns)
    assert not documented


LOOKING = """
import sys
from hookbox.__main__ import main
try:
    main()
finally:
    print([name for name in {names} if name in sys.modules], file=sys.stderr)
"""


LOOKS = (
    "--help", "events list", "events tail --help", "outbox list", "stats", "quarantine",
    "recipients show ann@example.com", "refusals", "source --help", "suppressions list",
)  # fmt: skip


@pytest.mark.parametrize("words", LOOKS)
def test_command_that_only_looks_loads_nothing_heavy(shell: Shell, words: str) -> None:
    """A command that starts in a tenth of a second gets used."""
    shell.receive(delivery("k"))
    command = [sys.executable, "-c", LOOKING.format(names=HEAVY), *files(shell), *words.split()]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1] == "[]"


def files(shell: Shell) -> tuple[str, ...]:
    return ("--config", str(shell.config), "--state", str(shell.state))


def test_files_may_be_named_by_the_environment(shell: Shell) -> None:
    env = {**os.environ, "HOOKBOX_CONFIG": str(shell.config), "HOOKBOX_STATE": str(shell.state)}
    command = [sys.executable, "-m", "hookbox", "check"]
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    assert str(shell.state) in done.stdout


def test_reader_that_leaves_early_is_no_error(shell: Shell) -> None:
    """As in `hookbox events | head -1`."""
    shell.receive(*(delivery(f"k{n}") for n in range(300)))
    command = [sys.executable, "-m", "hookbox", *files(shell), "events", "--json", "--limit", "300"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.readline()
        child.stdout.close()
        assert child.stderr.read() == b""


@pytest.mark.parametrize(
    "words",
    [
        *("events show", "events replay", "outbox show", "outbox retry", "quarantine show"),
        *("outbox list --event", "outbox list --after", "events list --before"),
        "events tail --after",
    ],
)
@pytest.mark.parametrize("number", [str(2**63), "9" * 5_000, "-1"], ids=["64 bits", "long", "-1"])
def test_number_that_no_row_can_have_is_wrong_usage(shell: Shell, words: str, number: str) -> None:
    ending = ("--", number) if number == "-1" and "--" not in words else (number,)
    assert shell(*words.split(), *ending).exit_code == 2


def test_unknown_command_is_wrong_usage(shell: Shell) -> None:
    result = shell("evnets")
    assert result.exit_code == 2
    assert "evnets" in result.stderr


def test_missing_configuration_exits_78_and_says_how_to_write_one(shell: Shell) -> None:
    shell.config.unlink()
    result = shell("check")
    assert result.exit_code == 78
    assert "hookbox init" in result.stderr


def test_database_of_another_program_is_refused_without_a_traceback(shell: Shell) -> None:
    shell.state.mkdir()
    (shell.state / database.FILE_NAME).write_bytes(b"no database, but long enough to be one" * 99)
    result = shell("events")
    assert result.exit_code == 1
    assert "not a sound hookbox database" in result.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_state_of_another_user_is_told_as_such(shell: Shell) -> None:
    shell.receive()
    shell.state.chmod(0)
    try:
        result = shell("events")
    finally:
        shell.state.chmod(0o700)
    assert result.exit_code == 1
    assert "permission" in result.stderr


def test_shell_completes_the_names_of_sources(shell: Shell) -> None:
    words = f"hookbox {' '.join(files(shell))} events --source s"
    env = {
        **os.environ,
        "_HOOKBOX_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(words.count(" ")),
    }
    done = subprocess.run(
        [sys.executable, "-m", "hookbox"], capture_output=True, text=True, env=env
    )
    assert done.stdout.split() == ["plain,std", "plain,sealed"]
