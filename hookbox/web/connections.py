"""The connections of one door: how many, how slow, how greedy, and who goes when it is full.

Owns every limit of the HTTP front, the beat by which deadlines are kept, and the counters that
others read. Knows nothing of HTTP or sockets.

Whoever is slow loses the place, never whoever is quick: at a cap, the connection that we have been
waiting for longest is put out. A cap that turned newcomers away instead would let a few hundred
idle sockets lock every honest sender out.
"""

import asyncio
import math
from collections import Counter
from dataclasses import dataclass
from typing import Protocol

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one door tolerates: a deadline for every wait, a cap on everything that is kept."""

    # Heads. The largest honest ones (two signatures, a token, a proxy's own lines) are under 4 KB
    # and 40 fields.
    head_bytes_max: int = 16 * 1024
    fields_max: int = 100
    # 16 KB on a 28 kbit/s line take 4.7 s; the rest is room for two lost packets.
    head_s: float = 10.0

    # Bodies. A batch of 1,000 events at 600 bytes is 600 KB; 1 MiB on a 500 kbit/s line takes 17 s.
    body_bytes_max: int = MIB
    body_s: float = 20.0

    # The app answers within 4 s, so whoever is still unanswered after this does not read. An answer
    # that goes on for longer may do so while its reader takes it.
    answer_s: float = 30.0
    # Senders may finish their side before they are answered. Where answers are waited for, whoever
    # does that has hung up.
    half_closed: bool = True

    # Kept connections. Senders that pool send again within seconds. One handshake in a thousand
    # requests costs nothing, and spreads long-lived callers again after a restart.
    idle_s: float = 15.0
    requests_max: int = 1_000

    # When the door closes, a caller just let in has its request on the way: one slow round trip.
    drain_s: float = 1.5
    # A refusal must be readable by a sender that is still sending: two slow round trips, and what
    # the socket buffers of both sides may hold by then.
    linger_s: float = 2.0
    linger_bytes_max: int = 4 * MIB

    # 400 connections, each with 16 KB of head and the parser's state, are about 10 MB, and leave
    # more than half of the usual 1,024 file descriptors to the rest of the box.
    connections_max: int = 400
    # Bodies not yet answered, all together: eight of the largest at once, or 13 batches of 1,000
    # events. What is evicted is gone a moment later, so the true use is up to twice as much.
    held_bytes_max: int = 8 * MIB

    # How exactly deadlines are kept. Looking at 400 connections four times a second costs nothing;
    # a timer for each phase of each request would cost a tenth of the whole answer.
    beat_s: float = 0.25


class Connection(Protocol):
    """What the registry must know of a connection."""

    held_bytes: int
    due: int  # the beat at which it expires

    def expire(self) -> None:
        """The deadline is over."""
        ...

    def evict(self) -> None:
        """Close at once, without an answer."""
        ...


class Registry:
    """The open connections of one door. Protocols report to it, metrics read its counters."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.draining = False
        self.evicted = 0
        self.expired = 0
        self.refused_by_status: Counter[int] = Counter()
        self.held_bytes = 0
        self.beat = 0
        self._beating: asyncio.TimerHandle | None = None
        self._open: set[Connection] = set()
        # A dict keeps order: the connection that we have waited for longest comes first.
        self._awaited: dict[Connection, None] = {}

    def __len__(self) -> int:
        """How many connections are open."""
        return len(self._open)

    def beats(self, seconds: float) -> int:
        """As many beats as last at least so long; beats that come late make deadlines later."""
        return 1 + math.ceil(seconds / self.limits.beat_s)

    def enter(self, connection: Connection) -> None:
        """A new connection takes its place, at the cost of the slowest when there is none left."""
        self._open.add(connection)
        if self._beating is None:
            self._wait_a_beat()
        self.await_sender(connection)
        while len(self._open) > self.limits.connections_max:
            self._evict(next(iter(self._awaited)))

    def leave(self, connection: Connection) -> None:
        """The connection is gone."""
        self.release(connection)
        self._open.discard(connection)
        self._awaited.pop(connection, None)

    def await_sender(self, connection: Connection) -> None:
        """From now on it is the sender that we wait for."""
        self._awaited.pop(connection, None)
        self._awaited[connection] = None

    def serve(self, connection: Connection) -> None:
        """The request is whole: from now on the sender waits for us and cannot be evicted."""
        self._awaited.pop(connection, None)

    def hold(self, connection: Connection, size: int) -> bool:
        """Count body bytes against the door's memory, at the cost of whoever holds most of it.

        False: that is this connection, or nobody can be evicted; it must go itself.
        """
        connection.held_bytes += size
        self.held_bytes += size
        while self.held_bytes > self.limits.held_bytes_max:
            greediest = max(self._awaited, key=lambda other: other.held_bytes, default=connection)
            if greediest is connection or not greediest.held_bytes:
                return False
            self._evict(greediest)
        return True

    def release(self, connection: Connection) -> None:
        """The request is answered, or given up."""
        self.held_bytes -= connection.held_bytes
        connection.held_bytes = 0

    def _wait_a_beat(self) -> None:
        loop = asyncio.get_running_loop()
        self._beating = loop.call_later(self.limits.beat_s, self._expire_due)

    def _expire_due(self) -> None:
        self.beat += 1
        for connection in [each for each in self._open if each.due <= self.beat]:
            connection.expire()
        self._beating = None
        if self._open:  # a door with nobody at it sleeps
            self._wait_a_beat()

    def evict_all(self) -> None:
        """The time for farewells is over."""
        for connection in tuple(self._open):
            self._evict(connection)

    def _evict(self, connection: Connection) -> None:
        self.evicted += 1
        self.leave(connection)
        connection.evict()
