"""Who is measured: hookbox, other stacks that do the same work, and hookbox without its store.

A contender lays out a state folder and says how to launch its server on a port. Each one accepts
the same requests at the same path, so every contender of a round is sent the same bytes.
"""

import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from tests.bench.rig import Launch, free_port

PEERS = Path(__file__).parent / "peers"
ROOT = PEERS.parents[2]
SECRET_NAME = "STD_SECRET"

# The same work in the tables one would write for a single receiver: the event once, its outbox row.
PEER_SCHEMA = """
CREATE TABLE IF NOT EXISTS event (
  id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, kind TEXT NOT NULL,
  received_at INTEGER NOT NULL, headers TEXT NOT NULL, body BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS outbox (
  event_id INTEGER PRIMARY KEY REFERENCES event (id), due_at INTEGER NOT NULL,
  state INTEGER NOT NULL DEFAULT 0);
CREATE INDEX IF NOT EXISTS outbox_due ON outbox (due_at) WHERE state = 0;
"""

SETTINGS = """
[server]
listen = "127.0.0.1:{port}"
[local]
listen = "127.0.0.1:{local_port}"
[source.std]
provider = "standardwebhooks"
secret = "env:{secret_name}"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """A server to measure. `database` is its file in the state folder; None: it stores nothing."""

    name: str
    launch: Callable[[Path, int], Launch]
    database: str | None


def hookbox() -> Contender:
    def launch(folder: Path, port: int) -> Launch:
        settings = folder / "hookbox.toml"
        settings.write_text(
            SETTINGS.format(port=port, local_port=free_port(), secret_name=SECRET_NAME)
        )
        return Launch(
            command=[sys.executable, "-m", "hookbox", "serve"],
            cwd=ROOT,
            environment={"HOOKBOX_CONFIG": str(settings), "HOOKBOX_STATE": str(folder)},
        )

    return Contender(name="hookbox", launch=launch, database="hookbox.db")


def checks_only() -> Contender:
    """hookbox with a writer that keeps nothing: the distance to it is what the store costs."""
    box = hookbox()

    def launch(folder: Path, port: int) -> Launch:
        command = [sys.executable, "-m", "tests.bench.checks_only", "serve"]
        return replace(box.launch(folder, port), command=command)

    return Contender(name="hookbox, checks only", launch=launch, database=None)


def per_request() -> Contender:
    def launch(folder: Path, port: int) -> Launch:
        command = _uvicorn(sys.executable, "per_request:app", port)
        return Launch(command=command, cwd=PEERS, environment=_peer_environment(folder))

    return Contender(name="transaction per request", launch=launch, database="peer.db")


def express(cache: Path) -> Contender:
    installed = _install_node(cache)

    def launch(folder: Path, port: int) -> Launch:
        environment = _peer_environment(folder) | {
            "PEER_PORT": str(port),
            "NODE_ENV": "production",
            "NODE_PATH": str(installed / "node_modules"),
        }
        return Launch(command=["node", "express.js"], cwd=PEERS, environment=environment)

    return Contender(name="Express + better-sqlite3", launch=launch, database="peer.db")


def fastapi(cache: Path) -> Contender:
    python = _install_python(cache)

    def launch(folder: Path, port: int) -> Launch:
        command = _uvicorn(str(python), "fastapi_peer:app", port)
        return Launch(command=command, cwd=PEERS, environment=_peer_environment(folder))

    return Contender(name="FastAPI + sqlite3", launch=launch, database="peer.db")


def flask(cache: Path) -> Contender:
    python = _install_python(cache)

    def launch(folder: Path, port: int) -> Launch:
        # Two workers: one verifies while the other waits for its sync.
        command = [str(python), "-m", "gunicorn", "--bind", f"127.0.0.1:{port}", "--workers", "2"]
        command += ["--backlog", "2048", "--log-level", "warning", "flask_peer:app"]
        return Launch(command=command, cwd=PEERS, environment=_peer_environment(folder))

    return Contender(name="Flask + gunicorn + sqlite3", launch=launch, database="peer.db")


def stored(contender: Contender, folder: Path) -> int:
    """How many events lie in its database."""
    assert contender.database is not None
    db = sqlite3.connect(folder / contender.database)
    try:
        return int(db.execute("SELECT count(*) FROM event").fetchone()[0])
    finally:
        db.close()


def _uvicorn(python: str, app: str, port: int) -> list[str]:
    options = ["--host", "127.0.0.1", "--port", str(port), "--backlog", "2048"]
    return [python, "-m", "uvicorn", app, *options, "--no-access-log", "--log-level", "warning"]


def _peer_environment(folder: Path) -> dict[str, str]:
    return {
        "PEER_DB": str(folder / "peer.db"),
        "PEER_SCHEMA": PEER_SCHEMA,
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def _install_node(cache: Path) -> Path:
    """Express and better-sqlite3 as locked, installed once; compiling the latter takes a minute."""
    folder = cache / "node"
    if not _is_current(folder, PEERS / "package-lock.json"):
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(PEERS / name, folder)
        _install(["npm", "ci", "--no-audit", "--no-fund"], folder)
        shutil.copy(PEERS / "package-lock.json", folder / "installed")
    return folder


def _install_python(cache: Path) -> Path:
    """An environment of their own for the Python peers, as locked, installed once."""
    folder = cache / "python"
    python = folder / "bin" / "python"
    lock = PEERS / "requirements.txt"
    if not _is_current(folder, lock):
        _install([sys.executable, "-m", "venv", "--clear", str(folder)], cache)
        _install([str(python), "-m", "pip", "install", "--require-hashes", "-r", str(lock)], cache)
        shutil.copy(lock, folder / "installed")
    return python


def _is_current(folder: Path, lock: Path) -> bool:
    installed = folder / "installed"
    return installed.exists() and installed.read_bytes() == lock.read_bytes()


def _install(command: list[str], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    print(f"installing: {' '.join(command[:4])} ...", file=sys.stderr)
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"a peer cannot be installed:\n{done.stdout[-1000:]}{done.stderr[-2000:]}")
