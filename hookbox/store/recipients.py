"""What is known about recipients: their statuses, and the whole story of one address.

Lines have the columns of the `recipients` view; those of a story say more, so that one can see in
what order things happened and in what order the box heard of them.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from hookbox.rules.folding import folded, meant
from hookbox.store.connections import Transaction
from hookbox.store.views import Line, Page, Value, read_all

INSTANT = "strftime('%Y-%m-%dT%H:%M:%fZ', {} / 1000.0, 'unixepoch')"

CHOSEN = f"""
SELECT
  s.name AS source, nullif(t.message_id, '') AS message_id, t.shown AS recipient,
  t.kind AS status, t.bounce_class, {INSTANT.format("t.status_at")} AS status_at, t.event_id
FROM status AS t JOIN source AS s ON s.id = t.source_id
"""
CONDITIONS = {
    "source": "+t.source_id = (SELECT id FROM source WHERE name = :source)",
    "status": "t.kind = :status",
    "message": "t.message_id = :message",
    "address": "t.recipient = :address",
    "after": "t.event_id > :after",
    "before": "t.event_id < :before",
}
# An event moves the statuses of many recipients at once, so a page ends with a whole event.
PAGE = """
{chosen}
WHERE {where} AND t.event_id {inside} (
  SELECT {edge}(event_id) FROM (
    SELECT t.event_id FROM status AS t WHERE {where} ORDER BY t.event_id {order} LIMIT :limit
  )
)
ORDER BY t.event_id, t.recipient
"""
# Also what only may concern the address, where a source lets that count.
STORY = f"""
WITH concerned (event_id) AS (
  SELECT event_id FROM notification WHERE address = :address
  UNION SELECT event_id FROM status WHERE recipient = :address
  UNION
  SELECT c.event_id FROM suppression_cause AS c
  JOIN suppression AS p ON p.id = c.suppression_id
  WHERE p.address = :address AND c.event_id IS NOT NULL
)
SELECT
  n.event_id, s.name AS source, n.message_id, n.recipient, n.kind, n.bounce_class,
  n.reject_reason, {INSTANT.format("n.occurred_at")} AS occurred_at,
  {INSTANT.format("d.received_at")} AS received_at, n.ambiguous, n.effect, n.candidates
FROM notification AS n
JOIN event AS e ON e.id = n.event_id
JOIN delivery AS d ON d.id = e.delivery_id
JOIN source AS s ON s.id = n.source_id
WHERE n.event_id IN (SELECT event_id FROM concerned)
  AND (n.address = :address OR n.candidates IS NOT NULL)
ORDER BY n.occurred_at DESC, e.place DESC LIMIT :limit
"""
SUPPRESSIONS = f"""
SELECT
  p.id, p.shown AS address, p.scope, p.reason, {INSTANT.format("p.since")} AS since, p.event_id,
  s.name AS source, {INSTANT.format("d.at")} AS lifted_at, d.who AS lifted_by,
  d.reason AS lift_reason
FROM suppression AS p
LEFT JOIN source AS s ON s.id = p.source_id
LEFT JOIN decision AS d ON d.id = p.lift_id
WHERE p.address = :address
ORDER BY p.id
"""
CAUSES = f"""
SELECT
  c.suppression_id, c.reason, {INSTANT.format("c.since")} AS since, c.event_id,
  s.name AS source, d.who AS decided_by, d.reason AS decision
FROM suppression AS p
JOIN suppression_cause AS c ON c.suppression_id = p.id
LEFT JOIN source AS s ON s.id = c.source_id
LEFT JOIN decision AS d ON d.id = c.decision_id
WHERE p.address = :address
ORDER BY c.suppression_id, c.since, c.reason
"""
PLACES = """
WITH told (source_id, message_id) AS (
  SELECT source_id, message_id FROM status WHERE recipient = :address
  UNION SELECT source_id, message_id FROM notification WHERE address = :address
)
SELECT s.name AS source, m.message_id, m.inbox_id, m.thread_id
FROM told
CROSS JOIN message_place AS m
  ON m.source_id = told.source_id AND m.message_id = told.message_id
JOIN source AS s ON s.id = m.source_id
ORDER BY s.name, m.message_id LIMIT :limit
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipientFilter:
    """Which statuses; None asks for nothing."""

    source: str | None = None
    status: str | None = None
    message: str | None = None
    address: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """All that is known about one address. `causes` are those of the suppressions, by their id."""

    address: str
    timeline: list[Line]
    statuses: list[Line]
    suppressions: list[Line]
    causes: list[Line]
    places: list[Line]

    @property
    def known(self) -> bool:
        """Whether the box has ever heard of the address."""
        return bool(self.timeline or self.statuses or self.suppressions)


def recipients(transaction: Transaction, wanted: RecipientFilter, page: Page) -> list[Line]:
    """The statuses that events moved last; with `page.after` those next after that event."""
    asked: dict[str, Value] = {**asdict(wanted), "after": page.after, "before": page.before}
    asked = {name: value for name, value in asked.items() if value is not None}
    if wanted.address is not None:
        asked["address"] = meant(wanted.address)
    forward = page.after is not None
    statement = PAGE.format(
        chosen=CHOSEN,
        where=" AND ".join(CONDITIONS[name] for name in asked) or "TRUE",
        inside="<=" if forward else ">=",
        edge="max" if forward else "min",
        order="ASC" if forward else "DESC",
    )
    return read_all(transaction, statement, {**asked, "limit": page.limit})


def story(transaction: Transaction, address: str, limit: int) -> Story:
    """What the box knows about an address, whichever way it is spelt; the newest `limit` lines of
    each kind.
    """
    key = meant(address)
    place: Mapping[str, Value] = {"address": key, "limit": limit}
    wanted = RecipientFilter(address=address)
    return Story(
        address=key,
        timeline=_timeline(transaction, key, limit),
        statuses=recipients(transaction, wanted, Page(limit=limit)),
        suppressions=read_all(transaction, SUPPRESSIONS, place),
        causes=read_all(transaction, CAUSES, place),
        places=read_all(transaction, PLACES, place),
    )


def _timeline(transaction: Transaction, key: str, limit: int) -> list[Line]:
    """What was told about the address, in the order in which it happened."""
    lines = read_all(transaction, STORY, {"address": key, "limit": limit})[::-1]
    found = []
    for line in lines:
        candidates = json.loads(str(line.pop("candidates") or "[]"))
        if not candidates or key in map(folded, candidates):
            found.append(line)
    return found
