"""A box that has been in use for years: a state with millions of events, built once and kept.

The box itself receives a few events first. Their rows are the models: every further row is a copy
with its own ids, key and digest. So the stock has the real schema, whatever its columns are.
"""

import os
import shutil
import sqlite3
import sys
import time
from pathlib import Path

from tests.bench import contenders
from tests.bench.requests import Ids, write_requests
from tests.bench.rig import Rig, free_port

MODELS = 64
CHUNK = 100_000
SETTLE_S = 2  # for the worker to finish with the models

# Tables in the order of their references; a row of one event has the same id in each.
TABLES = ("delivery", "event", "job", "notification")
OWN = {
    "id": ":base + n.i",
    "delivery_id": ":base + n.i",
    "event_id": ":base + n.i",
    "digest": "randomblob(32)",
    "place": ":base + n.i",
}
KEYS = {
    Ids.RANDOM: "'msg_' || lower(hex(randomblob(16)))",
    # Older than any key that the load generator makes, and rising.
    Ids.ORDERED: "'msg_' || printf('%012x', (:base + n.i) / 8) || lower(hex(randomblob(10)))",
}
COPY = """WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :count)
INSERT INTO {table} ({columns})
SELECT {values} FROM n, (SELECT * FROM {table} ORDER BY id LIMIT 1)"""
LAST_PLACE = "UPDATE meta SET value = (SELECT max(place) FROM event) WHERE name = 'place'"


def stocked_state(rig: Rig, cache: Path, secret: str, ids: Ids, size: int) -> Path:
    """A state folder with `size` events, its key index in the page cache."""
    folder = cache / f"stock-{ids}-{size}"
    models = _models(rig, secret, ids)
    if not (folder.exists() and _schema(folder) == _schema(models) and _count(folder) >= size):
        print(f"building a stock of {size} events with {ids} ids ...", file=sys.stderr)
        _multiply(models / "hookbox.db", ids, size)
        shutil.rmtree(folder, ignore_errors=True)
        shutil.move(models, folder)
    _warm(folder / "hookbox.db")
    return folder


def _models(rig: Rig, secret: str, ids: Ids) -> Path:
    folder, port = rig.folder("models"), free_port()
    requests = write_requests(rig.scratch / "models.bin", MODELS, secret=secret, ids=ids)
    with rig.serve(contenders.hookbox().launch(folder, port), port) as server:
        rig.load(server, requests, connections=1, seconds=10)
        time.sleep(SETTLE_S)
    return folder


def _multiply(path: Path, ids: Ids, size: int) -> None:
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA synchronous = OFF")
    db.execute("PRAGMA cache_size = -1000000")
    base = max(db.execute(f"SELECT max(id) FROM {table}").fetchone()[0] or 0 for table in TABLES)
    copies = [_copy(db, table, ids) for table in TABLES]
    for start in range(base, size, CHUNK):
        db.execute("BEGIN")
        for copy in copies:
            db.execute(copy, {"base": start, "count": min(CHUNK, size - start)})
        db.execute("COMMIT")
    db.execute(LAST_PLACE)
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    with path.open(
        "rb+"
    ) as file:  # gigabytes still to be written would slow every sync for minutes
        os.fsync(file.fileno())


def _copy(db: sqlite3.Connection, table: str, ids: Ids) -> str:
    columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
    own = OWN | {"key": KEYS[ids]}
    values = [own.get(column, column) for column in columns]
    return COPY.format(table=table, columns=", ".join(columns), values=", ".join(values))


def _schema(folder: Path) -> list[tuple[str]]:
    db = sqlite3.connect(folder / "hookbox.db")
    try:
        return db.execute("SELECT sql FROM sqlite_master ORDER BY name").fetchall()
    finally:
        db.close()


def _count(folder: Path) -> int:
    return contenders.stored(contenders.hookbox(), folder)


def _warm(path: Path) -> None:
    """Read the key index, so that it is in the page cache as on a box that has been running."""
    db = sqlite3.connect(path)
    db.execute("SELECT count(*) FROM event INDEXED BY event_identity WHERE key > ''").fetchone()
    db.close()
