"""Heartbeat: the last moment at which the box could commit, and the times at which it could not.

It is written through the writer like everything else, so a disk that takes nothing, a machine that
sleeps and a process that is gone all look alike: no beat.
"""

from dataclasses import dataclass

from hookbox.store.connections import Transaction

# A delivery that was stored after the last beat is a sign of life, too.
LAST = """
SELECT max(beat_at, coalesce((
  SELECT received_at FROM delivery WHERE via = 'webhook' AND id = (SELECT max(id) FROM delivery)
), 0)) AS beat_at
FROM heartbeat WHERE id = 1
"""
BEAT = """
INSERT INTO heartbeat (id, beat_at) VALUES (1, :now)
ON CONFLICT (id) DO UPDATE SET beat_at = excluded.beat_at
"""
NOTE = "INSERT INTO outage (from_at, to_at) VALUES (:from_at, :to_at)"
OUTAGES = "SELECT from_at, to_at FROM outage WHERE to_at > :since ORDER BY from_at"
PRUNE = "DELETE FROM outage WHERE to_at <= :before"
SERVED = "UPDATE source SET since = :now WHERE since IS NULL"
SOURCES = "SELECT id, name, provider, since FROM source ORDER BY name"

KEPT_MS = 90 * 86_400_000  # as long as the keys of events


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """A time in which nothing could be stored: after `from_at`, until `to_at`."""

    from_at: int
    to_at: int

    @property
    def length_s(self) -> float:
        return (self.to_at - self.from_at) / 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A source and the provider that it stands for; `since` when it is served."""

    id: int
    name: str
    provider: str
    since: int | None


def beat(transaction: Transaction, now: int, silence_ms: int) -> Outage | None:
    """The box lives. A silence longer than that before it was an outage, which is noted. A clock
    that was set back says nothing.
    """
    row = transaction.execute(LAST).fetchone()
    transaction.execute(BEAT, {"now": now})
    transaction.execute(SERVED, {"now": now})
    if row is None or now - row["beat_at"] <= silence_ms:
        return None
    outage = Outage(from_at=row["beat_at"], to_at=now)
    transaction.execute(NOTE, {"from_at": outage.from_at, "to_at": outage.to_at})
    transaction.execute(PRUNE, {"before": now - KEPT_MS})
    return outage


def outages(transaction: Transaction, since: int) -> list[Outage]:
    """Those that ended after that, in order."""
    return [
        Outage(from_at=row["from_at"], to_at=row["to_at"])
        for row in transaction.execute(OUTAGES, {"since": since})
    ]


def sources(transaction: Transaction) -> list[Served]:
    """Every source that was ever served."""
    return [
        Served(id=row["id"], name=row["name"], provider=row["provider"], since=row["since"])
        for row in transaction.execute(SOURCES)
    ]
