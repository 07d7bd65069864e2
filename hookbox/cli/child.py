"""A command that is run to its end: its output is passed on and the beginning of it kept.

Everything else it has as if it had been started in our place: input, errors, process group, and the
signals that ask us to stop.
"""

import contextlib
import errno
import os
import select
import signal
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Self

from hookbox.clock import Clock

FORWARDED = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
DEFAULT_IN_CHILD = (signal.SIGPIPE, signal.SIGXFSZ)  # Python ignores them, which exec hands on
CHUNK_BYTES = 64 * 1024  # all that a pipe holds
PIECE_BYTES = select.PIPE_BUF  # a pipe that can be written to takes this much without waiting
STDOUT = 1


@contextlib.contextmanager
def signals_held() -> Iterator[None]:
    """Requests to stop wait until there is a command that they are for."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Child:
    """One running command. `kept` is the beginning of its output, `unread` the end of it that
    nobody has taken when the command has ended.
    """

    def __init__(self, command: Sequence[str], *, kept_max: int, passed_on: bool) -> None:
        """Start it. Raises OSError when that cannot be."""
        if not command[0]:  # a variable that was empty, mostly; no OSError where it is called
            raise FileNotFoundError(errno.ENOENT, "an empty name is no command")
        source, target = os.pipe()
        try:
            self._pid = os.posix_spawnp(
                command[0],
                tuple(command),
                os.environ,
                file_actions=[(os.POSIX_SPAWN_DUP2, target, STDOUT)],
                setsigmask=signal.pthread_sigmask(signal.SIG_BLOCK, ()) - set(FORWARDED),
                setsigdef=DEFAULT_IN_CHILD,
            )
        except OSError:
            os.close(source)
            raise
        finally:
            os.close(target)
        os.set_blocking(source, False)
        self._pidfd = os.pidfd_open(self._pid)
        self._sources = [source]  # none after the end of the output
        self._passed_on, self._kept_max = passed_on, kept_max
        self.kept = self.unread = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for descriptor in (*self._sources, self._pidfd):
            os.close(descriptor)

    def wait(self, clock: Clock, every_s: float, do: Callable[[], None]) -> int:
        """Its exit code, or minus the signal that killed it. `do` is done every so often."""
        with _forwarding(self._pidfd):
            due = clock.monotonic() + every_s
            while not self._ended(max(0.0, due - clock.monotonic())):
                if clock.monotonic() >= due:
                    do()
                    due = clock.monotonic() + every_s
        return os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])

    def _ended(self, timeout_s: float) -> bool:
        """Pass some output on; whether the command has ended, with all of its output read.

        Nothing is written that would make us wait: who reads slowly must not keep the lease from
        being renewed.
        """
        sources = [] if self.unread else self._sources
        targets = [STDOUT] if self.unread else []
        readable, writable, _ = select.select([self._pidfd, *sources], targets, [], timeout_s)
        if writable:
            self._write()
        if self._pidfd in readable:
            self._read()  # what it wrote last; children that it left behind are not waited for
            return True
        if readable:
            self._read()
        return False

    def _read(self) -> None:
        try:
            for source in self._sources:
                chunk = os.read(source, CHUNK_BYTES)
                self.kept += chunk[: self._kept_max - len(self.kept)]
                self.unread += chunk if self._passed_on else b""
                if not chunk:
                    os.close(source)
                    self._sources = []
        except BlockingIOError:
            pass

    def _write(self) -> None:
        try:
            self.unread = self.unread[os.write(STDOUT, self.unread[:PIECE_BYTES]) :]
        except BlockingIOError:
            pass  # somebody has set our output so, and it takes nothing after all
        except OSError:  # whoever read along is gone, or the disk full; the command goes on
            self.unread, self._passed_on = b"", False


def write_out(output: bytes) -> None:
    """Wait for whoever reads our output until it is taken."""
    with contextlib.suppress(BrokenPipeError):
        while output:
            select.select([], [STDOUT], [])
            output = output[os.write(STDOUT, output[:PIECE_BYTES]) :]


@contextlib.contextmanager
def _forwarding(pidfd: int) -> Iterator[None]:
    """Who asks us to stop asks the command. What is ignored stays ignored, as under nohup."""

    def forward(number: int, _: FrameType | None) -> None:
        if number == signal.SIGINT and _typed_at_our_terminal():
            return  # the terminal has told the command too
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(pidfd, number)

    heard = [each for each in FORWARDED if signal.getsignal(each) is not signal.SIG_IGN]
    before = {each: signal.signal(each, forward) for each in heard}
    held = signal.pthread_sigmask(signal.SIG_UNBLOCK, FORWARDED)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, held)
        for each, action in before.items():
            signal.signal(each, action)


def _typed_at_our_terminal() -> bool:
    """Whether we are what the terminal interrupts: then an interrupt is somebody's Ctrl-C."""
    with contextlib.suppress(OSError):
        return os.tcgetpgrp(0) == os.getpgrp()
    return False
