"""Starting, reloading and stopping the running program."""

import itertools
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.serve.wire import post, signed
from tests.witness import client
from tests.witness.server import Server

BODY = b'{"type":"email.delivered","data":{"to":["ann@example.com"]}}'


def send(server: Server, key: str, *, source: str = "std", secret: str = client.SECRET) -> int:
    return post(server.port, f"/hooks/{source}", BODY, signed(key, BODY, secret=secret)).status


def until(true: "object", deadline_s: float = 10.0) -> None:
    """Wait for something that another process does; bounded."""
    deadline = time.monotonic() + deadline_s
    while not true():  # type: ignore[operator]
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.02)


def test_termination_under_load_loses_nothing_and_is_quick(tmp_path: Path) -> None:
    server = Server(tmp_path / "state").start()
    acknowledged: list[str] = []

    def load() -> None:
        for n in itertools.count():
            try:
                if send(server, f"evt_{threading.get_ident()}_{n}") == 200:
                    acknowledged.append(f"evt_{threading.get_ident()}_{n}")
                else:
                    return
            except OSError:
                return

    threads = [threading.Thread(target=load) for _ in range(6)]
    for thread in threads:
        thread.start()
    until(lambda: len(acknowledged) > 100)
    began = time.monotonic()
    os.kill(server.pid, signal.SIGTERM)
    until(lambda: server.exit_code is not None)
    took_s = time.monotonic() - began
    for thread in threads:
        thread.join()
    assert server.exit_code == 0
    assert took_s < 10
    assert not (server.state / "hookbox-wal").exists()
    with server:
        again = {key: send(server, key) for key in acknowledged}
    import sqlite3

    connection = sqlite3.connect(server.database)
    stored = {key for (key,) in connection.execute("SELECT key FROM events")}
    connection.close()
    assert set(acknowledged) <= stored
    assert set(again.values()) == {200}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_two_signals_stop_as_well_as_one(tmp_path: Path, number: int) -> None:
    server = Server(tmp_path / "state").start()
    os.kill(server.pid, number)
    os.kill(server.pid, number)
    until(lambda: server.exit_code is not None)
    assert server.exit_code == 0


def test_termination_while_starting_ends_it_cleanly(tmp_path: Path) -> None:
    """At any moment of a start: it ends by itself, and the next start works."""
    server = Server(tmp_path / "state")
    for pause_s in (0.05, 0.15, 0.3, 0.45, 0.6):
        server.launch()
        time.sleep(pause_s)
        os.kill(server.pid, signal.SIGTERM)
        until(lambda: server.exit_code is not None)
    with server:
        assert send(server, "evt_1") == 200


def test_second_server_on_one_state_directory_is_refused_by_name(server: Server) -> None:
    second = Server(server.state)
    second.config = server.config.with_name("second.toml")
    second.launch()
    until(lambda: second.exit_code is not None)
    assert second.exit_code == 75
    assert f"process {server.pid}" in second.log_text()
    assert send(server, "evt_1") == 200


def test_newer_database_is_refused_with_what_to_do(tmp_path: Path) -> None:
    import sqlite3

    server = Server(tmp_path / "state")
    with server:
        pass
    connection = sqlite3.connect(server.database)
    connection.execute("PRAGMA user_version = 4711")
    connection.close()
    server.launch()
    until(lambda: server.exit_code is not None)
    assert server.exit_code == 1
    assert "newer hookbox" in server.log_text()
    assert "Traceback" not in server.log_text()


def test_bad_configuration_never_goes_live_and_a_good_one_does(server: Server) -> None:
    good = server.config.read_text()
    server.config.write_text(good + "\n[source.b]\nprovider = 'standardwebhook'\n")
    os.kill(server.pid, signal.SIGHUP)
    until(lambda: "configuration refused" in server.log_text())
    assert "did you mean 'standardwebhooks'" in server.log_text()
    assert send(server, "evt_1") == 200
    assert send(server, "evt_2", source="b") == 404
    more = "\n[source.b]\nprovider = 'standardwebhooks'\nsecret = 'env:STD_SECRET'\n"
    server.config.write_text(good + more)
    os.kill(server.pid, signal.SIGHUP)
    until(lambda: send(server, "evt_3", source="b") == 200)


def test_secret_is_rotated_and_dropped_without_restart(server: Server) -> None:
    """current and previous both prove; the previous one no longer does once it is dropped."""
    plain = server.config.read_text()
    server.config.write_text(plain + "\n[source.own]\nprovider = 'standardwebhooks'\n")
    os.kill(server.pid, signal.SIGHUP)
    until(lambda: send(server, "wait", source="own") == 503)
    old, new = (f"whsec_{letter * 43}=" for letter in "AB")

    def command(*words: str, told: str = "") -> None:
        environment = {**os.environ, "HOOKBOX_CONFIG": str(server.config)}
        environment |= {"HOOKBOX_STATE": str(server.state), "STD_SECRET": client.SECRET}
        subprocess.run(
            [sys.executable, "-m", "hookbox", *words],
            input=told, text=True, check=True, env=environment, capture_output=True, timeout=30,
        )  # fmt: skip

    command("secret", "set", "own", told=old)
    assert send(server, "a", source="own", secret=old) == 200
    command("secret", "rotate", "own", told=new)
    assert send(server, "b", source="own", secret=old) == 200
    assert send(server, "c", source="own", secret=new) == 200
    command("secret", "drop", "own")
    assert send(server, "d", source="own", secret=old) == 401
    assert send(server, "e", source="own", secret=new) == 200
    assert old not in server.log_text()
    assert new not in server.log_text()


def test_every_file_is_the_owner_s_alone_under_any_umask(tmp_path: Path) -> None:
    server = Server(tmp_path / "state", prefix=("sh", "-c", 'umask 000; exec "$0" "$@"'))
    with server:
        send(server, "evt_1")
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in server.state.iterdir()}
        assert stat.S_IMODE(server.state.stat().st_mode) == 0o700
    assert {"hookbox.db", "hookbox.db-wal", "hookbox.key", "hookbox.sock"} <= modes.keys()
    assert set(modes.values()) == {0o600}


def test_idle_server_sleeps(server: Server) -> None:
    """A box that nobody sends to must not turn in circles: under 2 % of one core over two seconds,
    which is a tenth of what the least busy loop would take."""
    time.sleep(0.5)
    before = _cpu_s(server.pid)
    time.sleep(2)
    assert _cpu_s(server.pid) - before < 0.04


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
