"""A backup to give away: what the box did, without what the mail said and whom it was for.

Bodies are gone. Every text that is not listed here becomes a word that means nothing, so a column
that is added later gives nothing away. The word is the same for the same text (and for all
spellings of one address) everywhere in the file, so that one can still follow a person or a message
through it; what turns one into the other is thrown away.
"""

import hashlib
import hmac
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from hookbox.rules.folding import folded
from hookbox.store.connections import Transaction, named
from hookbox.store.copies import TABLES, Counts, written

Value = str | bytes | int | float | None

# What stays as it is: our own words, and names that the operator gave.
KEPT = {
    "attempt": ("outcome",),
    "decision": ("verb", "scope"),
    "delivery": ("via", "verified_by"),
    "early": ("raw_kind", "via", "verified_by"),
    "effect": ("state",),
    "effect_settlement": ("verdict",),
    "event": ("raw_kind", "state", "kind"),
    "gap": ("reason",),
    "job": ("target", "state", "last_outcome"),
    "job_turn": ("target",),
    "kept_longer": ("stage",),
    "lane": ("target", "last_failure"),
    "notification": (
        "kind", "bounce_class", "reject_reason", "time_source", "scope", "effect",
    ),
    "probe": ("outcome",),
    "probe_request": ("answered",),
    "quarantine_entry": ("reason", "raw_kind"),
    "refusal": ("reason",),
    "secret_use": ("slot",),
    "source": ("name", "provider"),
    "status": ("kind", "bounce_class"),
    "suppression": ("scope", "reason"),
    "suppression_cause": ("reason",),
}  # fmt: skip
ADDRESSES = ("recipient", "address", "shown")  # one word for all spellings of one
GONE = ("secret",)  # sealed, and still nobody's business
# What is read as JSON wherever it is shown, and must still be that.
EMPTIED = {"headers": "'{}'", "candidates": "NULL", "settled": "NULL"}

COLUMNS = """
SELECT name, type, "notnull" OR pk > 0 AS needed FROM pragma_table_info(:table)
WHERE type IN ('TEXT', 'BLOB', 'ANY')
"""
# The copy is thrown away with whatever is left in it.
HURRIED = "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA secure_delete = OFF;"
MARK = "INSERT INTO meta (name, value) VALUES ('without_bodies', 1)"
MARKED = "SELECT EXISTS (SELECT 1 FROM meta WHERE name = 'without_bodies')"
WORD_LENGTH = 12  # 48 bits: of a million addresses hardly two share a word


def redact(whole: Path, into: Path, counts: Counts) -> Counts:
    """Write what of a copy can be given away into an empty file, and use the copy up for it; how
    many rows are left.
    """
    key = os.urandom(32)
    with (
        named(whole),
        written(whole),
        closing(sqlite3.connect(whole, isolation_level=None)) as connection,
    ):
        connection.row_factory = sqlite3.Row
        connection.executescript(HURRIED)
        connection.create_function("veiled", 2, lambda value, name: _veiled(value, name, key))
        for table in GONE:
            connection.execute(f"DELETE FROM {table}")
        for table in [row["name"] for row in connection.execute(TABLES).fetchall()]:
            changes = ", ".join(_changes(connection, table))
            if changes:
                connection.execute(f'UPDATE "{table}" SET {changes}')
        connection.execute(MARK)
        # Rows alone: nothing of what was in free pages, or beside the rows, comes along.
        connection.execute("VACUUM INTO ?", (str(into),))
    return {**counts, **dict.fromkeys(GONE, 0)}


def is_redacted(transaction: Transaction) -> bool:
    """Whether it was made to be given away, and is of no use as a backup."""
    return bool(transaction.execute(MARKED).fetchone()[0])


def _changes(connection: Transaction, table: str) -> Iterator[str]:
    for column in connection.execute(COLUMNS, {"table": table}).fetchall():
        name = column["name"]
        if name in KEPT.get(table, ()):
            continue
        if name in EMPTIED:
            yield f'"{name}" = {EMPTIED[name]}'
        elif column["type"] == "BLOB" and name != "digest":
            yield f'"{name}" = {"zeroblob(0)" if column["needed"] else "NULL"}'
        else:
            yield f'"{name}" = veiled("{name}", \'{name}\')'


def _veiled(value: Value, column: str, key: bytes) -> Value:
    """A word for a text, bytes for bytes; nothing stays nothing."""
    if isinstance(value, bytes):
        return hmac.digest(key, value, hashlib.sha256)
    if not isinstance(value, str) or not value:
        return value
    is_address = column in ADDRESSES
    told = hmac.new(key, (folded(value) if is_address else value).encode(), hashlib.sha256)
    word = f"x{told.hexdigest()[:WORD_LENGTH]}"
    return f"{word}@hidden.invalid" if is_address else word
