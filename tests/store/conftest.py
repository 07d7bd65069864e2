"""A real database in a fresh folder, with one source."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from hookbox.clock import ManualClock
from hookbox.store import database, schema, sources
from hookbox.store.writer import Writer


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
