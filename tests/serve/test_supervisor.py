"""What the running program tells systemd, in its own protocol, and what the units say."""

import asyncio
import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from hookbox.clock import ManualClock
from hookbox.errors import StoreError, StoreFull
from hookbox.store import database
from hookbox.web.supervisor import Supervisor
from tests.serve.wire import exchange, head
from tests.witness.server import Server

UNITS = Path(__file__).resolve().parents[2] / "systemd"
EXPOSURE_MAX = 2.0


@pytest.fixture
def heard(tmp_path: Path) -> Iterator[socket.socket]:
    """Where the supervisor listens."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        listening.settimeout(15)
        yield listening


def words(heard: socket.socket) -> list[str]:
    return heard.recv(4096).decode().split("\n")


def supervised(tmp_path: Path, **environment: str) -> Server:
    return Server(
        tmp_path / "state", env={"NOTIFY_SOCKET": str(tmp_path / "notify"), **environment}
    )


def test_ready_is_told_once_webhooks_are_received(tmp_path: Path, heard: socket.socket) -> None:
    with supervised(tmp_path) as running:
        assert words(heard) == ["READY=1"]
        assert exchange(running.port, head("GET", "/hooks/std", {})).status == 200


def test_reload_is_told_with_its_time_and_its_end(tmp_path: Path, heard: socket.socket) -> None:
    with supervised(tmp_path) as running:
        assert words(heard) == ["READY=1"]
        os.kill(running.pid, signal.SIGHUP)
        reloading, since = words(heard)
        assert reloading == "RELOADING=1"
        assert re.fullmatch(r"MONOTONIC_USEC=\d+", since)
        assert words(heard) == ["READY=1"]


def test_stop_is_told(tmp_path: Path, heard: socket.socket) -> None:
    with supervised(tmp_path) as running:
        assert words(heard) == ["READY=1"]
        running.terminate()
    assert words(heard) == ["STOPPING=1"]


def test_watchdog_is_fed_by_heartbeats_that_are_in_the_database(
    tmp_path: Path, heard: socket.socket
) -> None:
    with supervised(tmp_path, WATCHDOG_USEC="300000") as running:
        told = [words(heard) for _ in range(4)]
        assert told.count(["WATCHDOG=1"]) == 3
        with database.reading(running.state) as transaction:
            (beat,) = transaction.execute("SELECT beat_at FROM heartbeat").fetchone()
    assert beat > 1_700_000_000_000


def test_stopped_process_feeds_no_watchdog(tmp_path: Path, heard: socket.socket) -> None:
    with supervised(tmp_path, WATCHDOG_USEC="300000") as running:
        assert words(heard)
        os.kill(running.pid, signal.SIGSTOP)
        try:
            heard.settimeout(1)  # three beats and more
            with contextlib.suppress(TimeoutError):
                for _ in range(3):  # those that were on their way
                    words(heard)
            with pytest.raises(TimeoutError):
                words(heard)
        finally:
            os.kill(running.pid, signal.SIGCONT)


@pytest.mark.parametrize(
    ("error", "fed"), [(None, True), (StoreFull("full"), True), (StoreError("broken"), False)]
)
async def test_only_a_box_that_stores_or_knows_why_not_is_alive(
    tmp_path: Path,
    heard: socket.socket,
    monkeypatch: pytest.MonkeyPatch,
    error: StoreError | None,
    fed: bool,
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
    monkeypatch.setenv("WATCHDOG_USEC", "3000000")
    beaten = asyncio.Event()

    async def beat() -> None:
        beaten.set()
        if error is not None:
            raise error

    clock = ManualClock()
    watching = asyncio.create_task(Supervisor(clock).watch(beat))
    await beaten.wait()
    await asyncio.sleep(0)
    watching.cancel()
    heard.setblocking(False)
    assert _pending(heard) == (["WATCHDOG=1"] if fed else [])


def _pending(heard: socket.socket) -> list[str]:
    try:
        return words(heard)
    except BlockingIOError:
        return []


# --- the units


@pytest.fixture
def units(tmp_path: Path) -> Path:
    """The units, with a program that exists: what is checked is the rest."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd is not installed")
    folder = tmp_path / "units"
    folder.mkdir()
    for unit in (*UNITS.glob("*.service"), *UNITS.glob("*.socket"), *UNITS.glob("*.timer")):
        text = unit.read_text().replace("/usr/bin/hookbox", "/bin/true")
        (folder / unit.name).write_text(re.sub(r"(?m)^Documentation=man:.*\n", "", text))
    return folder


def test_units_are_understood(units: Path) -> None:
    verify = subprocess.run(
        ["systemd-analyze", "verify", *map(str, units.iterdir())],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (verify.returncode, verify.stderr) == (0, "")


def test_service_is_hardened(units: Path) -> None:
    security = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", str(units / "hookbox.service")],
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.search(r"exposure level for hookbox.service: ([0-9.]+)", security.stdout)
    assert found, security.stderr
    assert float(found[1]) <= EXPOSURE_MAX
