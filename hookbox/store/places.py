"""Places: in which inboxes the messages live, and how far the ledger knows them to be."""

import json
from collections.abc import Collection
from typing import NamedTuple, Self

from hookbox.rules.folding import folded
from hookbox.store.connections import Transaction

INBOXES = """
SELECT DISTINCT inbox_id FROM message_place
WHERE source_id = :source_id AND inbox_id > :after ORDER BY inbox_id LIMIT :limit
"""
STATUSES = """
SELECT t.message_id, t.recipient, t.rank FROM json_each(:messages) AS wanted
CROSS JOIN status AS t ON t.source_id = :source_id AND t.message_id = wanted.value
"""


class MessageStatus(NamedTuple):
    """Of which message, for which folded address."""

    message_id: str
    recipient: str

    @classmethod
    def of(cls, message_id: str, recipient: str) -> Self:
        return cls(message_id, folded(recipient))


def inboxes(transaction: Transaction, source_id: int, after: str, limit: int) -> list[str]:
    """The next inboxes that messages of this source are known to live in."""
    asked = {"source_id": source_id, "after": after, "limit": limit}
    return [str(row["inbox_id"]) for row in transaction.execute(INBOXES, asked)]


def statuses(
    transaction: Transaction, source_id: int, message_ids: Collection[str]
) -> dict[MessageStatus, int]:
    """The rank that each recipient of these messages has reached."""
    asked = {"source_id": source_id, "messages": json.dumps(list(message_ids))}
    rows = transaction.execute(STATUSES, asked)
    return {MessageStatus(row["message_id"], row["recipient"]): row["rank"] for row in rows}
