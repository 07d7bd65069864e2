"""Tally: refusals with their skew and the use of secrets, counted in memory.

They are written once a minute: a stranger's request must not cost a disk write. A minute of counts
may be lost in a crash; no event can.
"""

import logging
from dataclasses import dataclass

from hookbox.clock import Clock
from hookbox.errors import Reason, StoreError
from hookbox.model import Slot
from hookbox.store import refusals
from hookbox.store.refusals import RefusalCount, SecretUse
from hookbox.store.writer import Writer

log = logging.getLogger("hookbox.tally")

FLUSH_EVERY_S = 60.0
REMOTE_MAX = 64


@dataclass(slots=True)
class _Refusals:
    count: int = 0
    last_skew_s: float | None = None
    last_remote: str = ""


@dataclass(slots=True)
class _Uses:
    accepted: int = 0
    last_used_at: int = 0


class Tally:
    """Counts since the last flush. Its size is bounded by sources, reasons and minutes between two
    flushes.
    """

    def __init__(self, writer: Writer, clock: Clock) -> None:
        self._writer, self._clock = writer, clock
        self._refusals: dict[tuple[int, Reason, int], _Refusals] = {}
        self._uses: dict[tuple[int, Slot], _Uses] = {}

    def refused(self, source_id: int, reason: Reason, skew_s: float | None, remote: str) -> None:
        """Count one refusal (or, under `skew = "observe"`, one delivery that would have been)."""
        minute = self._clock.now() // 60_000
        entry = self._refusals.setdefault((source_id, reason, minute), _Refusals())
        entry.count += 1
        entry.last_remote = remote[:REMOTE_MAX]
        if skew_s is not None:
            entry.last_skew_s = round(skew_s, 1)

    def proved(self, source_id: int, slot: Slot, at: int) -> None:
        """Count one delivery that was proved by this slot."""
        entry = self._uses.get((source_id, slot))
        if entry is None:
            entry = self._uses[source_id, slot] = _Uses()
        entry.accepted += 1
        entry.last_used_at = max(entry.last_used_at, at)

    async def flush(self) -> None:
        """Write the counts. When the store cannot take them they stay for the next time."""
        refused, uses = self._refusals, self._uses
        if not refused and not uses:
            return
        self._refusals, self._uses = {}, {}
        counts = [
            RefusalCount(
                source_id=source_id,
                reason=reason,
                minute=minute,
                count=entry.count,
                last_skew_s=entry.last_skew_s,
                last_remote=entry.last_remote,
            )
            for (source_id, reason, minute), entry in refused.items()
        ]
        used = [
            SecretUse(source_id=s, slot=slot, accepted=u.accepted, last_used_at=u.last_used_at)
            for (s, slot), u in uses.items()
        ]
        try:
            await self._writer.write(lambda transaction: refusals.add(transaction, counts, used))
        except StoreError as error:
            log.warning("counts not written error=%s", error)
            self._restore(refused, uses)

    def _restore(
        self, refused: dict[tuple[int, Reason, int], _Refusals], uses: dict[tuple[int, Slot], _Uses]
    ) -> None:
        for place, old in refused.items():
            entry = self._refusals.setdefault(place, _Refusals(0, old.last_skew_s, old.last_remote))
            entry.count += old.count
        for slot, used in uses.items():
            use = self._uses.setdefault(slot, _Uses())
            use.accepted += used.accepted
            use.last_used_at = max(use.last_used_at, used.last_used_at)

    async def run(self) -> None:
        """Flush once a minute, for ever."""
        while True:
            await self._clock.sleep(FLUSH_EVERY_S)
            await self.flush()
