"""A receiver of its own for one test: free ports, configuration, start, readiness, stop and kill.

By default it is `hookbox serve`; a test that must fail puts the stand-in in its place. The
configuration and the log lie beside the state directory, never in it, so that the directory holds
nothing but the receiver's own files.
"""

import http.client
import os
import random
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.witness.client import SECRET
from tests.witness.recorder import Recording

ROOT = Path(__file__).parents[2]
HOOKBOX = (sys.executable, "-m", "hookbox", "serve")
STANDIN = (sys.executable, str(Path(__file__).with_name("standin.py")))

# Below the range from which Linux takes the ports of outgoing connections (32768 and up): a client
# of a killed server must never be given the port that the next server wants.
_PORTS = range(20_000, 32_000)
_given: set[int] = set()
_START_MAX_S = 20.0
_STOP_MAX_S = 20.0
_APPLIED_MAX_S = 60.0
_NOT_APPLIED = "SELECT count(*) FROM events WHERE state <> 'applied'"


def free_port() -> int:
    """A loopback port that nobody listens on.

    Not from the seeded generator: runs at the same time must differ.
    """
    for port in random.SystemRandom().sample(_PORTS, 100):
        if port in _given:  # to a server that has not started yet
            continue
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        _given.add(port)
        return port
    raise RuntimeError("100 ports tried, none free")


class Server:
    """One receiver on one state directory; it can be started again after it ended.

    `settings` is TOML added to the configuration; `env` is added to the environment (LD_PRELOAD,
    for one); `prefix` is a command that starts the receiver (strace, for one).
    """

    def __init__(
        self,
        state: Path,
        *,
        command: Sequence[str] = HOOKBOX,
        prefix: Sequence[str] = (),
        settings: str = "",
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.state = state.resolve()
        self.port, self.local_port = free_port(), free_port()
        self.config = self.state.parent / f"{self.state.name}.toml"
        self.log = self.state.parent / f"{self.state.name}.log"
        self._command = (*prefix, *command)
        self._settings = settings
        self.env = dict(env or {})
        self._running: subprocess.Popen[bytes] | None = None

    @property
    def database(self) -> Path:
        return self.state / "hookbox.db"

    def wait_until_applied(self) -> None:
        """Every event that is stored has been worked on. A stop alone does not wait for that."""
        uri = f"{self.database.as_uri()}?mode=ro"
        deadline = time.monotonic() + _APPLIED_MAX_S
        with closing(sqlite3.connect(uri, uri=True, timeout=0)) as database:
            while (left := database.execute(_NOT_APPLIED).fetchone()[0]) > 0:
                assert time.monotonic() < deadline, f"{left} events are not applied"
                time.sleep(0.1)

    @property
    def pid(self) -> int:
        assert self._running is not None, "not started"
        return self._running.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""
        return None if self._running is None else self._running.poll()

    def start(self) -> Self:
        """Start, and return once it answers."""
        self.launch()
        deadline = time.monotonic() + _START_MAX_S
        while not self.ready():
            if self.exit_code is not None or time.monotonic() > deadline:
                code = self.exit_code
                self.kill()
                raise RuntimeError(
                    f"the receiver did not start (exit {code}):\n{self.log_text()[-4000:]}"
                )
            time.sleep(0.01)
        return self

    def launch(self) -> None:
        """Start without waiting: for a start that is expected to fail."""
        assert self._running is None or self._running.poll() is not None, "already running"
        self.state.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.config.write_text(self._config_text())
        with self.log.open("ab") as log:
            self._running = subprocess.Popen(
                self._command,
                env=self.environment(),
                cwd=self.state.parent,
                stdout=log,
                stderr=log,
            )

    def _config_text(self) -> str:
        return (
            f'[server]\nlisten = "127.0.0.1:{self.port}"\n\n'
            f'[local]\nlisten = "127.0.0.1:{self.local_port}"\n\n'
            '[source.std]\nprovider = "standardwebhooks"\nsecret = "env:STD_SECRET"\n\n'
            f"{self._settings}"
        )

    def environment(self) -> dict[str, str]:
        """What it runs with; a command with it is about the same box."""
        paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
        return {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
            "HOOKBOX_CONFIG": str(self.config),
            "HOOKBOX_STATE": str(self.state),
            "STD_SECRET": SECRET,
            **self.env,
        }

    def ready(self) -> bool:
        """Does it answer HEAD on the hook's address?"""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("HEAD", "/hooks/std")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def log_text(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def kill(self) -> None:
        """As the machine's out-of-memory killer does it: at once, with no chance to tidy up."""
        if self._running is not None:
            self._running.kill()
            self._running.wait(_STOP_MAX_S)

    def terminate(self) -> int:
        """As systemd does it; returns the exit code."""
        assert self._running is not None, "not started"
        self._running.send_signal(signal.SIGTERM)
        return self._running.wait(_STOP_MAX_S)

    def wait(self, seconds: float = _STOP_MAX_S) -> int:
        """Wait until it ends by itself; returns the exit code."""
        assert self._running is not None, "not started"
        return self._running.wait(seconds)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()


# The fixtures `server` and `recorded`: each call makes one more, not started yet.
MakeServer = Callable[..., Server]
MakeRecorded = Callable[..., tuple[Server, Recording]]
