"""One run of a command: fed, listened to, and ended together with everything that it started.

The command has a session and a process group of its own. It is not waited for until its group was
killed, so that the group's number cannot be somebody else's by then. What it reads lies in memory,
so whether it reads it holds nobody up.
"""

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from typing import BinaryIO

KEPT_MAX = 4096  # bytes of what a command said last; a flood of it goes by
DIES_WITHIN_S = 1.0  # once killed; only a broken file system keeps a program longer


class Run:
    """A command that was started. `stop` must be called, whatever happens."""

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str | bytes], text: bytes
    ) -> None:
        """`text` is what it finds on stdin. Raises OSError when it cannot be started."""
        with _in_memory(text) as stdin:
            self._child = subprocess.Popen(  # noqa: S603  (the operator's command, and no shell)
                command,
                env=environment,
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._output = _Output()
        self._hearing: asyncio.ReadTransport | None = None
        self._ended = asyncio.Event()
        self._pidfd: int | None = None

    @property
    def said(self) -> bytes:
        """What it said last, stdout and stderr as they came."""
        return bytes(self._output.kept)

    async def ended(self, timeout_s: float) -> bool:
        """Wait until it ends by itself; whether it did so in time."""
        loop = asyncio.get_running_loop()
        self._pidfd = os.pidfd_open(self._child.pid)
        loop.add_reader(self._pidfd, self._note_end)
        assert self._child.stdout is not None, "it was asked for"
        self._hearing, _ = await loop.connect_read_pipe(lambda: self._output, self._child.stdout)
        return await _within(timeout_s, self._ended)

    def _note_end(self) -> None:
        self._ended.set()
        self._forget_pidfd()

    async def stop(self, grace_s: float) -> int | None:
        """End it and what it left behind: politely, and after the grace for good. Its exit status,
        negative where a signal ended it; None where not even that did.
        """
        try:
            self._signal(signal.SIGTERM)
            await _within(grace_s, self._ended, self._output.closed)  # by the last that spoke
        finally:
            self._signal(signal.SIGKILL)
            try:
                await _within(DIES_WITHIN_S, self._ended)
            finally:
                status = self._child.poll()
                self._close()
        return status

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._child.pid, number)

    def _close(self) -> None:
        self._forget_pidfd()
        if self._hearing is not None:
            self._hearing.close()
        elif self._child.stdout is not None:
            self._child.stdout.close()

    def _forget_pidfd(self) -> None:
        if self._pidfd is not None:
            asyncio.get_running_loop().remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = None


class _Output(asyncio.Protocol):
    """What is left of what a command said."""

    def __init__(self) -> None:
        self.kept = bytearray()
        self.closed = asyncio.Event()

    def data_received(self, data: bytes) -> None:
        self.kept += data
        del self.kept[:-KEPT_MAX]

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed.set()


@contextlib.contextmanager
def _in_memory(text: bytes) -> Iterator[BinaryIO]:
    """A file with this text that is on no disk."""
    with os.fdopen(os.memfd_create("parcel"), "w+b") as file:
        file.write(text)
        file.seek(0)
        yield file


async def _within(seconds: float, *events: asyncio.Event) -> bool:
    """Whether all of these happen in time."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            for event in events:
                await event.wait()
    return all(event.is_set() for event in events)
