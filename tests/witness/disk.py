"""What is on a disk while a trace goes by, and what a power cut could leave of it.

What a completed sync covers is on the disk. Of everything after that, each mode leaves something
else behind:

    drop   nothing
    keep   all of it (what a kill -9 leaves)
    ops    some of the whole writes, in any combination
    torn   some of the 512-byte sectors, in any combination

A file that was created, renamed or unlinked is so after a cut only once its directory was synced;
in `ops` and `torn` perhaps before. A `forgetful` disk is the one that Linux presents after a failed
sync: what that sync covered is never written by a later one, though it can still be read.
"""

import collections
import random
from dataclasses import dataclass
from pathlib import PurePath

from tests.witness.recorder import Kind, Record

MODES = ("drop", "keep", "ops", "torn")
SECTOR_BYTES = 512


class File:
    """One file: the bytes that are on the disk for certain, and the changes that may be."""

    def __init__(self) -> None:
        self.durable = bytearray()
        self._pending: list[Record] = []
        self._asked: dict[int, int] = {}  # sync call: how many pending changes it covers

    def change(self, record: Record) -> None:
        self._pending.append(record)

    def sync_asked(self, call: int) -> None:
        self._asked[call] = len(self._pending)

    def sync_done(self, call: int) -> None:
        for record in self._take(call):
            _apply(self.durable, record)

    def sync_failed(self, call: int, *, forgetful: bool) -> None:
        if forgetful:
            self._take(call)
        else:
            self._asked.pop(call, None)

    def _take(self, call: int) -> list[Record]:
        count = self._asked.pop(call, 0)
        taken, self._pending = self._pending[:count], self._pending[count:]
        self._asked = {other: max(0, n - count) for other, n in self._asked.items()}
        return taken

    def after_cut(self, mode: str, chance: random.Random, likely: float) -> bytearray:
        """What could be left of it."""
        left = bytearray(self.durable)
        if mode == "drop":
            return left
        for record in self._pending:
            if mode == "torn" and record.kind is Kind.WRITE:
                _apply_some_sectors(left, record, chance, likely)
            elif mode == "keep" or chance.random() < likely:
                _apply(left, record)
        return left


def _apply(content: bytearray, record: Record) -> None:
    if record.kind is Kind.WRITE:
        _write(content, record.number, record.content)
    else:
        _resize(content, record.number)


def _apply_some_sectors(
    content: bytearray, record: Record, chance: random.Random, likely: float
) -> None:
    """Sectors begin at multiples of their size in the file, wherever the write began."""
    start, end = record.number, record.number + len(record.content)
    while start < end:
        stop = min(end, (start // SECTOR_BYTES + 1) * SECTOR_BYTES)
        if chance.random() < likely:
            _write(content, start, record.content[start - record.number : stop - record.number])
        start = stop


def _write(content: bytearray, offset: int, new: memoryview) -> None:
    if len(content) < offset:
        _resize(content, offset)
    content[offset : offset + len(new)] = new


def _resize(content: bytearray, size: int) -> None:
    if len(content) > size:
        del content[size:]
    else:
        content.extend(bytes(size - len(content)))


@dataclass(frozen=True, slots=True)
class _Entry:
    """A change of a directory that its sync makes certain: `new` names the file, `old` does not."""

    old: str
    new: str
    file: File | None

    def apply(self, files: dict[str, File]) -> None:
        files.pop(self.old, None)
        if self.new and self.file is not None:
            files[self.new] = self.file


class Disk:
    """A state directory as the trace goes by: what programs see, and what is certain."""

    def __init__(self, *, forgetful: bool = False) -> None:
        self._forgetful = forgetful
        self._seen: dict[str, File] = {}
        self._certain: dict[str, File] = {}
        self._entries: dict[str, list[_Entry]] = collections.defaultdict(list)  # by directory
        self._asked: dict[int, int] = {}

    def step(self, record: Record) -> None:
        if record.kind in (Kind.CREATE, Kind.UNLINK, Kind.RENAME):
            self._change_entry(record)
        elif record.kind in (Kind.WRITE, Kind.TRUNCATE):
            if record.name in self._seen:
                self._seen[record.name].change(record)
        elif record.name in self._seen:
            self._sync_file(self._seen[record.name], record)
        elif record.kind in (Kind.SYNC_ASKED, Kind.SYNC_DONE, Kind.SYNC_FAILED):
            self._sync_directory(record)

    def _change_entry(self, record: Record) -> None:
        if record.kind is Kind.CREATE:
            entry = _Entry("", record.name, File())
        elif record.kind is Kind.RENAME:
            entry = _Entry(record.name, bytes(record.content).decode(), self._seen[record.name])
        else:
            entry = _Entry(record.name, "", None)
        entry.apply(self._seen)
        self._entries[str(PurePath(record.name).parent)].append(entry)

    def _sync_file(self, file: File, record: Record) -> None:
        if record.kind is Kind.SYNC_ASKED:
            file.sync_asked(record.number)
        elif record.kind is Kind.SYNC_DONE:
            file.sync_done(record.number)
        else:
            file.sync_failed(record.number, forgetful=self._forgetful)

    def _sync_directory(self, record: Record) -> None:
        entries = self._entries[record.name]
        if record.kind is Kind.SYNC_ASKED:
            self._asked[record.number] = len(entries)
            return
        count = self._asked.pop(record.number, 0)
        if record.kind is Kind.SYNC_DONE:
            for entry in entries[:count]:
                entry.apply(self._certain)
            del entries[:count]

    def after_cut(self, mode: str, chance: random.Random) -> dict[str, bytearray]:
        """The content of every file that could be there."""
        likely = chance.choice((0.1, 0.5, 0.9))
        files = dict(self._certain)
        for entry in (entry for entries in self._entries.values() for entry in entries):
            if mode == "keep" or (mode != "drop" and chance.random() < likely):
                entry.apply(files)
        return {name: file.after_cut(mode, chance, likely) for name, file in files.items()}
