"""What is measured: each scenario runs servers, and yields what it saw.

Contenders take turns inside a round, with the same requests, so that whatever else the machine does
meets them all.
"""

import time
from collections.abc import Callable, Iterator, Mapping

from tests.bench import contenders
from tests.bench.bench import CROWD, LADDER, Bench, Reading, Run, Seat, Seen
from tests.bench.contenders import stored
from tests.bench.requests import Ids
from tests.bench.rig import sync_p99_ms
from tests.bench.stock import stocked_state

SLOWER_MS = 10


def ladder(bench: Bench) -> Iterator[Seen]:
    """Every stack with 1 to 256 connections, and hookbox without its store."""
    cache = bench.cache
    stacks = [
        contenders.hookbox(),
        contenders.express(cache),
        contenders.fastapi(cache),
        contenders.flask(cache),
    ]
    for round_ in range(bench.plan.rounds):
        seats = [Seat(contender=stack, connections=LADDER) for stack in stacks]
        seats.append(Seat(contender=contenders.checks_only()))
        yield from bench.side_by_side("ladder", round_, seats, bench.requests(len(LADDER)))


def slow_disk(bench: Bench) -> Iterator[Seen]:
    """Every sync takes 10 ms longer: what batching is for."""
    for round_ in range(bench.plan.rounds):
        seats = [
            Seat(contender=contenders.hookbox(), connections=(CROWD, LADDER[-1])),
            Seat(contender=contenders.per_request()),
        ]
        slowed = bench.rig.slowed(SLOWER_MS)
        yield from bench.side_by_side("slow disk", round_, seats, bench.requests(2), slowed)


def duplicates(bench: Bench) -> Iterator[Seen]:
    """New events, then every one of them once more."""
    box = contenders.hookbox()
    for round_ in range(bench.plan.rounds):
        requests, folder = bench.requests(1), bench.rig.folder("state")
        with bench.serve(box, folder) as server:
            new = bench.load(server, requests)
            again = bench.load(server, requests, most=new.next)
        yield Run(scenario="duplicates", contender="new", round=round_, load=new)
        yield Run(scenario="duplicates", contender="sent again", round=round_, load=again)
        yield bench.count("duplicates", box, folder, new.acknowledged, new.sent)


def steady(bench: Bench) -> Iterator[Seen]:
    """Requests at half the rate that the box can take; latency counts from when each was due."""
    box = contenders.hookbox()
    for round_ in range(bench.plan.rounds):
        requests, folder = bench.requests(2), bench.rig.folder("state")
        yield Reading(scenario="steady", name="sync p99 (ms)", value=sync_p99_ms(bench.rig.scratch))
        with bench.serve(box, folder) as server:
            top = bench.load(server, requests)
            half = bench.load(server, requests, first=top.next, rate=top.rps / 2)
        yield Run(scenario="steady", contender="as fast as it can", round=round_, load=top)
        yield Run(scenario="steady", contender="at half that rate", round=round_, load=half)
        acknowledged = top.acknowledged + half.acknowledged
        yield bench.count("steady", box, folder, acknowledged, half.next)


def footprint(bench: Bench) -> Iterator[Seen]:
    """Start to first answer, processor time while nothing happens, memory after many events."""
    box, plan, folder = contenders.hookbox(), bench.plan, bench.rig.folder("state")
    for _ in range(plan.starts):
        with bench.serve(box, folder) as server:
            yield Reading(scenario="footprint", name="ready (s)", value=server.ready_s)
    requests = bench.exactly(plan.many)
    with bench.serve(box, folder) as server:
        server.settle()
        before = server.cpu_s()
        time.sleep(plan.idle_s)
        idle = (server.cpu_s() - before) / plan.idle_s * 100
        yield Reading(scenario="footprint", name="idle CPU (%)", value=idle)
        yield Reading(scenario="footprint", name="RSS at rest (MB)", value=server.rss_mb())
        load = bench.load(server, requests, seconds=120)
        yield Run(scenario="footprint", contender=box.name, round=0, load=load)
        yield Reading(scenario="footprint", name="RSS after many (MB)", value=server.rss_mb())
    yield bench.count("footprint", box, folder, load.acknowledged, load.sent)


def grown(bench: Bench) -> Iterator[Seen]:
    """An empty box and one with millions of events; ids at random, and ids that rise with time."""
    box = contenders.hookbox()
    for ids in Ids:
        full = stocked_state(bench.rig, bench.cache, bench.secret, ids, bench.plan.size)
        for round_ in range(bench.plan.rounds):
            held = stored(box, full)
            seats = [
                Seat(contender=box, name=f"empty, {ids} ids"),
                Seat(contender=box, name=f"grown, {ids} ids", folder=full, held=held),
            ]
            yield from bench.side_by_side("grown", round_, seats, bench.requests(1, ids))


SCENARIOS: Mapping[str, Callable[[Bench], Iterator[Seen]]] = {
    "ladder": ladder,
    "slow-disk": slow_disk,
    "duplicates": duplicates,
    "steady": steady,
    "footprint": footprint,
    "grown": grown,
}
