"""A stand-in for the receiver, honest or with one planted fault: what the witnesses must catch.

    standin.py FAULT

Takes the same environment as `hookbox serve` and offers the same columns in its tables, so that
every check runs on either unchanged. A test that never failed is not trusted; these faults make
each of them fail:

    none     honest: one transaction with FULL, answered after COMMIT
    normal   synchronous=NORMAL: the last commits are not on the disk yet
    journal  FULL without WAL: the journal of the last commit may come back and undo it
    queue    answers as soon as the event is in its queue, which it stores 20 times a second
    swallow  a failed commit is answered 200
    lookup   looks the key up, then inserts, with no unique index to stop the second
"""

import contextlib
import hashlib
import os
import queue
import signal
import socketserver
import sqlite3
import sys
import threading
import time
import tomllib
from pathlib import Path

FAULT = sys.argv[1]
UNIQUE = "" if FAULT == "lookup" else "UNIQUE (source, key)"
SCHEMA = f"""
CREATE TABLE IF NOT EXISTS events (
    id INTEGER PRIMARY KEY, source TEXT, key TEXT, digest BLOB, content BLOB, state TEXT,
    duplicates INTEGER{"," if UNIQUE else ""} {UNIQUE});
CREATE TABLE IF NOT EXISTS outbox (id INTEGER PRIMARY KEY, event_id INTEGER, target TEXT);
CREATE INDEX IF NOT EXISTS events_key ON events (key);
CREATE TABLE IF NOT EXISTS quarantine (
    id INTEGER PRIMARY KEY, source TEXT, key TEXT, reason TEXT, digest BLOB, content BLOB,
    UNIQUE (source, key, digest));
"""
MODE = "delete" if FAULT == "journal" else "wal"
SYNCHRONOUS = "NORMAL" if FAULT == "normal" else "FULL"
KNOWN = "SELECT digest FROM events WHERE key = ?"

database = sqlite3.connect(
    Path(os.environ["HOOKBOX_STATE"]) / "hookbox.db", isolation_level=None, check_same_thread=False
)
(mode,) = database.execute(f"PRAGMA journal_mode = {MODE}").fetchone()
if mode != MODE:
    sys.exit(f"journal_mode is {mode}, not {MODE}")
database.execute(f"PRAGMA synchronous = {SYNCHRONOUS}")
database.executescript(SCHEMA)
turn = threading.Lock()
waiting: queue.SimpleQueue[tuple[str, bytes]] = queue.SimpleQueue()
looked: dict[str, threading.Event] = {}


def store(key: str, content: bytes) -> str:
    """One event and its job in one transaction; the word says what became of it."""
    digest = hashlib.sha256(content).digest()
    if FAULT == "lookup":
        with turn:
            found = database.execute(KNOWN, (key,)).fetchone()
        if found:
            return "duplicate"
        let_another_look(key)
    with turn:
        try:
            database.execute("BEGIN IMMEDIATE")
            word = insert(key, digest, content)
            database.execute("COMMIT")
        finally:
            if database.in_transaction:
                database.execute("ROLLBACK")
    return word


def let_another_look(key: str) -> None:
    """The first to find nothing gives a copy time to find nothing too: the race, each time."""
    with turn:
        first = key not in looked
        seen_again = looked.setdefault(key, threading.Event())
    if first:
        seen_again.wait(timeout=5)
    else:
        seen_again.set()


def insert(key: str, digest: bytes, content: bytes) -> str:
    row = database.execute(
        "INSERT INTO events (source, key, digest, content, state, duplicates)"
        " VALUES ('std', ?, ?, ?, 'pending', 0) ON CONFLICT DO NOTHING",
        (key, digest, content),
    )
    if row.rowcount:
        database.execute(
            "INSERT INTO outbox (event_id, target) VALUES (?, 'apply')", (row.lastrowid,)
        )
        return "accepted"
    if database.execute(KNOWN, (key,)).fetchone()[0] == digest:
        return "duplicate"
    database.execute(
        "INSERT INTO quarantine (source, key, reason, digest, content)"
        " VALUES ('std', ?, 'payload_digest_conflict', ?, ?) ON CONFLICT DO NOTHING",
        (key, digest, content),
    )
    return "quarantined"


def store_what_waits() -> None:
    while True:
        time.sleep(0.05)
        while not waiting.empty():
            store(*waiting.get())


class Connection(socketserver.StreamRequestHandler):
    """One keep-alive connection."""

    disable_nagle_algorithm = True

    def handle(self) -> None:
        while line := self.rfile.readline():
            fields = {}
            while field := self.rfile.readline().strip():
                name, _, value = field.decode().partition(":")
                fields[name.lower()] = value.strip()
            content = self.rfile.read(int(fields.get("content-length", "0")))
            if line.startswith(b"POST"):
                self.receive(fields["webhook-id"], content)
            else:
                self.answer("200 OK", "")

    def receive(self, key: str, content: bytes) -> None:
        if FAULT == "queue":
            waiting.put((key, content))
            self.answer("200 OK", "accepted")
            return
        try:
            self.answer("200 OK", store(key, content))
        except sqlite3.Error as error:
            print(f"not stored: {error}", file=sys.stderr, flush=True)
            if FAULT == "swallow":
                self.answer("200 OK", "accepted")
            else:
                self.answer("503 Service Unavailable", "")

    def answer(self, status: str, word: str) -> None:
        content = f'{{"status":"{word}"}}'.encode() if word else b""
        head = f"HTTP/1.1 {status}\r\nContent-Length: {len(content)}\r\n\r\n"
        self.wfile.write(head.encode() + content)


class Door(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is no news."""


if __name__ == "__main__":
    settings = tomllib.loads(Path(os.environ["HOOKBOX_CONFIG"]).read_text())
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    threading.Thread(target=store_what_waits, daemon=True).start()
    host, _, port = settings["server"]["listen"].rpartition(":")
    with contextlib.closing(database):
        Door((host, int(port)), Connection).serve_forever()
