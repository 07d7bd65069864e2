"""Python's side of recorder.c: compile it, load it, switch its faults, read its trace."""

import ctypes
import mmap
import os
import re
import shutil
import struct
import subprocess
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Self

SOURCE = Path(__file__).with_name("recorder.c")
FOREVER = 2**62


def compiler() -> str | None:
    return shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


def build(into: Path) -> Path:
    """Compile the recorder; the compiler's own words are the error when it cannot."""
    library = into / "recorder.so"
    options = ("-O2", "-Wall", "-shared", "-fPIC", "-o", str(library), str(SOURCE), "-lpthread")
    built = subprocess.run([compiler() or "cc", *options], capture_output=True, text=True)
    if built.returncode:
        raise RuntimeError(f"the recorder does not compile:\n{built.stderr}")
    return library


class Kind(IntEnum):
    """`enum kind` of recorder.c."""

    CREATE = 1
    WRITE = 2
    TRUNCATE = 3
    SYNC_ASKED = 4
    SYNC_DONE = 5
    SYNC_FAILED = 6
    UNLINK = 7
    RENAME = 8
    REQUEST = 9
    ANSWER = 10


@dataclass(frozen=True, slots=True)
class Record:
    """One line of the trace.

    `number` is the offset of a write, the size of a truncate, the count of a sync, the descriptor
    of a request or answer. `content` is what was written, the new name, or the head of the message.
    """

    kind: Kind
    name: str
    number: int
    content: memoryview


_HEAD = struct.Struct("<BHIQ")


def read_trace(path: Path) -> list[Record]:
    """Every whole record; a server that was killed may leave half a one at the end."""
    content = memoryview(path.read_bytes())
    records, at = [], 0
    while at + _HEAD.size <= len(content):
        kind, name_bytes, length, number = _HEAD.unpack_from(content, at)
        name_at = at + _HEAD.size
        content_at, end = name_at + name_bytes, name_at + name_bytes + length
        if end > len(content):
            break
        name = str(content[name_at:content_at], "utf-8")
        records.append(Record(Kind(kind), name, number, content[content_at:end]))
        at = end
    return records


_KEY = re.compile(rb"\r\nwebhook-id: *([^\r]+)\r", re.IGNORECASE)


@dataclass(slots=True)
class Conversation:
    """Which event each answer is about: on one connection the answer follows its request."""

    _asked: dict[int, str]

    def __init__(self) -> None:
        self._asked = {}

    def acknowledged(self, record: Record) -> str | None:
        """Take the next record; the key, when it is a 2xx answer to a hook."""
        if record.kind is Kind.REQUEST:
            found = _KEY.search(record.content)
            self._asked[record.number] = found[1].decode() if found else ""
        elif record.kind is Kind.ANSWER:
            status = int(bytes(record.content[9:12]))
            if status >= 200:  # not "100 Continue"
                key = self._asked.pop(record.number, "")
                return key if key and status < 300 else None
        return None


class Fault(ctypes.Structure):
    """`struct fault` of recorder.c."""

    _fields_ = (
        ("first", ctypes.c_int64),
        ("last", ctypes.c_int64),
        ("step", ctypes.c_int64),
        ("error", ctypes.c_int64),
    )

    def set(self, error: int, *, first: int = 1, last: int = FOREVER, step: int = 1) -> None:
        """The calls `first`, `first` + `step`, ... `last`, counted from 1, fail."""
        self.error = 0  # while the rest is half set, the server looks
        self.first, self.last, self.step = first, last, step
        self.error = error

    def heal(self) -> None:
        self.error = 0


class Control(ctypes.Structure):
    """`struct control` of recorder.c, shared with the server: what is set here holds at once."""

    _fields_ = (
        ("syncs", ctypes.c_int64),  # calls on watched files so far, over all lives of the server
        ("writes", ctypes.c_int64),
        ("injected", ctypes.c_int64),  # how many of them a fault hit
        ("sync", Fault),
        ("write", Fault),
        ("sync_delay_us", ctypes.c_int64),
        ("sync_lies", ctypes.c_int64),
        ("only", ctypes.c_int64),
    )

    @classmethod
    def at(cls, path: Path) -> Self:
        path.write_bytes(bytes(ctypes.sizeof(cls)))
        with path.open("r+b") as file:
            return cls.from_buffer(mmap.mmap(file.fileno(), 0))

    def count(self, call: str) -> int:
        """How many `sync` or `write` calls were made."""
        return int(self.syncs if call == "sync" else self.writes)

    def fault(self, call: str) -> Fault:
        """The fault of `sync` or `write` calls."""
        chosen: Fault = self.sync if call == "sync" else self.write
        return chosen

    def fail_only(self, files: str) -> None:
        """Faults hit `all` files, the `wal`, or all but the WAL (`database`)."""
        self.only = ("all", "wal", "database").index(files)


class Recording:
    """One trace of one state directory, and the environment that makes a server write it."""

    def __init__(self, library: Path, state: Path) -> None:
        control = state.parent / f"{state.name}.control"
        self.trace = state.parent / f"{state.name}.trace"
        self.control = Control.at(control)
        self.env = {
            "LD_PRELOAD": str(library),
            "RECORDER_DIR": str(state),
            "RECORDER_TRACE": str(self.trace),
            "RECORDER_CONTROL": str(control),
        }

    def records(self) -> list[Record]:
        return read_trace(self.trace)


def fast_directory() -> Path | None:
    """Memory where there is some: a trace is large, and rebuilt disks are many."""
    memory = Path("/dev/shm")
    return memory if os.access(memory, os.W_OK) else None
