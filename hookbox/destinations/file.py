"""A file of whole lines: appended to, synced, turned over when it is full.

All calls block and come from one thread at a time. Nothing is reported written before it is synced;
what could not be written whole is taken back.
"""

import errno
import fcntl
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

BLOCK = 65_536  # how much is looked at in one go for the end of the last whole line
FILE_MODE = 0o600


@dataclass(slots=True, kw_only=True)
class LineFile:
    """A file that is ours while it is open. The full one before it is PATH.1, the next PATH.2, and
    so on up to `keep`; older ones are gone.
    """

    path: Path
    max_bytes: int
    keep: int
    _fd: int | None = None

    def append(self, lines: Sequence[bytes]) -> None:
        """Add these lines, all or none. Raises OSError."""
        text = b"".join(lines)
        fd = self._opened()
        size = os.fstat(fd).st_size
        if size and size + len(text) > self.max_bytes:
            self._turn_over()
            fd, size = self._opened(), 0
        try:
            _write(fd, text)
            os.fdatasync(fd)
        except OSError:
            self._take_back(fd, size)
            raise

    def close(self) -> None:
        """Let go of it."""
        fd, self._fd = self._fd, None
        if fd is not None:
            os.close(fd)

    def _opened(self) -> int:
        """The file as it is at its path right now: somebody may have moved or removed the one that
        was open, and nobody would look for new lines there.
        """
        if self._fd is not None and not _is_at(self._fd, self.path):
            self.close()
        if self._fd is None:
            self._fd = self._ours()
        return self._fd

    def _ours(self) -> int:
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK
        fd = os.open(self.path, flags, FILE_MODE)
        try:
            _claim(fd)
            _cut_torn_line(fd)
            _sync_folder(self.path.parent)
            if not _is_at(fd, self.path):  # turned over by its last user, just before it let go
                raise OSError(errno.EBUSY, "the file is being replaced")
        except BaseException:
            os.close(fd)
            raise
        return fd

    def _take_back(self, fd: int, size: int) -> None:
        """Leave no part of a line behind; where even that fails, the next opening cuts it off."""
        try:
            os.ftruncate(fd, size)
        except OSError:
            self.close()

    def _turn_over(self) -> None:
        """Move the full ones up. A crash in between leaves a gap, which the next time fills."""
        places = turned_over(self.path, self.keep)
        free = next((n for n, place in enumerate(places) if not place.exists()), self.keep - 1)
        for n in range(free, 0, -1):
            places[n - 1].replace(places[n])
        self.path.replace(places[0])
        _sync_folder(self.path.parent)
        self.close()  # not before: it is ours as long as it is at its path


def turned_over(path: Path, keep: int) -> list[Path]:
    """Where the full ones lie, the newest first."""
    return [path.with_name(f"{path.name}.{n}") for n in range(1, keep + 1)]


def _is_at(fd: int, path: Path) -> bool:
    try:
        there = path.stat()
    except FileNotFoundError:
        return False
    return os.path.samestat(os.fstat(fd), there)


def _claim(fd: int) -> None:
    """Refuse what is no file of ours, or is somebody else's right now."""
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "this is not a regular file")
    if found.st_size and os.pread(fd, 1, 0) != b"{":
        raise OSError(errno.EINVAL, "this file holds something else than lines of JSON")
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise OSError(errno.EBUSY, "another program writes to this file") from None


def _cut_torn_line(fd: int) -> None:
    """A crash may have left the beginning of a line, which was never reported written."""
    size = end = os.fstat(fd).st_size
    while end:
        start = max(0, end - BLOCK)
        found = os.pread(fd, end - start, start).rfind(b"\n")
        if found >= 0:
            end = start + found + 1
            break
        end = start
    if end < size:
        os.ftruncate(fd, end)


def _sync_folder(folder: Path) -> None:
    """A new or a renamed file is in its folder for good only when that was synced, too."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _write(fd: int, text: bytes) -> None:
    left = memoryview(text)
    while left:  # a nearly full disk takes a part first, and refuses the rest
        left = left[os.write(fd, left) :]
