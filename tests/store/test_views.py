"""How the pages are found: a list stays quick however much is stored."""

from collections.abc import Callable
from pathlib import Path

import pytest

from hookbox.store import database, views
from hookbox.store.connections import Transaction
from hookbox.store.views import EventFilter, Page


def plan(path: Path, read: Callable[[Transaction], object]) -> list[str]:
    """How SQLite goes about what `read` asks."""
    asked: list[str] = []
    with database.reading(path.parent) as transaction:
        transaction.set_trace_callback(asked.append)
        read(transaction)
        transaction.set_trace_callback(None)
        return [row["detail"] for row in transaction.execute(f"EXPLAIN QUERY PLAN {asked[0]}")]


@pytest.mark.parametrize("page", [Page(limit=50), Page(limit=50, after=7), Page(limit=9, before=7)])
@pytest.mark.parametrize(
    "wanted",
    [EventFilter(), EventFilter(source="std"), EventFilter(kind="bounced"), EventFilter(key="k")],
)
def test_page_of_events_is_read_by_id_and_never_sorted(
    path: Path, wanted: EventFilter, page: Page
) -> None:
    """Sorting would read every event of a busy source to show the last fifty."""
    steps = plan(path, lambda transaction: views.events(transaction, wanted, page))
    assert not [step for step in steps if "TEMP B-TREE" in step]
    assert steps[0].startswith(("SCAN e", "SEARCH e USING INTEGER PRIMARY KEY"))


def test_one_event_is_found_by_its_identity(path: Path) -> None:
    steps = plan(path, lambda transaction: views.event_by_key(transaction, "std", "k"))
    assert any("INDEX event_identity (source_id=? AND key=?)" in step for step in steps)
    assert not [step for step in steps if step.startswith("SCAN")]


def test_what_was_done_about_an_event_is_found_by_its_index(path: Path) -> None:
    for read in (views.notifications, views.outbox, views.attempts):
        steps = plan(path, lambda transaction, read=read: read(transaction, 1))
        assert not [step for step in steps if step.startswith("SCAN")], read


def test_instant_is_written_as_the_views_write_it(path: Path) -> None:
    with database.reading(path.parent) as transaction:
        for instant in (0, 1_700_000_000_001, 1_700_000_000_999, 4_102_444_800_000):
            statement = "SELECT strftime('%Y-%m-%dT%H:%M:%fZ', ? / 1000.0, 'unixepoch')"
            [written] = transaction.execute(statement, (instant,)).fetchone()
            assert views.iso(instant) == written
