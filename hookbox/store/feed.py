"""The feed: stored events as programs read them, page by page, at their own pace.

Ids rise and are committed in that order, so a reader that keeps the last cursor misses nothing that
is stored later. What is stored and not applied yet ends a page before it: it would be gone past
without what it says. Events that nobody is about to apply (in quarantine, or held because their
source is no longer configured) do not stop anybody; they come with their `state`.
"""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass

from hookbox.store import events
from hookbox.store.connections import Transaction
from hookbox.store.documents import Document, documents

# An event has its place once it was applied; a replay does not take it out of the feed. The columns
# behind a long content are costly to reach, so `place` is asked for last.
AHEAD = """
SELECT
  e.id, e.kind,
  CASE
    WHEN e.state = 'pending'
      AND EXISTS (
        SELECT 1 FROM job AS j
        WHERE j.event_id = e.id AND j.target = 'apply' AND j.state IN ('available', 'running')
      )
      AND e.place IS NULL
    THEN 1 ELSE 0
  END AS waits
FROM event AS e
WHERE e.id > :after ORDER BY e.id LIMIT :looked_at
"""
END = "SELECT coalesce(max(id), 0) FROM event"

LIMIT_MAX = 100
LIMIT_DEFAULT = 25
LOOKED_AT_MAX = 5_000  # about 5 ms; whoever wants one kind among many gets an empty page then
BYTES_MAX = 1024 * 1024  # of content in one page; one event may be larger


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which events: those after an id, so many at most, of these kinds (none named: all of them).
    What could not be applied is of no kind.
    """

    after: int = 0
    limit: int = LIMIT_DEFAULT
    kinds: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedPage:
    """`next_cursor` is past all that was looked at. `has_more`: there is more beyond it right
    now.
    """

    documents: Sequence[Document]
    next_cursor: int
    has_more: bool


def page(transaction: Transaction, wanted: Wanted) -> FeedPage:
    """The next events, oldest first."""
    cursor, ids, more = wanted.after, list[int](), False
    place = {"after": wanted.after, "looked_at": LOOKED_AT_MAX + 1}
    with closing(transaction.execute(AHEAD, place)) as rows:
        for looked_at, row in enumerate(rows):
            if row["waits"]:
                break
            if len(ids) == wanted.limit or looked_at == LOOKED_AT_MAX:
                more = True
                break
            cursor = row["id"]
            if not wanted.kinds or row["kind"] in wanted.kinds:
                ids.append(cursor)
    fitting = ids[: events.fitting(transaction, ids, BYTES_MAX)]
    if len(fitting) < len(ids):
        cursor, more = fitting[-1], True
    found = documents(transaction, fitting)
    read = [found[each] for each in fitting if each in found]  # retention may have been quicker
    return FeedPage(documents=read, next_cursor=cursor, has_more=more)


def end(transaction: Transaction) -> int:
    """The cursor after which comes only what is not stored yet."""
    (last,) = transaction.execute(END).fetchone()
    return int(last)
