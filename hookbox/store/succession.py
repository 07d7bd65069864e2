"""Succession: what was restored takes the place of the database, which is set aside whole.

Three files cannot be exchanged in one step, and a database beside another one's WAL is damaged at
the first look at it. So a restored database first gets a name that says it is complete; from then
on whoever opens the box for writing finishes the exchange, however often it is interrupted.
"""

import os
from datetime import UTC, datetime
from pathlib import Path

from hookbox.store import drafts

# The WAL first: an old database without its WAL is only old, a new one with the old WAL is none.
ENDINGS = ("-wal", "-shm", "")


def successor(database: Path) -> Path:
    """The name of a complete database that is to take this one's place."""
    return database.with_name(f"{database.name}.restored")


def appoint(draft: Path, database: Path, now: int) -> None:
    """From here on there is no way back: the draft is complete and will take the place."""
    os.utime(draft, ns=(now * 1_000_000, now * 1_000_000))
    drafts.publish(draft, successor(database))


def take_over(database: Path) -> Path | None:
    """Finish an exchange that was begun; where the old database is now, None when there was none or
    nothing to do. Only for whoever holds the lock.
    """
    restored = successor(database)
    if not restored.exists():
        return None
    # The time is the file's own, so that all the old files get one name whenever this runs.
    at = datetime.fromtimestamp(restored.stat().st_mtime_ns // 1_000_000 / 1000, UTC)
    stamp = f"{at:%Y%m%dT%H%M%S}.{at.microsecond // 1000:03}Z"
    aside = database.with_name(f"{database.name}.before-{stamp}")
    for ending in ENDINGS:
        old = database.with_name(database.name + ending)
        if old.exists():
            old.rename(aside.with_name(aside.name + ending))
    drafts.sync(database.parent)
    restored.rename(database)
    drafts.sync(database.parent)
    return aside if aside.exists() else None
