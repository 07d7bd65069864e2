"""The rig: builds the C tools, runs a server on one core, loads it from another core."""

import contextlib
import http.client
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench.requests import PATH

HERE = Path(__file__).parent
READY_WITHIN_S = 30
STOP_WITHIN_S = 15
SETTLE_WITHIN_S = 30
SETTLE_LOOK_S = 0.2
SETTLED_SHARE = 0.03  # of a core
IN_MEMORY = {"tmpfs", "ramfs"}  # a sync that costs nothing proves nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What one run of the load generator saw. `others`: how many cores strangers used meanwhile."""

    connections: int
    seconds: float
    rps: float
    p50_ms: float
    p99_ms: float
    p999_ms: float
    max_ms: float
    slowest_ms: float
    sent: int
    next: int
    late: int
    errors: int
    unanswered: int
    statuses: Mapping[str, int]
    server_us: float = 0
    others: float = 0

    @property
    def acknowledged(self) -> int:
        return sum(count for status, count in self.statuses.items() if status.startswith("2"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """How to start a server: its command, where, and what it finds in its environment."""

    command: Sequence[str]
    cwd: Path
    environment: Mapping[str, str] = field(default_factory=dict)


class Server:
    """A server that answers, pinned to one core."""

    def __init__(self, child: subprocess.Popen[bytes], port: int, begun: float) -> None:
        self.child, self.port, self.name = child, port, str(child.args)
        self.ready_s = self._wait_ready(begun)

    def _wait_ready(self, begun: float) -> float:
        while (waited := time.perf_counter() - begun) < READY_WITHIN_S:
            if self.child.poll() is not None:
                raise RuntimeError(f"{self.name} ended with {self.child.returncode}")
            with contextlib.suppress(OSError, http.client.HTTPException):
                if _answers(self.port):
                    return time.perf_counter() - begun
            time.sleep(0.005)
        raise RuntimeError(f"{self.name} not ready after {waited:.0f} s")

    def pids(self) -> list[int]:
        """The server and everything it started (workers of a pre-forking one)."""
        found = [self.child.pid]
        for pid in found:
            for children in Path(f"/proc/{pid}/task").glob("*/children"):
                found += map(int, children.read_text().split())
        return found

    def rss_mb(self) -> float:
        """Resident memory, in units of 1024 * 1024 bytes."""
        pages = sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in self.pids())
        return pages * resource.getpagesize() / 2**20

    def cpu_s(self) -> float:
        """Processor time used so far, to the nanosecond (the usual counters tick every 10 ms)."""
        tasks = (
            task for pid in self.pids() for task in Path(f"/proc/{pid}/task").glob("*/schedstat")
        )
        return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9

    def settle(self) -> None:
        """Wait until the server has worked off what earlier requests left it to do."""
        for _ in range(int(SETTLE_WITHIN_S / SETTLE_LOOK_S)):
            before = self.cpu_s()
            time.sleep(SETTLE_LOOK_S)
            if self.cpu_s() - before < SETTLE_LOOK_S * SETTLED_SHARE:
                return

    def stop(self) -> None:
        self.child.send_signal(signal.SIGTERM)
        try:
            self.child.wait(STOP_WITHIN_S)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
            raise RuntimeError(f"{self.name} did not stop on SIGTERM") from None


class Rig:
    """Two cores and a scratch folder on the disk that is measured."""

    def __init__(self, folder: Path, *, server_core: int, load_core: int, realtime: bool) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        refuse_memory_disk(folder)
        self.scratch = Path(tempfile.mkdtemp(prefix="run-", dir=folder))
        urgent = ["chrt", "--rr", "1"] if realtime else []
        self.server_prefix = ["taskset", "-c", str(server_core), *urgent]
        self.load_prefix = ["taskset", "-c", str(load_core), *urgent]
        self.generator = self._compile("load.c", "load")
        self.slow_sync = self._compile("slowsync.c", "slowsync.so", "-shared", "-fPIC", "-ldl")

    def _compile(self, source: str, target: str, *flags: str) -> Path:
        built = self.scratch / target
        subprocess.run(["cc", "-O2", "-o", built, HERE / source, *flags], check=True)
        return built

    def folder(self, name: str) -> Path:
        """An empty folder for one server's state."""
        made = self.scratch / name
        shutil.rmtree(made, ignore_errors=True)
        made.mkdir(mode=0o700)
        return made

    def slowed(self, milliseconds: int) -> dict[str, str]:
        """The environment in which every sync takes so much longer."""
        return {"LD_PRELOAD": str(self.slow_sync), "SLOWSYNC_MS": str(milliseconds)}

    @contextlib.contextmanager
    def serve(self, launch: Launch, port: int) -> Iterator[Server]:
        """The server, from its first answer until it has stopped."""
        log = self.scratch / f"server-{port}.log"
        with log.open("wb") as out:
            begun = time.perf_counter()
            child = subprocess.Popen(
                [*self.server_prefix, *launch.command],
                cwd=launch.cwd,
                env={**os.environ, **launch.environment},
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            server = Server(child, port, begun)
        except RuntimeError as error:
            child.kill()
            raise RuntimeError(f"{error}\n{log.read_text()[-2000:]}") from None
        try:
            yield server
        finally:
            server.stop()

    def load(
        self,
        server: Server,
        requests: Path,
        *,
        connections: int,
        seconds: float,
        warm_up_s: float = 0.5,
        first: int = 0,
        most: int | None = None,
        rate: float = 0,
    ) -> Load:
        """Send requests for so long (or until they are used up), and say what came of it."""
        arguments = {"p": server.port, "f": requests, "c": connections, "d": seconds}
        arguments |= {"w": warm_up_s, "r": rate, "n": first}
        if most is not None:
            arguments["m"] = most
        flags = [text for name, value in arguments.items() for text in (f"-{name}", str(value))]
        before, own_before, busy_before = server.cpu_s(), _children_s(), _busy_s()
        begun = time.perf_counter()
        command = [*self.load_prefix, str(self.generator), *flags]
        report = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
        took = time.perf_counter() - begun
        used = server.cpu_s() - before
        others = _busy_s() - busy_before - used - (_children_s() - own_before)
        return Load(
            **report, server_us=used / max(1, report["sent"]) * 1e6, others=max(0, others) / took
        )

    def close(self) -> None:
        shutil.rmtree(self.scratch, ignore_errors=True)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def sync_p99_ms(folder: Path, times: int = 400) -> float:
    """How long the disk takes to make 4 KiB durable, at worst but for one time in a hundred."""
    took = []
    probe = folder / "sync-probe"
    with probe.open("wb", buffering=0) as file:
        for _ in range(times):
            file.write(b"x" * 4096)
            begun = time.perf_counter()
            os.fdatasync(file.fileno())
            took.append(time.perf_counter() - begun)
    probe.unlink()
    return sorted(took)[int(times * 0.99)] * 1000


def refuse_memory_disk(folder: Path) -> None:
    """A folder whose syncs are not those of a real disk cannot be measured."""
    kind = subprocess.run(
        ["stat", "-f", "-c", "%T", folder], capture_output=True, text=True, check=True
    ).stdout.strip()
    if kind in IN_MEMORY:
        raise SystemExit(f"{folder} lies on {kind}: choose a folder on a real disk with --folder")


def _answers(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        connection.request("HEAD", PATH)
        return connection.getresponse().status < 500
    finally:
        connection.close()


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _busy_s() -> float:
    """Seconds that all cores together were busy since boot."""
    ticks = list(map(int, Path("/proc/stat").read_text().splitlines()[0].split()[1:]))
    return (sum(ticks[:3]) + sum(ticks[5:8])) / os.sysconf("SC_CLK_TCK")
