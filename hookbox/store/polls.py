"""What commands and metrics read about polling: a line for each source."""

from hookbox.store.connections import Transaction
from hookbox.store.views import Line, read_all

# `lag_s`: how long ago the end of the list was last reached.
POLLS = """
SELECT
  s.name AS source,
  strftime('%Y-%m-%dT%H:%M:%fZ', p.tried_at / 1000.0, 'unixepoch') AS polled_at,
  c.cursor,
  max(0, (:now - c.saved_at) / 1000) AS cursor_age_s,
  max(0, (:now - p.caught_up_at) / 1000) AS lag_s,
  (SELECT count(*) FROM gap AS g WHERE g.source_id = s.id AND g.closed_at IS NULL) AS gaps,
  (SELECT count(*) FROM early AS w WHERE w.source_id = s.id) AS early,
  p.trouble,
  p.stopped
FROM source AS s
LEFT JOIN poll AS p ON p.source_id = s.id
LEFT JOIN cursor AS c ON c.source_id = s.id
ORDER BY s.name
"""


def lines(transaction: Transaction, now: int) -> list[Line]:
    """Every source, polled or not."""
    return read_all(transaction, POLLS, {"now": now})
