"""A real database in a fresh folder, with one source."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from hookbox.clock import ManualClock
from hookbox.store import backup, database, schema, sources
from hookbox.store.writer import Writer
from tests.store.boxes import NOW, filled, store


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A prepared, empty database."""
    place = tmp_path / database.FILE_NAME
    schema.prepare(place)
    return place


@pytest.fixture
async def writer(path: Path, clock: ManualClock) -> AsyncIterator[Writer]:
    """A started writer that knows source 1, `std`."""
    made = Writer(path, clock)
    await made.start()
    await made.write(lambda t: sources.remember(t, {"std": "standardwebhooks"}))
    yield made
    await made.stop()


Rows = Callable[[str], list[tuple[object, ...]]]


@pytest.fixture
def rows(path: Path) -> Rows:
    """Run a query on a read connection of its own, as the sqlite3 shell would."""

    def query(sql: str) -> list[tuple[object, ...]]:
        with database.reading(path.parent) as connection:
            return [tuple(row) for row in connection.execute(sql)]

    return query


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return filled(tmp_path / "state")


@pytest.fixture
def taken(state: Path, tmp_path: Path) -> Path:
    """A backup, after which the box went on for a while."""
    path = backup.take(state, tmp_path / "b.db", NOW).path
    with database.exclusive(state) as run:
        store(run, "later", "latest")
    return path
