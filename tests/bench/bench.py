"""The bench: what every scenario does with the rig, and the records of what it saw."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.bench.contenders import Contender, stored
from tests.bench.requests import Ids, write_requests
from tests.bench.rig import Load, Rig, Server, free_port

LADDER = (1, 16, 64, 256)
CROWD = 64  # connections wherever a scenario does not vary them
RATE_MAX = (
    22_000  # nobody here answers more in a second; whoever uses its requests up just ends early
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How long and how often. `many`: events after which memory is read. `size`: of a grown box."""

    rounds: int
    seconds: float
    warm_up_s: float
    idle_s: float
    starts: int
    many: int
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One load on one contender."""

    scenario: str
    contender: str
    round: int
    load: Load


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """What a database holds after its loads: all that was acknowledged, nothing unsent."""

    scenario: str
    contender: str
    acknowledged: int
    events: int
    sent: int

    @property
    def holds(self) -> bool:
        return self.acknowledged <= self.events <= self.sent


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A figure that is not a load: a time, a share, a size."""

    scenario: str
    name: str
    value: float


Seen = Run | Count | Reading


@dataclass(slots=True, kw_only=True)
class Seat:
    """One contender of a round. `folder`: a state to start from, with `held` events in it."""

    contender: Contender
    connections: Sequence[int] = (CROWD,)
    name: str = ""
    folder: Path | None = None
    held: int = 0
    acknowledged: int = 0
    sent: int = 0
    server: Server = field(init=False)


class Bench:
    """The rig and the plan."""

    def __init__(self, rig: Rig, plan: Plan, cache: Path, secret: str) -> None:
        self.rig, self.plan, self.cache, self.secret = rig, plan, cache, secret

    def requests(self, loads: int, ids: Ids = Ids.RANDOM) -> Path:
        """A fresh file with enough for so many loads; its signatures are good for five minutes."""
        return self.exactly(int(loads * (self.plan.seconds + self.plan.warm_up_s) * RATE_MAX), ids)

    def exactly(self, count: int, ids: Ids = Ids.RANDOM) -> Path:
        return write_requests(self.rig.scratch / "requests.bin", count, secret=self.secret, ids=ids)

    def load(
        self,
        server: Server,
        requests: Path,
        connections: int = CROWD,
        *,
        first: int = 0,
        most: int | None = None,
        rate: float = 0,
        seconds: float | None = None,
    ) -> Load:
        """A load as the plan has it, once the server has nothing left to do from an earlier one."""
        server.settle()
        return self.rig.load(
            server,
            requests,
            connections=connections,
            seconds=seconds or self.plan.seconds,
            warm_up_s=self.plan.warm_up_s,
            first=first,
            most=most,
            rate=rate,
        )

    @contextlib.contextmanager
    def serve(
        self,
        contender: Contender,
        folder: Path,
        environment: Mapping[str, str] | None = None,
    ) -> Iterator[Server]:
        """The contender's server on this state folder."""
        port = free_port()
        launch = contender.launch(folder, port)
        launch = replace(launch, environment={**launch.environment, **(environment or {})})
        with self.rig.serve(launch, port) as server:
            yield server

    def side_by_side(
        self,
        scenario: str,
        round_: int,
        seats: Sequence[Seat],
        requests: Path,
        environment: Mapping[str, str] | None = None,
    ) -> Iterator[Seen]:
        """All servers at once, loaded in turns, so that figures to be compared are neighbours."""
        with contextlib.ExitStack() as running:
            for number, seat in enumerate(seats):
                seat.name = seat.name or seat.contender.name
                seat.folder = seat.folder or self.rig.folder(f"state-{number}")
                seat.server = running.enter_context(
                    self.serve(seat.contender, seat.folder, environment)
                )
            for connections in LADDER:
                for seat in seats:
                    if connections in seat.connections:
                        for other in seats:  # what it is still at would cost this one its core
                            other.server.settle()
                        load = self.load(seat.server, requests, connections, first=seat.sent)
                        seat.acknowledged += load.acknowledged
                        seat.sent = load.next
                        yield Run(scenario=scenario, contender=seat.name, round=round_, load=load)
        for seat in seats:
            if seat.contender.database is not None and seat.folder is not None:
                acknowledged, sent = seat.held + seat.acknowledged, seat.held + seat.sent
                yield self.count(scenario, seat.contender, seat.folder, acknowledged, sent)
            elif seat.acknowledged < seat.sent:  # there are no rows to look into: only its answers
                refused = seat.sent - seat.acknowledged
                raise RuntimeError(f"{seat.name} did not answer 200 to {refused} of {seat.sent}")

    def count(
        self, scenario: str, contender: Contender, folder: Path, acknowledged: int, sent: int
    ) -> Count:
        """Look into the database of a contender that has stopped."""
        return Count(
            scenario=scenario,
            contender=contender.name,
            acknowledged=acknowledged,
            events=stored(contender, folder),
            sent=sent,
        )
