"""A ledger in memory, and short words for what events say."""

import sqlite3
from collections.abc import Sequence

from hookbox.model import BounceClass, Kind, Notification
from hookbox.rules.suppression import Budget
from hookbox.store import ledger, schema, suppressions
from hookbox.store.decisions import Word
from hookbox.store.ledger import Applied

NOW = 1_700_000_000_000
HOUR = 3_600_000
DAY = 24 * HOUR


def opened() -> sqlite3.Connection:
    """An empty ledger that knows sources 1 and 2."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.row_factory = sqlite3.Row
    for _, sql in schema.migrations():
        connection.executescript(sql)
    connection.execute("INSERT INTO source (name, provider) VALUES ('a', 'x'), ('b', 'x')")
    return connection


def said(
    kind: Kind,
    recipient: str | None = "ann@example.com",
    *,
    at: int = NOW,
    message: str | None = "m1",
    bounce: BounceClass | None = None,
    **changes: object,
) -> Notification:
    fields = {
        "kind": kind, "recipient": recipient, "occurred_at": at, "message_id": message,
        "bounce_class": bounce, **changes,
    }  # fmt: skip
    return Notification(**fields)  # type: ignore[arg-type]


class Ledger:
    """Gives each event the next id and applies it, one or many in a transaction."""

    def __init__(self, budget: Budget | None = None) -> None:
        self.connection = opened()
        self.budget = budget or Budget()
        self._next = 0

    def tell(self, *notifications: Notification, source_id: int = 1, **options: object) -> int:
        """One event that says all of this; its id."""
        self.tell_all([notifications], source_id=source_id, **options)
        return self._next

    def tell_all(
        self, events: Sequence[Sequence[Notification]], *, source_id: int = 1, **options: object
    ) -> None:
        """Many events in one transaction."""
        applied = []
        for notifications in events:
            self._next += 1
            self._store_event(self._next, source_id)
            applied.append(
                Applied(
                    event_id=self._next,
                    source_id=source_id,
                    notifications=tuple(notifications),
                    **options,  # type: ignore[arg-type]
                )
            )
        self.apply(applied)

    def apply(self, applied: Sequence[Applied]) -> None:
        self.connection.execute("BEGIN")
        ledger.append(self.connection, applied, self.budget)
        self.connection.execute("COMMIT")

    def _store_event(self, event_id: int, source_id: int) -> None:
        self.connection.execute(
            "INSERT OR IGNORE INTO delivery (id, source_id, received_at, via, verified_by, remote,"
            " headers, is_text, body) VALUES (1, 1, 0, 'webhook', 'current', '', '{}', 1, x'')"
        )
        self.connection.execute(
            "INSERT INTO event (id, source_id, key, digest, delivery_id, raw_kind, synthesised)"
            " VALUES (?, ?, ?, zeroblob(32), 1, '', 0)",
            (event_id, source_id, str(event_id)),
        )

    def lift(self, address: str = "ann@example.com", *, at: int) -> None:
        word = Word(who="eve", reason="asked", at=at)
        suppressions.lift(self.connection, address, "", word)

    def rows(self, sql: str) -> list[tuple[object, ...]]:
        return [tuple(row) for row in self.connection.execute(sql)]

    def status(self) -> list[tuple[object, ...]]:
        """Status without its evidence, which is whoever came first among equals."""
        return self.rows(
            "SELECT source_id, message_id, recipient, kind, bounce_class, status_at"
            " FROM status ORDER BY 1, 2, 3"
        )

    def suppressed(self) -> list[tuple[object, ...]]:
        return self.rows(
            "SELECT address, scope, reason, since FROM suppression"
            " WHERE lift_id IS NULL ORDER BY 1, 2"
        )

    def effects(self) -> list[object]:
        return [effect for (effect,) in self.rows("SELECT effect FROM notification ORDER BY id")]
