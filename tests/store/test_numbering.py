"""Numbers: after a restore none that was ever given out names anything else."""

from pathlib import Path

from hookbox.store import admissions, backup, database, forwarding, jobs, numbering, quarantine
from hookbox.store.admissions import Ids
from hookbox.store.forwarding import Onward
from hookbox.store.restore import restore
from tests.store.boxes import HOUR, NOW, admitted
from tests.store.offers import event, proposal

TARGET = forwarding.target_of("app")


def last_ids(state: Path) -> dict[str, int]:
    with database.reading(state) as connection:
        return {
            table: connection.execute(f"SELECT max(id) FROM {table}").fetchone()[0]
            for table in ("event", "delivery", "quarantine_entry")
        }


def test_ids_after_a_restore_are_past_all_that_was_ever_given_out(state: Path, taken: Path) -> None:
    with database.exclusive(state) as run:
        before = last_ids(state)
        offers, ids = [proposal(event("last"))], Ids(event=5_000_000_000)
        run(lambda t: admissions.admit(t, offers, ids, NOW))
    restore(state, taken, NOW + HOUR)
    with database.exclusive(state) as run:
        assert run(lambda t: admitted(t, "later", "newer")).new == 2
        run(lambda t: quarantine.set_aside(t, 1, "broken", NOW))
        run(lambda t: quarantine.accept(t, 1, NOW))
    after = last_ids(state)
    assert all(after[table] > before[table] + numbering.IDS_STEP for table in after)
    assert after["event"] > 5_000_000_000


def test_ids_are_past_them_though_the_old_database_is_gone(taken: Path, tmp_path: Path) -> None:
    restore(tmp_path / "new", taken, NOW)
    with database.exclusive(tmp_path / "new") as run:
        run(lambda t: admitted(t, "later"))
    assert last_ids(tmp_path / "new")["event"] > numbering.IDS_STEP


def test_each_restore_goes_further(state: Path, taken: Path) -> None:
    seen = []
    for hour in range(1, 4):
        restore(state, taken, NOW + hour * HOUR)
        with database.exclusive(state) as run:
            run(lambda t, hour=hour: admitted(t, f"new{hour}"))
        seen.append(last_ids(state)["event"])
    assert seen == sorted(set(seen))


def test_replays_after_a_restore_have_numbers_that_no_destination_has_seen(
    state: Path, tmp_path: Path
) -> None:
    onward = Onward(event_id=1, target=TARGET, again=True)
    finish = "UPDATE job SET state = 'cancelled', finished_at = 1, token = NULL, instance = NULL"
    with database.exclusive(state) as run:
        run(lambda t: forwarding.enqueue(t, [onward], NOW))
        run(lambda t: t.execute(finish))
        path = backup.take(state, tmp_path / "b.db", NOW).path
        assert run(lambda t: jobs.replay(t, 1, TARGET, NOW)) == 1
    restore(state, path, NOW + HOUR)
    with database.exclusive(state) as run:
        assert run(lambda t: jobs.replay(t, 1, TARGET, NOW)) > numbering.REPLAYS_STEP
        run(lambda t: t.execute(finish))
        run(lambda t: forwarding.enqueue(t, [onward], NOW))
        other = Onward(event_id=2, target=TARGET)
        run(lambda t: forwarding.enqueue(t, [other], NOW))
    with database.reading(state) as connection:
        asked = "SELECT event_id, replay FROM job WHERE target = ? ORDER BY id"
        told = [tuple(row) for row in connection.execute(asked, (TARGET,))]
    # The first bringing keeps the event's own key: that is how a destination knows it again.
    assert told == [(1, 0), (1, 2_001), (1, 2_002), (2, 0)]
