"""Lists of suppressed addresses, a page or the whole, with the columns of the `suppressions` view.

Each line has an `id` before them, by which the pages are turned.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass

from hookbox.store.connections import Transaction
from hookbox.store.views import Line, Page, read_page

CHOSEN = """
SELECT
  id, address, scope, reason, since, event_id, source, lifted_at, lifted_by, lift_reason
FROM (
  SELECT
    p.id,
    p.shown AS address,
    p.scope,
    p.reason,
    strftime('%Y-%m-%dT%H:%M:%fZ', p.since / 1000.0, 'unixepoch') AS since,
    p.event_id,
    s.name AS source,
    strftime('%Y-%m-%dT%H:%M:%fZ', d.at / 1000.0, 'unixepoch') AS lifted_at,
    d.who AS lifted_by,
    d.reason AS lift_reason,
    p.lift_id
  FROM suppression AS p
  LEFT JOIN source AS s ON s.id = p.source_id
  LEFT JOIN decision AS d ON d.id = p.lift_id
)
"""
CONDITIONS = {
    "reason": "reason = :reason",
    "scope": "scope = :scope",
    "source": "source = :source",
    "since": "since >= :since",
}
STANDING = "lift_id IS NULL"

PAGE_OF_ALL = 5_000  # a read of a hundredth of a second: one left open would hold up checkpoints


@dataclass(frozen=True, slots=True, kw_only=True)
class SuppressionFilter:
    """Which suppressions; None asks for nothing. `since` is an instant as the views write it."""

    reason: str | None = None
    scope: str | None = None
    source: str | None = None
    since: str | None = None


def suppressions(
    transaction: Transaction, wanted: SuppressionFilter, page: Page, *, lifted: bool = False
) -> list[Line]:
    """A page of them; also those that a person lifted with `lifted`."""
    asked = {name: value for name, value in asdict(wanted).items() if value is not None}
    conditions = [CONDITIONS[name] for name in asked]
    conditions += [] if lifted else [STANDING]
    return read_page(transaction, CHOSEN, conditions, asked, page)


def every(
    transaction: Transaction, wanted: SuppressionFilter, *, lifted: bool = False
) -> Iterator[Line]:
    """All of them, the oldest first, however many."""
    page = Page(limit=PAGE_OF_ALL, after=0)
    while found := suppressions(transaction, wanted, page, lifted=lifted):
        yield from found
        last = found[-1]["id"]
        assert isinstance(last, int), "an id"
        page = Page(limit=PAGE_OF_ALL, after=last)
