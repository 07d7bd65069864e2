"""Word to whoever supervises the process, in the protocol of systemd's sd_notify(3).

One datagram for each change of state. Without NOTIFY_SOCKET nobody supervises, and nothing is sent.
"""

import logging
import os
import socket
from collections.abc import Awaitable, Callable

from hookbox.clock import Clock
from hookbox.errors import StoreBusy, StoreError, StoreFull

log = logging.getLogger("hookbox.serve")

READY = "READY=1"
STOPPING = "STOPPING=1"
ALIVE = "WATCHDOG=1"
# Three beats in each period: a slow commit or two do not look like a dead process.
BEATS_A_PERIOD = 3


class Supervisor:
    """Tells when the box is ready, reloading, stopping and alive."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._address = _address(os.environ.get("NOTIFY_SOCKET", ""))
        self.period_s = _watchdog_s()

    def tell(self, *lines: str) -> None:
        """Send some assignments. A supervisor that cannot be reached must not stop the box."""
        if not self._address:
            return
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as out:
            try:
                out.connect(self._address)
                out.sendall("\n".join(lines).encode())
            except OSError as error:
                log.warning("supervisor cannot be told error=%s", error)

    def reloading(self) -> None:
        """Followed by `READY` when it is over. systemd asks for the monotonic time of it."""
        self.tell("RELOADING=1", f"MONOTONIC_USEC={round(self._clock.monotonic() * 1e6)}")

    async def watch(self, beat: Callable[[], Awaitable[None]]) -> None:
        """Say "alive" after each heartbeat that was committed; ends never, or at once when nobody
        asks for it.

        A box that waits for space on the disk, or for another program's lock, knows what is wrong:
        ending it would not help. One whose event loop, thread or disk hangs says nothing.
        """
        if self.period_s is None:
            return
        while True:
            try:
                await beat()
            except (StoreFull, StoreBusy):
                self.tell(ALIVE)
            except StoreError as error:
                log.error("heartbeat not stored error=%s", error)
            else:
                self.tell(ALIVE)
            await self._clock.sleep(self.period_s / BEATS_A_PERIOD)


def _address(text: str) -> str:
    """A path, or a name in the abstract namespace, which begins with @."""
    return "\0" + text[1:] if text.startswith("@") else text


def _watchdog_s() -> float | None:
    """How long silence is tolerated; None when this process is not watched."""
    period, pid = os.environ.get("WATCHDOG_USEC", ""), os.environ.get("WATCHDOG_PID")
    if not period.isdecimal() or int(period) == 0 or pid not in (None, str(os.getpid())):
        return None
    return int(period) / 1e6
