"""The order witness: was every promise made after the disk had it?

Two sources tell the same story: the recorder's trace, and strace as an independent second one. In
both, an event is on the disk once a sync that was asked for after its bytes were written has
returned; every 2xx must come after that.
"""

import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.witness.recorder import Conversation, Kind, Record


@dataclass(slots=True)
class Order:
    """Which keys were written, which of them are on the disk, and which were promised too early.

    `marks` is a pattern that finds every key in the bytes of a page. The first page that holds a
    key counts; later ones only carry it along.
    """

    marks: re.Pattern[bytes]
    promised: set[str] = field(default_factory=set)
    too_early: list[str] = field(default_factory=list)
    _written: set[str] = field(default_factory=set)
    _unsynced: dict[str, set[str]] = field(default_factory=dict)  # by file
    _covered: dict[object, set[str]] = field(default_factory=dict)  # by sync that has not returned
    _on_disk: set[str] = field(default_factory=set)

    def wrote(self, file: str, content: bytes | memoryview) -> None:
        new = {found.decode() for found in self.marks.findall(content)} - self._written
        self._written |= new
        self._unsynced.setdefault(file, set()).update(new)

    def sync_asked(self, file: str, sync: object) -> None:
        self._covered[sync] = set(self._unsynced.get(file, ()))

    def sync_returned(self, file: str, sync: object, *, worked: bool) -> None:
        covered = self._covered.pop(sync, set())
        if worked:
            self._on_disk |= covered
            self._unsynced.get(file, set()).difference_update(covered)

    def answered(self, key: str) -> None:
        self.promised.add(key)
        if key not in self._on_disk:
            self.too_early.append(key)


def order_of(records: Iterable[Record], marks: re.Pattern[bytes]) -> Order:
    """The order as the recorder saw it."""
    order, conversation = Order(marks), Conversation()
    for record in records:
        if record.kind is Kind.WRITE:
            order.wrote(record.name, record.content)
        elif record.kind is Kind.SYNC_ASKED:
            order.sync_asked(record.name, record.number)
        elif record.kind in (Kind.SYNC_DONE, Kind.SYNC_FAILED):
            worked = record.kind is Kind.SYNC_DONE
            order.sync_returned(record.name, record.number, worked=worked)
        elif key := conversation.acknowledged(record):
            order.answered(key)
    return order


# ---- strace


_CALLS = "pwrite64,write,writev,sendto,sendmsg,read,recvfrom,fsync,fdatasync"


def strace_prefix(log: Path) -> tuple[str, ...]:
    """The command that starts a server under strace; the server keeps the process id."""
    whole_pages = ("-s", "5000")
    return (
        "strace",
        "-D",
        "-f",
        "-y",
        "-qq",
        *whole_pages,
        "-e",
        f"trace={_CALLS}",
        "-o",
        str(log),
    )


def strace_works(place: Path) -> bool:
    """Containers often forbid it."""
    if shutil.which("strace") is None:
        return False
    command = [*strace_prefix(place / "strace.probe"), "true"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


# A call that another thread interrupts is on two lines:
#   1234  fdatasync(7</state/hookbox.db-wal> <unfinished ...>
#   1234  <... fdatasync resumed>) = 0
_BEGUN = re.compile(r"(?P<thread>\d+) +(?P<call>\w+)\((?P<fd>\d+)<(?P<file>[^>]*)>(?P<rest>.*)")
_RESUMED = re.compile(r"(?P<thread>\d+) +<\.\.\. \w+ resumed>(?P<rest>.*)")
_RESULT = re.compile(r"\) += (?P<result>-?\d+)")
_UNFINISHED = "<unfinished ...>"
_STATUS = re.compile(r'"HTTP/1\.1 (\d{3})')
_KEY = re.compile(r"webhook-id: ([^\\]+)\\r", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Call:
    """A system call at the moment it was asked (`result` None) or returned."""

    thread: str
    name: str
    fd: str
    file: str
    text: str
    result: int | None


def _calls(lines: Iterable[str]) -> Iterator[_Call]:
    """Each call twice: when it is asked, and when it returned."""
    open_calls: dict[str, _Call] = {}
    for line in lines:
        if begun := _BEGUN.match(line):
            thread, name, fd, file, text = begun.group("thread", "call", "fd", "file", "rest")
            asked = _Call(thread, name, fd, file, text, None)
            yield asked
            open_calls[thread] = asked
            if text.endswith(_UNFINISHED):
                continue
        elif resumed := _RESUMED.match(line):
            thread, text = resumed.group("thread", "rest")
        else:
            continue
        asked = open_calls.pop(thread)
        found = _RESULT.search(text)
        result = int(found["result"]) if found else -1
        yield _Call(thread, asked.name, asked.fd, asked.file, asked.text + text, result)


def order_seen_by_strace(log: Path, marks: re.Pattern[bytes]) -> Order:
    """The order as the kernel saw it."""
    order, asked_on = Order(marks), dict[str, str]()
    for call in _calls(log.read_text(errors="replace").splitlines()):
        if call.name in ("fsync", "fdatasync"):
            if call.result is None:
                order.sync_asked(call.file, call.thread)
            else:
                order.sync_returned(call.file, call.thread, worked=call.result == 0)
        elif call.name == "pwrite64" and call.result:
            order.wrote(call.file, call.text.encode())
        elif call.result is not None and (key := _KEY.search(call.text)):
            asked_on[call.fd] = key[1]
        elif call.result is None and (status := _STATUS.search(call.text)):
            key_asked = asked_on.pop(call.fd, "")
            if key_asked and status[1].startswith("2"):
                order.answered(key_asked)
    return order
