"""Append each event as a line of JSON to a file.

Whatever is to be written while a write is on its way goes into the next one, so that one sync
serves them all.
"""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hookbox.destinations.contract import Destination, DestinationType, Outfit, Reading
from hookbox.destinations.file import LineFile, turned_over
from hookbox.model import Attempt, Parcel, Verdict

MAX_BYTES = 100 << 20
KEEP = 10
TIMEOUT_S = 30.0  # for a write and its sync; a disk that takes longer is ill
CLOSE_WITHIN_S = 2.0


@dataclass(slots=True, kw_only=True)
class Jsonl:
    """A file of lines."""

    file: LineFile
    timeout_s: float = TIMEOUT_S
    _waiting: list[tuple[bytes, asyncio.Future[Attempt]]] = field(default_factory=list)
    _writing: asyncio.Task[None] | None = None

    async def deliver(self, parcel: Parcel) -> Attempt:
        written: asyncio.Future[Attempt] = asyncio.get_running_loop().create_future()
        self._waiting.append((parcel.body + b"\n", written))
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write(), name="jsonl")
        try:
            async with asyncio.timeout(self.timeout_s):
                return await written
        except TimeoutError:
            outcome = f"not written within {self.timeout_s:g} s"
            return Attempt(verdict=Verdict.LATER, outcome=outcome)

    async def close(self) -> None:
        """What is being written is written first, unless the disk hangs."""
        if self._writing is not None:
            await asyncio.wait({self._writing}, timeout=CLOSE_WITHIN_S)
        if self._writing is None or self._writing.done():
            self.file.close()

    async def _write(self) -> None:
        """Everything that waits, until nothing does. Whoever gave up waiting is left out."""
        while batch := [each for each in self._waiting if not each[1].done()]:
            self._waiting.clear()
            attempt = await asyncio.to_thread(self._append, [line for line, _ in batch])
            for _, written in batch:
                if not written.done():
                    written.set_result(attempt)

    def _append(self, lines: list[bytes]) -> Attempt:
        try:
            self.file.append(lines)
        except OSError as error:
            excerpt = f"{self.file.path}: {error.strerror}"
            return Attempt(verdict=Verdict.LATER, outcome="not written", excerpt=excerpt)
        return Attempt(verdict=Verdict.DONE, outcome="written")


def doubts(options: Mapping[str, Any]) -> tuple[str, ...]:
    path: Path = options["path"]
    if path.is_dir():
        return (f"{path} is a directory; events wait until it is a file, or nothing",)
    return () if path.parent.is_dir() else (f"{path.parent} is not there; events wait until it is",)


def files(options: Mapping[str, Any]) -> Iterator[tuple[str, Path]]:
    """Those that were turned over, too: another one's file there would be moved, then removed."""
    path: Path = options["path"]
    for each in (path, *turned_over(path, options.get("keep", KEEP))):
        yield "path", each


def opened(outfit: Outfit) -> Destination:
    options = outfit.options
    file = LineFile(
        path=options["path"],
        max_bytes=options.get("max_size", MAX_BYTES),
        keep=options.get("keep", KEEP),
    )
    return Jsonl(file=file, timeout_s=options.get("timeout", TIMEOUT_S))


TYPE = DestinationType(
    name="jsonl",
    title="Append a line of JSON to a file",
    options={
        "path": Reading.PATH,
        "max_size": Reading.SIZE,
        "keep": Reading.COUNT,
        "timeout": Reading.DURATION,
    },
    required=frozenset({"path"}),
    concurrency=64,  # as many share one sync
    open=opened,
    files=files,
    doubts=doubts,
)
