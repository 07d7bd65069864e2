"""Slow and greedy senders cost honest ones nothing, and the box next to nothing."""

import asyncio
import resource
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.witness import abuse
from tests.witness.server import MakeServer, Server

pytestmark = pytest.mark.witness

FRONT = (sys.executable, str(Path(__file__).with_name("front.py")))
# The usual limit of a login shell, in force for the receiver.
FEW_FILES = ("sh", "-c", 'ulimit -n 1024 && exec "$@"', "sh")

ATTACKERS = 1_500
ATTACK_S = 8.0
HOARDERS = 300  # each holds back the end of a megabyte
GARBAGE = 20_000

PROBE_P99_S = 1.0
PUSHED_MAX = 4 * 1024 * 1024
GROWTH_MAX_KB = 40 * 1024
# Twice the 8 MiB that a door holds (the app lets go of what is evicted a moment later), a copy in
# the making, and what the allocator keeps.
HOARDED_MAX_KB = 48 * 1024
# Answered connections go at once; those that said nothing go with the deadline of a head.
EMPTIED_S = 20.0


@pytest.fixture(autouse=True)
def _many_files() -> Iterator[None]:
    """The attackers need more file descriptors than the receiver has."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * ATTACKERS + 500
    if hard != resource.RLIM_INFINITY and hard < wanted:
        pytest.skip(f"needs {wanted} open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def memory_kb(server: Server, line: str) -> int:
    """VmRSS or VmHWM of the receiver."""
    status = Path(f"/proc/{server.pid}/status").read_text()
    return int(status.split(f"{line}:")[1].split()[0])


def open_files(server: Server) -> int:
    return sum(1 for _ in Path(f"/proc/{server.pid}/fd").iterdir())


def shut_out(server: Server, start: bytes, more: bytes, attackers: int = ATTACKERS) -> list[str]:
    """How honest senders suffered from so many slow ones."""
    attack = partial(abuse.slow, server.port, start, more, connections=attackers, seconds=ATTACK_S)
    probes = asyncio.run(abuse.probes(server.port, attack))
    assert len(probes) > 20, "too few probes to tell"
    failed = [probe for probe in probes if not 200 <= probe.status < 300]
    took = sorted(probe.took_s for probe in probes)
    p99_s = took[int(len(took) * 0.99)]
    found = [f"{len(failed)} of {len(probes)} honest requests failed: {failed[:3]}"]
    late = [f"honest requests took {p99_s:.2f} s at p99"]
    print(f"probes {len(probes)} p50 {took[len(took) // 2]:.3f} s p99 {p99_s:.3f} s")
    return (found if failed else []) + (late if p99_s > PROBE_P99_S else [])


def swallowed(server: Server, name: str) -> list[str]:
    """What an endless request was allowed to push."""
    pushed = asyncio.run(abuse.greedy(server.port, *abuse.GREEDY[name]))
    print(f"{name}: {pushed >> 10} KB")
    return [f"{name}: {pushed >> 10} KB were taken"] if pushed > PUSHED_MAX else []


def upset(server: Server, seed: int) -> list[str]:
    """What broken requests did to the receiver."""
    told = asyncio.run(abuse.garbage(server.port, GARBAGE, seed))
    print(dict(told))
    ours = {status: count for status, count in told.items() if status.startswith("50")}
    ours.pop("501", None)  # the sender asked for what we do not do
    return [f"blamed ourselves for garbage: {ours}"] if ours else []


def left_behind(
    server: Server, files: int, memory_before_kb: int, growth_max_kb: int = GROWTH_MAX_KB
) -> list[str]:
    """What remains of it all once everybody is gone."""
    deadline = time.monotonic() + EMPTIED_S
    while open_files(server) > files and time.monotonic() < deadline:
        time.sleep(0.1)
    growth_kb = memory_kb(server, "VmHWM") - memory_before_kb
    print(f"memory {memory_before_kb} KB, at most {growth_kb} KB more")
    found = []
    if open_files(server) > files:
        found.append(f"{open_files(server) - files} file descriptors left")
    if growth_kb > growth_max_kb:
        found.append(f"memory grew by {growth_kb} KB")
    if "Traceback" in server.log_text():
        found.append(server.log_text()[-2_000:])
    return found


def test_honest_senders_are_served_among_slow_greedy_and_mad_ones(server: MakeServer) -> None:
    front = server((*FRONT, "guarded"), prefix=FEW_FILES).start()
    files, memory_before_kb = open_files(front), memory_kb(front, "VmRSS")
    found = shut_out(front, *abuse.SLOW_HEAD) + shut_out(front, *abuse.SLOW_BODY)
    for name in abuse.GREEDY:
        found += swallowed(front, name)
    found += upset(front, seed=20_251)
    found += left_behind(front, files, memory_before_kb)
    assert found == []


def hoarded(front: Server) -> list[str]:
    """What senders got who filled the memory with bodies that never end."""
    files, memory_before_kb = open_files(front), memory_kb(front, "VmRSS")
    found = shut_out(front, *abuse.HOARD, attackers=HOARDERS)
    return found + left_behind(front, files, memory_before_kb, HOARDED_MAX_KB)


def test_unfinished_bodies_cannot_fill_the_memory(server: MakeServer) -> None:
    assert hoarded(server((*FRONT, "guarded"), prefix=FEW_FILES).start()) == []


def test_stock_protocol_keeps_every_unfinished_body(server: MakeServer) -> None:
    """The planted fault."""
    found = hoarded(server((*FRONT, "stock"), prefix=FEW_FILES).start())
    assert any("memory grew" in each for each in found), found


def test_stock_protocol_fails_them(server: MakeServer) -> None:
    """The planted fault: uvicorn's own protocol on the same attacks."""
    front = server((*FRONT, "stock"), prefix=FEW_FILES).start()
    assert swallowed(front, "one field")
    assert any("honest requests failed" in each for each in shut_out(front, *abuse.SLOW_HEAD))
