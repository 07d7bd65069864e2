"""How jobs are found: claiming stays quick however many of them wait."""

from pathlib import Path

import pytest

from hookbox.store import database, jobs

NOW = 1_700_000_000_000
ASKED = {
    "target": jobs.APPLY,
    "instance": 1,
    "token": 1,
    "now": NOW,
    "horizon": NOW + 3_600_000,
    "limit": 100,
    "sources": "[]",
}


@pytest.mark.parametrize(
    ("statement", "found_by"),
    [
        (jobs.CLAIM_FRESH, "job_due (target=? AND run_at<?)"),
        (jobs.CLAIM_SUSPECT, "job_suspect (target=? AND run_at<?)"),
        (jobs.MEND_DUE, "job_due (target=? AND run_at>?)"),
        (jobs.NEXT_DUE, "job_due (target=?)"),
        (jobs.RELEASE, "job_held (target=?)"),
        (jobs.TAKE_BACK, "job_running (instance<?)"),
    ],
)
def test_jobs_are_found_by_an_index_of_their_state(
    path: Path, statement: str, found_by: str
) -> None:
    """Every claim and every reload holds senders up, so none may look through the whole queue."""
    asked = ASKED | {"crashes_max": jobs.CRASHES_MAX}
    with database.reading(path.parent) as transaction:
        steps = [
            row["detail"] for row in transaction.execute(f"EXPLAIN QUERY PLAN {statement}", asked)
        ]
    assert any(step.endswith(f"INDEX {found_by}") for step in steps), steps
    assert not [step for step in steps if "TEMP B-TREE" in step]
