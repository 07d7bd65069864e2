"""The claim to be the one process that writes."""

import fcntl
import os
from pathlib import Path

from hookbox.errors import StoreBusy


class Lock:
    """The claim to be the one process that writes, held by flock until `release` or the end of the
    process.
    """

    def __init__(self, state: Path) -> None:
        self._path = state / "hookbox.lock"
        self._fd: int | None = None

    def acquire(self) -> None:
        """Raises StoreBusy when another process has it."""
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            owner = os.pread(fd, 20, 0).decode("ascii", "replace").strip()
            os.close(fd)
            raise StoreBusy(
                f"{self._path.parent} is in use by another hookbox (process {owner or 'unknown'}); "
                "stop that one first, or give this one its own state directory with --state"
            ) from None
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
        self._fd = fd

    def release(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None
