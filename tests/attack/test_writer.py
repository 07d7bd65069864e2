"""What other ways into the tables do to the ids that the writer gives out, and what a failing
disk does to a delivery that is stored alone.
"""

import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hookbox.clock import ManualClock
from hookbox.errors import StoreFull
from hookbox.model import Admission, BounceClass, Kind, Rotten
from hookbox.store import admissions, database, quarantine, schema, sources
from hookbox.store.writer import Writer
from tests.store.facts import Ledger, said
from tests.store.offers import event, proposal


@pytest.fixture
async def writer(tmp_path: Path) -> AsyncIterator[Writer]:
    path = tmp_path / database.FILE_NAME
    schema.prepare(path)
    made = Writer(path, ManualClock())
    await made.start()
    await made.write(lambda t: sources.remember(t, {"std": "standardwebhooks"}))
    yield made
    await made.stop()


def rotten(content: bytes) -> tuple[Rotten, ...]:
    return (Rotten(reason="unreadable", content=content),)


async def test_unreadable_delivery_is_stored_after_a_person_accepted_another(
    writer: Writer,
) -> None:
    await writer.admit([proposal(rotten=rotten(b"one"))])
    await writer.write(lambda t: quarantine.accept(t, 1, 0))
    assert await writer.admit([proposal(rotten=rotten(b"two"))]) == Admission(quarantined=1)


async def test_unreadable_delivery_is_stored_after_the_worker_set_events_aside(
    writer: Writer,
) -> None:
    await writer.admit([proposal(*(event(str(number)) for number in range(5)))])
    for event_id in range(1, 6):
        await writer.write(lambda t, event_id=event_id: quarantine.set_aside(t, event_id, "x", 0))  # type: ignore[misc]
    assert await writer.admit([proposal(rotten=rotten(b"two"))]) == Admission(quarantined=1)


async def test_full_disk_is_no_reason_to_call_a_delivery_unstorable(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch fails for one delivery's sake, and the disk is full when each is stored alone."""
    full = sqlite3.OperationalError("database or disk is full")
    full.sqlite_errorcode = sqlite3.SQLITE_FULL
    faults = [ValueError("unbindable"), full]
    admit = admissions.admit

    def failing(*given: object) -> list[Admission]:
        if faults:
            raise faults.pop(0)
        return admit(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(admissions, "admit", failing)
    with pytest.raises(StoreFull):
        await writer.admit([proposal(event("good"))])


def test_one_event_may_tell_a_soft_bounce_and_what_overtook_it() -> None:
    ledger = Ledger()
    ledger.tell(said(Kind.BOUNCED, bounce=BounceClass.SOFT), said(Kind.DELIVERED))
    assert [row[3] for row in ledger.status()] == ["delivered"]
