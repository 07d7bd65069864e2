"""Documents: an event as programs get it, with all that it says, in the words of the views."""

import json
from collections.abc import Sequence
from typing import Any

from hookbox.store.connections import Transaction
from hookbox.store.views import EVENTS, read_all

Document = dict[str, Any]

EVENTS_BY_ID = EVENTS + "WHERE id IN (SELECT value FROM json_each(:ids))"
SAID = """
SELECT
  event_id, message_id, recipient, kind, bounce_class, reject_reason, occurred_at, ambiguous, effect
FROM notifications WHERE event_id IN (SELECT value FROM json_each(:ids))
"""


def documents(transaction: Transaction, ids: Sequence[int]) -> dict[int, Document]:
    """The events by id. `content` is the sender's own text, exactly (`hex:…` where it is not
    text, null once retention took it); `notifications` what it says about each recipient.
    """
    place = {"ids": json.dumps(list(ids))}
    found: dict[int, Document] = {
        line["id"]: {**line, "synthesised": bool(line["synthesised"]), "notifications": []}  # type: ignore[misc]
        for line in read_all(transaction, EVENTS_BY_ID, place)
    }
    for said in read_all(transaction, SAID, place):
        event_id = said.pop("event_id")
        found[event_id]["notifications"].append({**said, "ambiguous": bool(said["ambiguous"])})  # type: ignore[index]
    return found
