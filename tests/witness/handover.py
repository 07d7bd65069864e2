"""Holds a receiver's listening socket while receivers come and go, as the service manager does.

    handover.py COMMAND...

Takes the same environment as `hookbox serve`. SIGUSR1 ends the receiver and starts the next one,
which is told in the log; SIGTERM ends both. A receiver never outlives this program.
"""

import ctypes
import os
import signal
import socket
import subprocess
import sys
import tomllib
from pathlib import Path

HANDED_OVER = 3
STOP_MAX_S = 20
SET_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of prctl(2)

libc = ctypes.CDLL(None)


class Holder:
    """The socket's keeper and its receiver of the moment."""

    def __init__(self, command: list[str]) -> None:
        self._command = command
        self._receiver = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        # The shell knows the process id that the receiver will have.
        return subprocess.Popen(
            ["sh", "-c", 'LISTEN_PID=$$ LISTEN_FDS=1 exec "$@"', "sh", *self._command],
            pass_fds=[HANDED_OVER],
            preexec_fn=lambda: libc.prctl(SET_DEATH_SIGNAL, signal.SIGKILL),  # noqa: PLW1509  # no threads here
        )

    def _stop(self) -> None:
        self._receiver.terminate()
        self._receiver.wait(STOP_MAX_S)

    def restart(self, *_: object) -> None:
        self._stop()
        self._receiver = self._start()
        print("restarted", flush=True)

    def end(self, *_: object) -> None:
        self._stop()
        sys.exit(0)


if __name__ == "__main__":
    settings = tomllib.loads(Path(os.environ["HOOKBOX_CONFIG"]).read_text())
    host, _, port = settings["server"]["listen"].rpartition(":")
    listening = socket.create_server((host, int(port)), backlog=1_024)
    if listening.fileno() != HANDED_OVER:
        os.dup2(listening.fileno(), HANDED_OVER)
    holder = Holder(sys.argv[1:])
    signal.signal(signal.SIGUSR1, holder.restart)
    signal.signal(signal.SIGTERM, holder.end)
    while True:
        signal.pause()
