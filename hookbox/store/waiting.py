"""The waiting room: deliveries that arrived and are not stored yet, and who waits for that.

Bounded by number, bytes and age. Whoever finds it full is told so at once, which is kinder than an
answer after the sender's patience.
"""

import asyncio
from collections import deque
from dataclasses import dataclass

from hookbox.clock import Clock
from hookbox.errors import Overloaded, StoreError
from hookbox.model import Admission
from hookbox.store.proposals import Proposal

BATCH_ROWS_MAX = 256  # about 5 ms of inserting on a small machine: nobody waits long behind a batch
ENTRIES_MAX = 1_024  # the public door holds at most 400 connections; the rest is for chunks
BYTES_MAX = 32 * 1024 * 1024
AGE_MAX_S = 2.0  # behind a disk that stalls for longer, a newcomer would outwait its sender


@dataclass(slots=True, eq=False)
class Entry:
    """One proposal and the caller who waits for it."""

    proposal: Proposal
    answer: asyncio.Future[Admission]
    since: float
    bytes: int

    def resolve(self, admission: Admission) -> None:
        """It is stored."""
        if not self.answer.done():
            self.answer.set_result(admission)

    def fail(self, error: StoreError) -> None:
        """It is not stored, or nobody knows whether it is."""
        if not self.answer.done():
            self.answer.set_exception(error)


class WaitingRoom:
    """Filled by callers on the event loop, emptied by the writer on its connection's thread."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._entries: deque[Entry] = deque()
        self._bytes = 0
        self._oldest_taken: float | None = None
        self._last_entered = float("-inf")

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def quiet_for_s(self) -> float:
        """How long ago the last delivery came; 0 while one waits."""
        return 0.0 if self._entries else self._clock.monotonic() - self._last_entered

    def check(self) -> None:
        """Raises Overloaded when whoever enters now would wait too long."""
        oldest = self._oldest_taken
        if oldest is None and self._entries:
            oldest = self._entries[0].since
        too_old = oldest is not None and self._clock.monotonic() - oldest > AGE_MAX_S
        if too_old or len(self._entries) >= ENTRIES_MAX or self._bytes >= BYTES_MAX:
            raise Overloaded(f"{len(self._entries)} deliveries wait to be stored")

    def enter(self, proposal: Proposal) -> Entry:
        """Wait to be stored."""
        answer: asyncio.Future[Admission] = asyncio.get_running_loop().create_future()
        answer.add_done_callback(_seen)
        self._last_entered = self._clock.monotonic()
        entry = Entry(proposal, answer, self._last_entered, len(proposal.delivery.body))
        self._bytes += entry.bytes
        self._entries.append(entry)
        return entry

    def take(self) -> list[Entry]:
        """The next batch, without those whose callers gave up.

        Runs beside the callers, on another thread: a deque is safe for that, and `_bytes` is a
        bound, not an account.
        """
        taken: list[Entry] = []
        rows = 0
        while self._entries and rows < BATCH_ROWS_MAX:
            entry = self._entries.popleft()
            self._bytes = max(0, self._bytes - entry.bytes)
            if entry.answer.cancelled():
                continue
            taken.append(entry)
            rows += max(1, entry.proposal.rows)
        self._oldest_taken = taken[0].since if taken else None
        return taken

    def settled(self) -> None:
        """The batch that was taken is answered."""
        self._oldest_taken = None

    def fail_all(self, error: StoreError) -> None:
        """Nobody who waits can be stored."""
        while self._entries:
            self._entries.popleft().fail(error)
        self._bytes = 0


def _seen(answer: asyncio.Future[Admission]) -> None:
    """A caller that gave up never asks; that is no reason for a warning about it."""
    if not answer.cancelled():
        answer.exception()
