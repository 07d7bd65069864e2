"""The write-ahead log as a file, for what SQLite cannot know about it."""

import contextlib
import os
from pathlib import Path

from hookbox.errors import StoreError

CHUNK_BYTES = 1024 * 1024


def settle(database: Path) -> None:
    """Write the WAL's own bytes back and sync them, so that what can be read is what the disk has.

    After a sync that failed, Linux may mark the pages clean: they are read from memory and no later
    sync writes them. Folding such frames changes the database, and a power cut then replays the
    older log that the disk really has over the newer pages: a corrupt database. Nothing may fold
    the WAL before this was done, nor SQLite close the last connection, which folds too.

    SQLite keeps no locks on this file (they are on the database and the -shm file), so that opening
    and closing it drops none. The caller is the only one that may write to the database.

    Raises StoreError when the disk still refuses.
    """
    path = database.with_name(database.name + "-wal")
    try:
        with contextlib.suppress(FileNotFoundError):
            descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            try:
                _written_back(descriptor)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
    except OSError as error:
        raise StoreError(
            f"{path} cannot be written and synced ({error.strerror}); nothing was changed. "
            "See to the disk, then try again"
        ) from error


def _written_back(descriptor: int) -> None:
    offset = 0
    while chunk := os.pread(descriptor, CHUNK_BYTES, offset):
        offset += os.pwrite(descriptor, chunk, offset)
