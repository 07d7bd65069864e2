"""What a purge would take right now, counted and not touched."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import takewhile

from hookbox.store import retention, sweeps
from hookbox.store.connections import Row, Transaction
from hookbox.store.retention import BODIES, KEYS, Counts, Stage
from hookbox.store.sweeps import Horizons

BODIES_OF = """
SELECT count(body) AS bodies, coalesce(sum(length(body)), 0) AS body_bytes
FROM delivery WHERE id IN (SELECT value FROM json_each(:ids))
"""
ATTEMPTS_OF = """
SELECT count(*) AS attempts
FROM json_each(:ids) AS wanted
CROSS JOIN event AS e ON e.delivery_id = wanted.value
CROSS JOIN job AS j ON j.event_id = e.id
CROSS JOIN attempt AS a ON a.job_id = j.id
"""
EVENTS_OF = """
SELECT
  count(*) AS events,
  coalesce(sum((SELECT count(*) FROM notification WHERE event_id = e.id)), 0) AS notifications,
  coalesce(sum((SELECT count(*) FROM job WHERE event_id = e.id)), 0) AS jobs
FROM event AS e WHERE id IN (SELECT value FROM json_each(:ids))
"""
SINGLE_ROWS = f"""
SELECT
  (SELECT count(*) FROM ({sweeps.OLD_ENTRIES})) AS quarantine,
  (SELECT count(*) FROM token WHERE seen_at < :before) AS tokens,
  (SELECT count(*) FROM ({sweeps.OLD_REFUSALS})) AS refusals
"""
PROBED = """
SELECT count(*) AS probed FROM probe AS p JOIN probe_request AS r ON r.probe_id = p.id
WHERE p.ended_at < :before
"""
PAGES = """
SELECT
  (SELECT freelist_count FROM pragma_freelist_count) AS free,
  (SELECT page_size FROM pragma_page_size) AS bytes
"""

# With its job, its notification, its part of the delivery and the indexes on all four; measured.
EVENT_BYTES = 700
PAGE = 1_000  # looked at in a read of a few milliseconds


def old(ledger: Transaction, horizons: Horizons) -> Counts:
    """By kind, as a purge counts them; `bytes`: by how much the file would become shorter, about.

    What is held by something that goes in the same pass is not counted.
    """
    counts: Counts = Counter()
    for stage, before, questions in (
        (KEYS, horizons.keys, (EVENTS_OF,)),
        (BODIES, horizons.bodies, (BODIES_OF, ATTEMPTS_OF)),
    ):
        for ids in _free(ledger, stage, before, horizons.now):
            for question in questions:
                _add(counts, ledger.execute(question, {"ids": json.dumps(ids)}).fetchone())
    single = {"before": horizons.keys, "limit": -1, "reasons": sweeps.REASONS}
    _add(counts, ledger.execute(SINGLE_ROWS, single).fetchone())
    _add(counts, ledger.execute(PROBED, {"before": horizons.bodies}).fetchone())
    pages = ledger.execute(PAGES).fetchone()
    content = counts.pop("body_bytes", 0) + pages["free"] * pages["bytes"]
    counts["bytes"] = content + counts["events"] * EVENT_BYTES
    return counts


def _add(counts: Counts, row: Row) -> None:
    counts.update({kind: row[kind] for kind in row.keys()})  # noqa: SIM118  (a Row is no dict)


def _free(ledger: Transaction, stage: Stage, before: int, now: int) -> Iterator[Sequence[int]]:
    """What goes, a page at a time: beyond where the last walk ended, and of what was left then."""
    place = retention.place(ledger, stage)
    while rows := ledger.execute(stage.next, {"after": place, "limit": PAGE}).fetchall():
        passed = takewhile(lambda row: not before <= row["received_at"] <= now, rows)
        ids = [row["id"] for row in passed]
        yield retention.free(ledger, stage, ids, before)
        place = rows[-1]["id"]
        if len(ids) < len(rows):
            break
    place = 0
    while ids := retention.kept(ledger, stage, place, PAGE):
        yield retention.free(ledger, stage, ids, before)
        place = ids[-1]
