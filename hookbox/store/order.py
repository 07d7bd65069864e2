"""The one order of all that moved the ledger: events as they were first applied, and decisions.

A rebuild follows it. The places are given out in the writer's transactions, rising; a place that
somebody was given is never given again.
"""

from hookbox.store.connections import Transaction

TAKE_PLACES = """
INSERT INTO meta (name, value) VALUES ('place', :count)
ON CONFLICT (name) DO UPDATE SET value = value + :count
RETURNING value
"""
LAST_PLACE = "SELECT value FROM meta WHERE name = 'place'"


def places(transaction: Transaction, count: int) -> range:
    """The next places in the order."""
    (last,) = transaction.execute(TAKE_PLACES, {"count": count}).fetchone()
    return range(int(last) - count + 1, int(last) + 1)


def last_place(transaction: Transaction) -> int:
    """The place given out last; 0 before the first."""
    row = transaction.execute(LAST_PLACE).fetchone()
    return 0 if row is None else int(row[0])
