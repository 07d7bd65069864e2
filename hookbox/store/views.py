"""What commands read: pages of the documented views, and sums over the tables behind them.

Lines are named as the views name their columns, so that what a command prints as JSON is what the
`sqlite3` shell shows. Nothing here changes anything.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from hookbox.rules.folding import meant
from hookbox.rules.instants import written
from hookbox.store.connections import Transaction

Value = str | int | float | None
Line = dict[str, Value]  # one row by column name; none of the views shows a BLOB

EVENTS = """
SELECT
  id, source, provider, key, kind, raw_kind, recipient, message_id, occurred_at, received_at,
  via, verified_by, state, duplicates, last_duplicate_at, content,
  synthesised
FROM events
"""
# Only what is asked for enters the statement, so that each condition can use its index. `+source`:
# a page of a busy source is found at once going back by id, where the index on (source_id, key)
# would have all of the source's events sorted first.
EVENT_CONDITIONS = {
    "source": "+source = :source",
    "kind": "kind = :kind",
    "state": "state = :state",
    "key": "key = :key",
    "recipient": "id IN (SELECT event_id FROM notification WHERE address = :recipient)",
    "since": "received_at >= :since",
}
QUARANTINE = """
SELECT id, source, key, reason, received_at, content, resolved_at, resolution FROM quarantine
"""
NOTIFICATIONS_OF = """
SELECT
  event_id, source, message_id, recipient, kind, bounce_class, reject_reason, occurred_at,
  ambiguous, effect
FROM notifications WHERE event_id = :event_id ORDER BY recipient
"""
OUTBOX_OF = """
SELECT id, event_id, target, replay, state, attempts, run_at, last_outcome
FROM outbox WHERE event_id = :event_id ORDER BY id
"""
ATTEMPTS_OF = """
SELECT job_id, number, started_at, took_ms, outcome, status, excerpt FROM attempts
WHERE job_id IN (SELECT id FROM outbox WHERE event_id = :event_id) ORDER BY job_id, number
"""
REFUSALS = """
SELECT source, reason, minute, count, last_skew_s, last_remote FROM refusals
WHERE minute >= :since AND (:source IS NULL OR source = :source)
ORDER BY minute DESC, source, reason LIMIT :limit
"""
# SQLite takes the bare columns from the row that holds the maximum.
REFUSAL_SUMS = """
SELECT
  source, reason, sum(count) AS count, last_skew_s, last_remote,
  min(minute) AS first_minute, max(minute) AS last_minute
FROM refusals
WHERE minute >= :since AND (:source IS NULL OR source = :source)
GROUP BY source, reason ORDER BY last_minute, source, reason
"""
SECRETS = """
SELECT owner, slot, strftime('%Y-%m-%dT%H:%M:%fZ', set_at / 1000.0, 'unixepoch') AS set_at
FROM secret WHERE instr(owner, '.') ORDER BY owner, slot
"""
SECRET_USES = """
SELECT
  'source.' || s.name AS owner, u.slot, u.accepted,
  strftime('%Y-%m-%dT%H:%M:%fZ', u.last_used_at / 1000.0, 'unixepoch') AS last_used_at
FROM secret_use AS u JOIN source AS s ON s.id = u.source_id
WHERE u.slot <> 'none'
"""
# `+source_id`: one pass over the table beats as many look-ups through the index that begins so.
STATS = """
WITH
  stored AS (
    SELECT
      source_id, count(*) AS events, sum(duplicates) AS duplicates,
      sum(synthesised) AS synthesised, max(id) AS last_id
    FROM event GROUP BY +source_id
  ),
  aside AS (
    SELECT source_id, count(*) AS quarantined
    FROM quarantine_entry WHERE resolved_at IS NULL GROUP BY source_id
  ),
  refused AS (
    SELECT source_id, sum(count) AS refused
    FROM refusal WHERE minute >= :since_minute GROUP BY source_id
  ),
  waiting AS (
    SELECT event_id, run_at FROM job WHERE state = 'available'
    UNION ALL SELECT event_id, run_at FROM job WHERE state = 'running'
  ),
  queue AS (
    SELECT e.source_id, count(DISTINCT e.id) AS pending, min(w.run_at) AS oldest_at
    FROM waiting AS w CROSS JOIN event AS e ON e.id = w.event_id GROUP BY e.source_id
  )
SELECT
  s.name AS source,
  coalesce(stored.events, 0) AS events,
  coalesce(stored.duplicates, 0) AS duplicates,
  coalesce(stored.synthesised, 0) AS synthesised,
  coalesce(aside.quarantined, 0) AS quarantined,
  coalesce(refused.refused, 0) AS refused_24h,
  strftime('%Y-%m-%dT%H:%M:%fZ', d.received_at / 1000.0, 'unixepoch') AS last_event_at,
  coalesce(queue.pending, 0) AS pending,
  max(0, (:now - queue.oldest_at) / 1000) AS queue_age_s
FROM source AS s
LEFT JOIN stored ON stored.source_id = s.id
LEFT JOIN event AS e ON e.id = stored.last_id
LEFT JOIN delivery AS d ON d.id = e.delivery_id
LEFT JOIN aside ON aside.source_id = s.id
LEFT JOIN refused ON refused.source_id = s.id
LEFT JOIN queue ON queue.source_id = s.id
ORDER BY s.name
"""
SOURCES = "SELECT name FROM source ORDER BY name"

DAY_MINUTES = 24 * 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Which part of a list: the newest `limit` lines, or those right after or before an id.

    Lines come oldest first in each case.
    """

    limit: int
    after: int | None = None
    before: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFilter:
    """Which events; None asks for nothing. `since` is an instant as the views write it."""

    source: str | None = None
    kind: str | None = None
    state: str | None = None
    recipient: str | None = None
    key: str | None = None
    since: str | None = None


def iso(instant: int) -> str:
    """An instant as the views write it."""
    return written(instant)


def events(transaction: Transaction, wanted: EventFilter, page: Page) -> list[Line]:
    """A page of events."""
    conditions, asked = _asked(wanted)
    return read_page(transaction, EVENTS, conditions, asked, page)


def event_ids(transaction: Transaction, wanted: EventFilter, page: Page) -> list[int]:
    """The ids of a page of events."""
    conditions, asked = _asked(wanted)
    found = read_page(transaction, "SELECT id FROM events", conditions, asked, page)
    return [int(line["id"] or 0) for line in found]


def _asked(wanted: EventFilter) -> tuple[list[str], dict[str, Value]]:
    asked = {name: value for name, value in asdict(wanted).items() if value is not None}
    if wanted.recipient is not None:
        asked["recipient"] = meant(wanted.recipient)
    return [EVENT_CONDITIONS[name] for name in asked], asked


def event(transaction: Transaction, event_id: int) -> Line | None:
    """One event, None when there is no such."""
    return read_first(transaction, EVENTS + "WHERE id = :id", {"id": event_id})


def event_by_key(transaction: Transaction, source: str, key: str) -> Line | None:
    """The event with this identity, None while there is none."""
    place = {"source": source, "key": key}
    return read_first(transaction, EVENTS + "WHERE source = :source AND key = :key", place)


def notifications(transaction: Transaction, event_id: int) -> list[Line]:
    """What one event says, recipient by recipient."""
    return read_all(transaction, NOTIFICATIONS_OF, {"event_id": event_id})


def outbox(transaction: Transaction, event_id: int) -> list[Line]:
    """What was to be done about one event."""
    return read_all(transaction, OUTBOX_OF, {"event_id": event_id})


def attempts(transaction: Transaction, event_id: int) -> list[Line]:
    """Every recorded try at it."""
    return read_all(transaction, ATTEMPTS_OF, {"event_id": event_id})


def quarantine(
    transaction: Transaction, source: str | None, page: Page, *, resolved: bool
) -> list[Line]:
    """A page of what was set aside; what a person has decided already only with `resolved`."""
    conditions = [] if resolved else ["resolved_at IS NULL"]
    conditions += [] if source is None else ["source = :source"]
    return read_page(transaction, QUARANTINE, conditions, {"source": source}, page)


def quarantined(transaction: Transaction, entry_id: int) -> Line | None:
    """One thing that was set aside, None when there is no such."""
    return read_first(transaction, QUARANTINE + "WHERE id = :id", {"id": entry_id})


def refusals(transaction: Transaction, source: str | None, since: str, limit: int) -> list[Line]:
    """The newest refusals, a line for each minute, oldest first."""
    values = {"source": source, "since": _minute(since), "limit": limit}
    return read_all(transaction, REFUSALS, values)[::-1]


def refusal_sums(transaction: Transaction, source: str | None, since: str) -> list[Line]:
    """Refusals since an instant, a line for each source and reason."""
    return read_all(transaction, REFUSAL_SUMS, {"source": source, "since": _minute(since)})


def _minute(since: str) -> str:
    return since[: len("2026-01-31T23:59")] + "Z"


def secrets(transaction: Transaction) -> list[Line]:
    """What the sealed store holds and since when; never the secrets."""
    return read_all(transaction, SECRETS, {})


def secret_uses(transaction: Transaction) -> list[Line]:
    """How many deliveries each slot of each source proved, and when the last."""
    return read_all(transaction, SECRET_USES, {})


def stats(transaction: Transaction, now: int) -> list[Line]:
    """One line for each source that was ever served."""
    return read_all(transaction, STATS, {"now": now, "since_minute": now // 60_000 - DAY_MINUTES})


def sources(transaction: Transaction) -> list[str]:
    """The names of all sources that were ever served."""
    return [str(row["name"]) for row in transaction.execute(SOURCES)]


def read_page(
    transaction: Transaction,
    chosen: str,
    conditions: Sequence[str],
    values: Mapping[str, Value],
    page: Page,
) -> list[Line]:
    """A keyset page, read from its near end."""
    bounds = [] if page.after is None else ["id > :after"]
    bounds += [] if page.before is None else ["id < :before"]
    where = " AND ".join([*conditions, *bounds]) or "TRUE"
    order = "DESC" if page.after is None else "ASC"
    statement = f"{chosen} WHERE {where} ORDER BY id {order} LIMIT :limit"
    lines = read_all(transaction, statement, {**values, **asdict(page)})
    return lines if page.after is not None else lines[::-1]


def read_first(
    transaction: Transaction, statement: str, values: Mapping[str, Value]
) -> Line | None:
    found = read_all(transaction, statement, values)
    return found[0] if found else None


def read_all(transaction: Transaction, statement: str, values: Mapping[str, Value]) -> list[Line]:
    return [dict(row) for row in transaction.execute(statement, values)]
