"""`hookbox restore`: a backup in the place of the database, and what to do then."""

import os
import pwd
from collections.abc import Iterator
from pathlib import Path

import click

from hookbox.cli import backup_lines, terminal
from hookbox.cli.box import Box, pass_box
from hookbox.errors import OperatorError, StoreError
from hookbox.rules.instants import written
from hookbox.store import database, secrets
from hookbox.store.restore import Restored, restore


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@pass_box
def command(box: Box, file: Path) -> None:
    """Put the backup FILE in the place of the database. Stop the server first.

    FILE is checked, copied beside the database and checked again before anything is changed. The
    database that was there is set aside, not removed.

    \b
    systemctl stop hookbox.service hookbox.socket
    hookbox restore /var/backups/hookbox/hookbox-20260131T030000Z.db
    """
    _check_user(box)
    restored = restore(box.state, file, box.clock.now())
    terminal.facts(_facts(box, file, restored))
    for step in _steps(box, restored):
        terminal.say(f"- {step}")


def _check_user(box: Box) -> None:
    """What root writes here, hookbox's own user could not open. Raises OperatorError."""
    if os.geteuid() != 0 or not box.state.exists() or (owner := box.state.stat().st_uid) == 0:
        return
    try:
        name = pwd.getpwuid(owner).pw_name
    except KeyError:
        name = f"#{owner}"
    raise OperatorError(
        f"{box.state} belongs to {name}, who could not open what root writes there; "
        f"nothing was changed. Run it as: sudo -u '{name}' {box.hint('restore FILE')}"
    )


def _facts(box: Box, file: Path, restored: Restored) -> Iterator[tuple[str, str]]:
    yield "restored", str(box.state / database.FILE_NAME)
    yield "from", str(file)
    yield "taken", _when(restored.taken_at)
    yield "newest delivery", _when(restored.newest_at)
    yield "holds", backup_lines.held(restored.counts)
    yield "set aside", terminal.plain(restored.aside)


def _when(at: int | None) -> str:
    return terminal.when(None if at is None else written(at))


def _steps(box: Box, restored: Restored) -> Iterator[str]:
    """What a person does next, in order."""
    yield _about_key(box)
    yield (
        "what was brought to destinations since the backup is brought again, under the same ids; "
        f"to hold it back: {box.hint('outbox pause NAME')}"
    )
    yield f"start the server: {box.hint('serve')}, or systemctl start hookbox.socket hookbox"
    yield (
        "what came in since the backup: sources with `poll` fetch it by themselves, and whoever "
        "got no 2xx comes back; of others, it is only in the database that was set aside"
    )
    if restored.aside:
        yield f"once all is well, remove {restored.aside} and what lies beside it under that name"


def _about_key(box: Box) -> str:
    with database.reading(box.state) as transaction:
        sealed = secrets.all_sealed(transaction)
    if not sealed:
        return "it holds no sealed secrets, so no key file is needed"
    try:
        seal = secrets.load_seal(box.state)
        for each in sealed:
            seal.open(each)
    except StoreError as error:
        return f"first of all: {error}"
    return "the key file opens every secret in it"
