"""When the worker may go on: nobody comes for a moment, or few do, or it has waited long enough."""

from collections.abc import Callable

from hookbox.clock import ManualClock
from hookbox.store.waiting import QUIET_S, WATCH_S, WaitingRoom
from tests.store.offers import proposal

PATIENCE_S = 1.0


class Beat(ManualClock):
    """A clock whose sleepers wake at once, after whatever happens meanwhile has happened."""

    def __init__(self) -> None:
        super().__init__()
        self.meanwhile: Callable[[], None] = lambda: None

    async def sleep(self, seconds: float) -> None:
        self.advance(seconds / 2)
        self.meanwhile()
        self.advance(seconds / 2)


class Street:
    """A waiting room and those who come to it."""

    def __init__(self) -> None:
        self.clock = Beat()
        self.room = WaitingRoom(self.clock)

    def pass_by(self, stay_s: float) -> None:
        """Somebody comes, is stored, and goes."""
        self.room.enter(proposal(), 4.0)
        self.room.take()
        self.clock.advance(stay_s)
        self.room.settled()

    async def waited_s(self) -> float:
        began = self.clock.monotonic()
        await self.room.quiet(PATIENCE_S, lambda: False)
        return self.clock.monotonic() - began


async def test_empty_room_is_quiet_at_once() -> None:
    assert await Street().waited_s() == 0


async def test_worker_waits_for_a_moment_without_senders() -> None:
    street = Street()
    street.pass_by(0.001)
    assert QUIET_S <= await street.waited_s() < WATCH_S


async def test_few_senders_do_not_hold_the_worker_up() -> None:
    street = Street()
    street.pass_by(0)
    street.clock.meanwhile = lambda: street.pass_by(0.001)
    assert WATCH_S <= await street.waited_s() < 2 * WATCH_S


async def test_crowd_of_senders_goes_first_but_not_for_ever() -> None:
    street = Street()
    street.pass_by(0)
    street.clock.meanwhile = lambda: street.pass_by(0.05)
    assert PATIENCE_S <= await street.waited_s() < 1.2 * PATIENCE_S


async def test_sender_that_still_waits_counts_as_long_as_it_does() -> None:
    street = Street()
    street.room.enter(proposal(), 4.0)
    assert await street.waited_s() >= PATIENCE_S


async def test_box_that_stops_waits_for_nobody() -> None:
    street = Street()
    street.room.enter(proposal(), 4.0)
    began = street.clock.monotonic()
    await street.room.quiet(PATIENCE_S, lambda: True)
    assert street.clock.monotonic() == began
