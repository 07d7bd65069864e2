"""What the Python peers share: verify a Standard Webhooks request, store it in a transaction."""

import base64
import binascii
import hmac
import json
import os
import sqlite3
import threading
import time
from collections.abc import Mapping

SECRET = base64.b64decode(os.environ["STD_SECRET"].removeprefix("whsec_"))
TOLERANCE_S = 300
ADD_EVENT = """INSERT INTO event (key, kind, received_at, headers, body) VALUES (?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING"""
ADD_OUTBOX = "INSERT INTO outbox (event_id, due_at) VALUES (?, ?)"

_local = threading.local()


def connection() -> sqlite3.Connection:
    """This thread's connection."""
    if not hasattr(_local, "db"):
        _local.db = sqlite3.connect(os.environ["PEER_DB"], isolation_level=None, timeout=60)
        _local.db.execute("PRAGMA journal_mode = WAL")
        _local.db.execute("PRAGMA synchronous = FULL")
        _local.db.executescript(os.environ["PEER_SCHEMA"])
    return _local.db


def verified(headers: Mapping[str, str], body: bytes) -> bool:
    """Whether the sender's secret vouches for the body, and the time is near."""
    key, sent_at = headers.get("webhook-id"), headers.get("webhook-timestamp", "")
    if not key or not sent_at.isdigit() or abs(time.time() - int(sent_at)) > TOLERANCE_S:
        return False
    wanted = hmac.digest(SECRET, f"{key}.{sent_at}.".encode() + body, "sha256")
    wanted_text = "v1," + binascii.b2a_base64(wanted, newline=False).decode()
    signatures = headers.get("webhook-signature", "").split(" ")
    return any(hmac.compare_digest(given.encode(), wanted_text.encode()) for given in signatures)


def row(headers: Mapping[str, str], body: bytes) -> tuple[str, str, int, str, bytes]:
    """The event's row, in the order of ADD_EVENT."""
    kind = json.loads(body).get("type", "")
    return headers["webhook-id"], kind, int(time.time() * 1000), json.dumps(dict(headers)), body


def store(headers: Mapping[str, str], body: bytes) -> None:
    """The event and its outbox row, on disk when this returns; a known event changes nothing."""
    db, event = connection(), row(headers, body)
    db.execute("BEGIN IMMEDIATE")
    try:
        added = db.execute(ADD_EVENT, event)
        if added.rowcount:
            db.execute(ADD_OUTBOX, (added.lastrowid, event[2]))
        db.execute("COMMIT")
    except BaseException:
        db.execute("ROLLBACK")
        raise
