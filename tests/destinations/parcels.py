"""Parcels to bring, and what of them must never be seen elsewhere."""

import json
import time

from hookbox.model import Parcel

RECIPIENT = "ann.private@example.com"
MESSAGE_ID = "m-private"


def parcel(event_id: int = 7, *, replay: int = 0, attempt: int = 1, filler: str = "") -> Parcel:
    """An event on its way, made now: receivers compare its time with their own clock."""
    told = {
        "id": event_id,
        "kind": "bounced",
        "recipient": RECIPIENT,
        "content": f"“ü” {filler}",
        "replay": replay,
    }
    return Parcel(
        event_id=event_id,
        replay=replay,
        attempt=attempt,
        sent_at=time.time_ns() // 1_000_000,
        source="shop",
        kind="bounced",
        recipient=RECIPIENT,
        message_id=MESSAGE_ID,
        body=json.dumps(told, ensure_ascii=False).encode(),
    )
