"""`hookbox backup`: the database in one file."""

from pathlib import Path

import click

from hookbox.cli import backup_lines, terminal
from hookbox.cli.box import Box, pass_box
from hookbox.store import backup
from hookbox.store.backup import Backup
from hookbox.store.secrets import KEY_NAME


@click.command()
@click.argument("place", metavar="FILE", type=click.Path(path_type=Path))
@click.option(
    "--keep",
    type=click.IntRange(1),
    metavar="N",
    help="FILE is a directory: name the backup by the time, and keep only the N newest.",
)
@click.option("--force", is_flag=True, help="Overwrite FILE.")
@click.option(
    "--without-bodies",
    is_flag=True,
    help="To give away: no content, no addresses, no secrets. It cannot be restored.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@pass_box
def command(
    box: Box, place: Path, keep: int | None, force: bool, without_bodies: bool, as_json: bool
) -> None:
    """Put the database into FILE, with the server running or not.

    Everything that was acknowledged before it begins is in it. It is checked before it gets its
    name; until then there is no such file. In a directory it is named by the time. The key that
    opens the sealed secrets is not in it: keep that elsewhere.

    \b
    hookbox backup /mnt/usb/hookbox.db
    hookbox backup /var/backups/hookbox --keep 7
    """
    if keep is not None and not place.is_dir():
        mend = "choose one" if place.exists() else "make it first"
        raise click.UsageError(f"--keep is for directories, and {place} is none; {mend}")
    now, begun = box.clock.now(), box.clock.monotonic()
    target = backup.named_by_time(place, now) if place.is_dir() else place
    taken = backup.take(box.state, target, now, force=force, without_bodies=without_bodies)
    took_s = box.clock.monotonic() - begun
    removed = backup.rotate(place, target, keep) if keep is not None else []
    if as_json:
        terminal.as_json([backup_lines.line(taken, now, took_s, removed)])
    else:
        terminal.facts(backup_lines.facts(taken, took_s, removed))
    if not taken.private:
        terminal.say(f"{target} can be read by others: its file system keeps no permissions")
    if not without_bodies:
        _tell_what_else(box, taken)


def _tell_what_else(box: Box, taken: Backup) -> None:
    """What a new machine needs besides."""
    wanted = f"the configuration {box.config}"
    if taken.counts["secret"]:
        key = f"{KEY_NAME} (in {box.state}, or the service's credential)"
        wanted = f"{key}, without which nobody opens the secrets in it, and {wanted}"
    terminal.say(f"not in it, and needed besides: {wanted}")
