"""A state directory with some of everything in it, written the way the box writes it."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hookbox.model import Admission, Rotten
from hookbox.store import admissions, database, jobs
from hookbox.store.admissions import Ids
from hookbox.store.connections import Transaction
from hookbox.store.jobs import Lease
from hookbox.store.state import prepare_state
from tests.store.offers import event, proposal

Run = Callable[[Callable[[Transaction], Any]], Any]

NOW = 1_700_000_000_000
HOUR = 3_600_000


def filled(state: Path, *, events: int = 3) -> Path:
    """A box that stopped with a job running; its state directory."""
    prepare_state(state)
    with database.exclusive(state) as run:
        run(lambda t: t.execute("INSERT INTO source (name, provider) VALUES ('std', 'x')"))
        store(run, *(f"k{number}" for number in range(events)))
        run(lambda t: jobs.claim(t, "apply", Lease(instance=1, token=1), now=NOW, horizon=NOW + 1,
                                 limit=1))  # fmt: skip
    return state


def store(run: Run, *keys: str) -> None:
    """Admit one delivery for each key."""
    rotten = Rotten(content=b"?", reason="broken", key="r")

    def work(transaction: Transaction) -> None:
        offers = [
            proposal(event(key, key.encode()), body=key.encode(), rotten=(rotten,)) for key in keys
        ]
        admissions.admit(transaction, offers, Ids(), NOW)

    run(work)


def keys(state: Path) -> list[str]:
    with database.reading(state) as connection:
        return [row["key"] for row in connection.execute("SELECT key FROM event ORDER BY id")]


def digest(path: Path) -> str:
    """So that a test can say that not one byte was changed."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def names(folder: Path) -> list[str]:
    """What lies in a directory."""
    return sorted(each.name for each in folder.iterdir())


def admitted(transaction: Transaction, *new: str) -> Admission:
    """Offer one delivery with these events."""
    offers = [proposal(*(event(key, key.encode()) for key in new))]
    return admissions.admit(transaction, offers, Ids(), NOW)[0]
