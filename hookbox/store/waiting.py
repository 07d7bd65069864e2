"""The waiting room: deliveries that arrived and are not stored yet, and who waits for that.

Bounded by number, bytes and age. Whoever finds it full is told so at once, which is kinder than an
answer after the sender's patience.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hookbox.clock import Clock
from hookbox.errors import HookboxError, Overloaded, StoreError
from hookbox.model import Admission
from hookbox.store.connections import Transaction
from hookbox.store.proposals import Proposal

BATCH_ROWS_MAX = 256  # about 5 ms of inserting on a small machine: nobody waits long behind a batch
ENTRIES_MAX = 1_024  # the public door holds at most 400 connections; the rest is for chunks
BYTES_MAX = 32 * 1024 * 1024
AGE_MAX_S = 2.0  # behind a disk that stalls for longer, a newcomer would outwait its sender
QUIET_S = 0.005  # a sender that waits for its answer before it asks again pauses for less
# Where somebody waits for more than this part of the time, senders are slowed down by what else the
# box does; a few hundred deliveries a second leave half of the time.
CROWDED = 0.5
WATCH_S = 4 * QUIET_S
LOOK_EVERY_S = 0.1  # for outrun deadlines; one timer for all is much cheaper than one for each


@dataclass(slots=True, eq=False)
class Entry:
    """One proposal and the caller who waits for it."""

    proposal: Proposal
    answer: asyncio.Future[Admission]
    since: float
    deadline: float
    bytes: int

    def resolve(self, admission: Admission) -> None:
        """It is stored."""
        if not self.answer.done():
            self.answer.set_result(admission)

    def fail(self, error: HookboxError) -> None:
        """It is not stored, or nobody knows whether it is."""
        if not self.answer.done():
            self.answer.set_exception(error)
            self.answer.exception()  # a caller that gave up never asks, which is no news for a log


@dataclass(slots=True)
class Work:
    """What somebody else wants done on the connection, and who waits for its result."""

    run: Callable[[Transaction], Any]
    answer: asyncio.Future[Any]

    def fail(self, error: HookboxError) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)

    def resolve(self, result: Any) -> None:
        if not self.answer.done():
            self.answer.set_result(result)


class WaitingRoom:
    """Filled by callers on the event loop, emptied by the writer on its connection's thread."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._entries: deque[Entry] = deque()
        self._bytes = 0
        self._taken: list[Entry] = []
        self._watching = False
        self._last_stir = float("-inf")
        self._occupied_since = 0.0
        self._occupied_s = 0.0

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def quiet_for_s(self) -> float:
        """How long ago the last delivery came or was answered; 0 while one waits or is stored."""
        if self._entries or self._taken:
            return 0.0
        return self._clock.monotonic() - self._last_stir

    async def quiet(self, at_most_s: float, give_up: Callable[[], bool]) -> None:
        """Wait, at most so long, until nobody comes for a moment, or few do."""
        began, occupied_s = self._clock.monotonic(), self._occupied_so_far_s
        while not give_up() and (waited_s := self._clock.monotonic() - began) < at_most_s:
            if self.quiet_for_s >= QUIET_S:
                return
            crowded = self._occupied_so_far_s - occupied_s > waited_s * CROWDED
            if waited_s >= WATCH_S and not crowded:
                return
            await self._clock.sleep(QUIET_S)

    @property
    def _occupied_so_far_s(self) -> float:
        """For how long, all in all, somebody has been waiting here."""
        if not (self._entries or self._taken):
            return self._occupied_s
        return self._occupied_s + self._clock.monotonic() - self._occupied_since

    def check(self) -> None:
        """Raises Overloaded when whoever enters now would wait too long."""
        oldest = next(iter(self._taken or self._entries), None)
        too_old = oldest is not None and self._clock.monotonic() - oldest.since > AGE_MAX_S
        if too_old or len(self._entries) >= ENTRIES_MAX or self._bytes >= BYTES_MAX:
            raise Overloaded(f"{len(self._entries)} deliveries wait to be stored")

    def enter(self, proposal: Proposal, deadline_s: float) -> Entry:
        """Wait to be stored, for so long."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Admission] = loop.create_future()
        self._last_stir = self._clock.monotonic()
        if not (self._entries or self._taken):
            self._occupied_since = self._last_stir
        deadline = self._last_stir + deadline_s
        entry = Entry(proposal, answer, self._last_stir, deadline, proposal.bytes)
        self._bytes += entry.bytes
        self._entries.append(entry)
        if not self._watching:
            self._watching = True
            loop.call_later(LOOK_EVERY_S, self._expire)
        return entry

    def _expire(self) -> None:
        """Tell those whose time is up that they are not stored, as far as anybody knows."""
        now = self._clock.monotonic()
        for entry in (*self._taken, *tuple(self._entries)):
            if entry.deadline < now:
                entry.fail(Overloaded("no commit in time"))
        self._watching = bool(self._taken or self._entries)
        if self._watching:
            asyncio.get_running_loop().call_later(LOOK_EVERY_S, self._expire)

    def take(self) -> list[Entry]:
        """The next batch, without those whose callers gave up or were sent away.

        Runs beside the callers, on another thread: a deque is safe for that, and `_bytes` is a
        bound, not an account.
        """
        taken: list[Entry] = []
        rows = 0
        while self._entries and rows < BATCH_ROWS_MAX:
            entry = self._entries.popleft()
            self._bytes = max(0, self._bytes - entry.bytes)
            if entry.answer.done():
                continue
            taken.append(entry)
            rows += max(1, entry.proposal.rows)
        self._taken = taken
        return taken

    def settled(self) -> None:
        """The batch that was taken is answered."""
        self._taken = []
        self._last_stir = self._clock.monotonic()
        if not self._entries:
            self._occupied_s += self._last_stir - self._occupied_since

    def fail_all(self, error: StoreError) -> None:
        """Nobody who waits can be stored."""
        while self._entries:
            self._entries.popleft().fail(error)
        self._bytes = 0
