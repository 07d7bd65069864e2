"""Drafts: a file is written under another name beside its place, and gets its name when complete.

Whoever is killed in between leaves a draft and never half a file. The next one that writes there
clears it away.
"""

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

SUFFIX = ".part"
# SQLite's own files lie beside a draft that is a database.
NAMED = re.compile(rf"\.(?P<target>.+)\.(?P<pid>\d+)\{SUFFIX}(-wal|-shm|-journal)?", re.DOTALL)


@contextlib.contextmanager
def draft(target: Path) -> Iterator[Path]:
    """An empty file beside `target`, for its owner only. It is gone at the end unless it was
    published.
    """
    path = target.with_name(f".{target.name}.{os.getpid()}{SUFFIX}")
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    try:
        yield path
    finally:
        for left in (path, *(path.with_name(path.name + end) for end in ("-wal", "-shm"))):
            left.unlink(missing_ok=True)


def clear(folder: Path, targets: re.Pattern[str]) -> None:
    """Remove what killed processes left of files with names like these."""
    for left in folder.glob(f".*{SUFFIX}*"):
        named = NAMED.fullmatch(left.name)
        if named and targets.fullmatch(named["target"]) and not _alive(int(named["pid"])):
            left.unlink(missing_ok=True)


def publish(path: Path, target: Path) -> None:
    """Give a complete draft its name, for good, also after a power cut."""
    sync(path)
    path.rename(target)
    sync(target.parent)


def sync(path: Path) -> None:
    """Have a file or a directory on the disk. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error  # fsync names no file
    finally:
        os.close(descriptor)


def _alive(number: int) -> bool:
    """Whether another process of that number runs."""
    if number == os.getpid():
        return False
    try:
        os.kill(number, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True
