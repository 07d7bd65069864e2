"""Every statement that is asked often, or of large tables, finds its rows by an index."""

from pathlib import Path

import pytest

from hookbox.store import (
    admissions,
    cursors,
    database,
    differences,
    documents,
    early,
    effects,
    events,
    feed,
    gaps,
    history,
    ledger,
    notifications,
    places,
    quarantine,
    ratchet,
    recipients,
    statuses,
    suppression_lists,
    suppressions,
)

ASKED = {
    "addresses": '["ann@example.com"]',
    "address": "ann@example.com",
    "after": 0,
    "before": 9,
    "decision_id": 1,
    "id": 1,
    "ids": "[1]",
    "key": "k",
    "lift_id": 1,
    "keys": '["k"]',
    "limit": 10,
    "looked_at": 10,
    "message_id": "",
    "messages": '["m"]',
    "recipient": "",
    "scope": "",
    "source": "std",
    "source_id": 1,
    "sources": "[1]",
    "status": "bounced",
    "url": "",
    "wanted": '[[1, "m", "ann@example.com"]]',
}
# What a statement may walk through: the list that was asked about, and small tables.
WALKED = ("json_each", "wanted", "told", "concerned", "(subquery", "constant")


def newest(where: str) -> str:
    """A page of recipients."""
    return recipients.PAGE.format(
        chosen=recipients.CHOSEN, where=where, inside=">=", edge="min", order="DESC"
    )


STATEMENTS = {
    "verdicts": suppressions.VERDICTS,
    "standings": ratchet.SUPPRESSIONS,
    "lifted events": ratchet.LIFTED_EVENTS,
    "meanings": notifications.MEANINGS,
    "repeats": notifications.REPEATS,
    "written": notifications.WRITTEN,
    "statuses": statuses.STATUSES,
    "soft times": statuses.SOFT_TIMES,
    "last delivered": statuses.LAST_DELIVERED,
    "story": recipients.STORY,
    "story's suppressions": recipients.SUPPRESSIONS,
    "story's causes": recipients.CAUSES,
    "story's places": recipients.PLACES,
    "recipients": newest("t.event_id < :before"),
    "recipients of one address": newest(recipients.CONDITIONS["address"]),
    "suppressions": f"{suppression_lists.CHOSEN} WHERE id < :before ORDER BY id DESC LIMIT :limit",
    "history's events": history.EVENTS,
    "history's decisions": history.DECISIONS,
    "history's statuses": history.STATUSES,
    "history's causes": history.CAUSES,
    "words given": history.WORD_GIVEN,
    "lifted": history.LIFTED,
    "lifted causes": history.LIFTED_CAUSES,
    "statuses of addresses": differences.STATUSES_OF,
    "standing suppressions": differences.SUPPRESSIONS,
    "suppressions of addresses": differences.SUPPRESSIONS_OF,
    "what events said": differences.SAID,
    "effects": differences.EFFECTS,
    "feed": feed.AHEAD,
    "end of the feed": feed.END,
    "sizes of contents": events.SIZES,
    "documents": documents.EVENTS_BY_ID,
    "what documents say": documents.SAID,
    "an effect that happens once": effects.READ,
    "cursor": cursors.CURSOR,
    "open gaps": gaps.OPEN_ONES,
    "number of open gaps": gaps.COUNT_OPEN,
    "known keys": early.KNOWN,
    "early under keys": early.UNDER_KEYS,
    "overdue": early.OVERDUE,
    "inboxes": places.INBOXES,
    "statuses of messages": places.STATUSES,
}


@pytest.mark.parametrize("statement", STATEMENTS.values(), ids=STATEMENTS.keys())
def test_rows_are_found_by_an_index(path: Path, statement: str) -> None:
    with database.reading(path.parent) as transaction:
        plan = [
            row["detail"] for row in transaction.execute(f"EXPLAIN QUERY PLAN {statement}", ASKED)
        ]
    scans = [step for step in plan if step.startswith("SCAN ")]
    assert [step for step in scans if not step[5:].startswith(WALKED)] == []


@pytest.mark.parametrize("name", ["history's events", "history's statuses", "recipients", "feed"])
def test_page_of_a_long_list_is_not_sorted(path: Path, name: str) -> None:
    """Else every page would cost as much as the whole."""
    with database.reading(path.parent) as transaction:
        plan = [
            row["detail"]
            for row in transaction.execute(f"EXPLAIN QUERY PLAN {STATEMENTS[name]}", ASKED)
        ]
    assert [step for step in plan if "FOR ORDER BY" in step] == []


WRITTEN_ROW_BY_ROW = {
    "deliveries": admissions.INSERT_DELIVERIES,
    "events": admissions.INSERT_EVENTS,
    "duplicates": admissions.COUNT_DUPLICATES,
    "jobs": admissions.INSERT_JOB,
    "quarantine": quarantine.INSERT,
    "applied events": ledger.MARK_APPLIED,
    "notifications": notifications.INSERT,
    "places": notifications.REMEMBER_PLACE,
    "statuses": statuses.SAVE_STATUS,
    "suppressions": ratchet.OPEN,
    "causes": ratchet.ADD_CAUSE,
}


@pytest.mark.parametrize("statement", WRITTEN_ROW_BY_ROW.values(), ids=WRITTEN_ROW_BY_ROW.keys())
def test_row_is_written_without_a_temporary_table(path: Path, statement: str) -> None:
    """Making and dropping one costs more than the row."""
    place = [None] * statement.count("?")
    with database.exclusive(
        path.parent
    ) as run:  # a connection that only reads leaves the CHECKs out
        steps = run(lambda t: t.execute(f"EXPLAIN {statement}", place).fetchall())
    assert "OpenEphemeral" not in {row["opcode"] for row in steps}
