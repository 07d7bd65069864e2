"""What is measured: each scenario runs servers, and yields what it saw.

Contenders take turns inside a round, with the same requests, so that whatever else the machine does
meets them all.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tests.bench import contenders
from tests.bench.contenders import Contender, stored
from tests.bench.requests import Ids, write_requests
from tests.bench.rig import Load, Rig, Server, free_port, sync_p99_ms
from tests.bench.stock import stocked_state

LADDER = (1, 16, 64, 256)
CROWD = 64  # connections wherever a scenario does not vary them
SLOWER_MS = 10
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


class Bench:
    """The rig and the plan, with what every scenario does with them."""

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
        """A load as the plan has it."""
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

    def turn(
        self,
        scenario: str,
        contender: Contender,
        round_: int,
        requests: Path,
        connections: Sequence[int],
        environment: Mapping[str, str] | None = None,
    ) -> Iterator[Seen]:
        """A server with an empty state, a load for each number of connections, a count."""
        folder, port = self.rig.folder("state"), free_port()
        launch = contender.launch(folder, port)
        launch = replace(launch, environment={**launch.environment, **(environment or {})})
        acknowledged = sent = 0
        with self.rig.serve(launch, port) as server:
            for number in connections:
                load = self.load(server, requests, number, first=sent)
                acknowledged, sent = acknowledged + load.acknowledged, load.next
                yield Run(scenario=scenario, contender=contender.name, round=round_, load=load)
        if contender.database is not None:
            yield Count(
                scenario=scenario,
                contender=contender.name,
                acknowledged=acknowledged,
                events=stored(contender, folder),
                sent=sent,
            )


def ladder(bench: Bench) -> Iterator[Seen]:
    """Every stack with 1 to 256 connections, and hookbox without its store."""
    cache = bench.cache
    rivals = [contenders.express(cache), contenders.fastapi(cache), contenders.flask(cache)]
    for round_ in range(bench.plan.rounds):
        requests = bench.requests(len(LADDER))
        for contender in [contenders.hookbox(), *rivals]:
            yield from bench.turn("ladder", contender, round_, requests, LADDER)
        yield from bench.turn("ladder", contenders.checks_only(), round_, requests, [CROWD])


def slow_disk(bench: Bench) -> Iterator[Seen]:
    """Every sync takes 10 ms longer: what batching is for."""
    slowed = bench.rig.slowed(SLOWER_MS)
    for round_ in range(bench.plan.rounds):
        requests = bench.requests(2)
        for contender, connections in (
            (contenders.hookbox(), [CROWD, LADDER[-1]]),
            (contenders.per_request(), [CROWD]),
        ):
            yield from bench.turn("slow disk", contender, round_, requests, connections, slowed)


def duplicates(bench: Bench) -> Iterator[Seen]:
    """New events, then every one of them once more."""
    box = contenders.hookbox()
    for round_ in range(bench.plan.rounds):
        requests, folder, port = bench.requests(1), bench.rig.folder("state"), free_port()
        with bench.rig.serve(box.launch(folder, port), port) as server:
            new = bench.load(server, requests)
            again = bench.load(server, requests, most=new.next)
        yield Run(scenario="duplicates", contender="new", round=round_, load=new)
        yield Run(scenario="duplicates", contender="sent again", round=round_, load=again)
        yield Count(
            scenario="duplicates",
            contender=box.name,
            acknowledged=new.acknowledged,
            events=stored(box, folder),
            sent=new.sent,
        )


def grown(bench: Bench) -> Iterator[Seen]:
    """An empty box and one with millions of events; ids at random, and ids that rise with time."""
    box = contenders.hookbox()
    for ids in Ids:
        full = stocked_state(bench.rig, bench.cache, bench.secret, ids, bench.plan.size)
        for round_ in range(bench.plan.rounds):
            requests = bench.requests(1, ids)
            for name, folder in (("empty", bench.rig.folder("state")), ("grown", full)):
                port = free_port()
                with bench.rig.serve(box.launch(folder, port), port) as server:
                    load = bench.load(server, requests)
                contender = f"{name}, {ids} ids"
                yield Run(scenario="grown", contender=contender, round=round_, load=load)


def steady(bench: Bench) -> Iterator[Seen]:
    """Requests at half the rate that the box can take; latency counts from when each was due."""
    box = contenders.hookbox()
    for round_ in range(bench.plan.rounds):
        requests, folder, port = bench.requests(2), bench.rig.folder("state"), free_port()
        yield Reading(scenario="steady", name="sync p99 (ms)", value=sync_p99_ms(bench.rig.scratch))
        with bench.rig.serve(box.launch(folder, port), port) as server:
            top = bench.load(server, requests)
            half = bench.load(server, requests, first=top.next, rate=top.rps / 2)
        yield Run(scenario="steady", contender="as fast as it can", round=round_, load=top)
        yield Run(scenario="steady", contender="at half that rate", round=round_, load=half)


def footprint(bench: Bench) -> Iterator[Seen]:
    """Start to first answer, processor time while nothing happens, memory after many events."""
    box, plan, folder = contenders.hookbox(), bench.plan, bench.rig.folder("state")
    for _ in range(plan.starts):
        port = free_port()
        with bench.rig.serve(box.launch(folder, port), port) as server:
            yield Reading(scenario="footprint", name="ready (s)", value=server.ready_s)
    requests, port = bench.exactly(plan.many), free_port()
    with bench.rig.serve(box.launch(folder, port), port) as server:
        time.sleep(1)
        before = server.cpu_s()
        time.sleep(plan.idle_s)
        idle = (server.cpu_s() - before) / plan.idle_s * 100
        yield Reading(scenario="footprint", name="idle CPU (%)", value=idle)
        yield Reading(scenario="footprint", name="RSS at rest (MB)", value=server.rss_mb())
        load = bench.load(server, requests, seconds=120)
        yield Run(scenario="footprint", contender=box.name, round=0, load=load)
        yield Reading(scenario="footprint", name="RSS after many (MB)", value=server.rss_mb())


SCENARIOS: Mapping[str, Callable[[Bench], Iterator[Seen]]] = {
    "ladder": ladder,
    "slow-disk": slow_disk,
    "duplicates": duplicates,
    "steady": steady,
    "footprint": footprint,
    "grown": grown,
}
