"""Cursors: how far each polled source has been read, and how its last round went.

A cursor is saved in the transaction that stores the events before it, and in no other.
"""

from dataclasses import dataclass

from hookbox.store.connections import Transaction

CURSOR = "SELECT cursor FROM cursor WHERE source_id = :source_id AND url = :url"
SAVE = """
INSERT INTO cursor (source_id, cursor, url, saved_at) VALUES (:source_id, :cursor, :url, :now)
ON CONFLICT (source_id) DO UPDATE
SET cursor = excluded.cursor, url = excluded.url, saved_at = excluded.saved_at
"""
FORGET = "DELETE FROM cursor WHERE source_id = :source_id"
RECORD = """
INSERT INTO poll (source_id, tried_at, caught_up_at, trouble, stopped)
VALUES (:source_id, :now, :caught_up_at, :trouble, :stopped)
ON CONFLICT (source_id) DO UPDATE SET
  tried_at = excluded.tried_at,
  caught_up_at = coalesce(excluded.caught_up_at, caught_up_at),
  trouble = excluded.trouble,
  stopped = excluded.stopped
"""
ROUNDS = "SELECT source_id, tried_at, caught_up_at, trouble, stopped FROM poll"


@dataclass(frozen=True, slots=True, kw_only=True)
class LastRound:
    """How the last round of a source went. `trouble` is None where nothing was wrong."""

    tried_at: int
    caught_up_at: int | None
    trouble: str | None
    stopped: bool


def cursor(transaction: Transaction, source_id: int, url: str) -> str | None:
    """Where the list at this address is read from next; None is the beginning."""
    row = transaction.execute(CURSOR, {"source_id": source_id, "url": url}).fetchone()
    return None if row is None else str(row["cursor"])


def save(transaction: Transaction, source_id: int, url: str, cursor: str, now: int) -> None:
    """Everything before the cursor is stored, by this transaction at the latest."""
    row = {"source_id": source_id, "cursor": cursor, "url": url, "now": now}
    transaction.execute(SAVE, row)


def forget(transaction: Transaction, source_id: int) -> None:
    """This cursor is never used again: the source is read from its beginning."""
    transaction.execute(FORGET, {"source_id": source_id})


def record(
    transaction: Transaction,
    source_id: int,
    now: int,
    *,
    caught_up: bool,
    trouble: str | None,
    stopped: bool,
) -> None:
    """A round has ended."""
    transaction.execute(
        RECORD,
        {
            "source_id": source_id,
            "now": now,
            "caught_up_at": now if caught_up else None,
            "trouble": trouble,
            "stopped": stopped,
        },
    )


def last_rounds(transaction: Transaction) -> dict[int, LastRound]:
    """By the source's id, of all that were ever polled."""
    return {
        row["source_id"]: LastRound(
            tried_at=row["tried_at"],
            caught_up_at=row["caught_up_at"],
            trouble=row["trouble"],
            stopped=bool(row["stopped"]),
        )
        for row in transaction.execute(ROUNDS)
    }
