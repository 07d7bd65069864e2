"""A stand-in for `hookbox once` with a planted fault: it looks up, runs, then inserts.

    standin_once.py FOLDER KEY COMMAND...

So that the race is lost each time, whoever finds nothing waits until another has found nothing too.
"""

import os
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

folder, key, *command = sys.argv[1:]
database = sqlite3.connect(Path(folder) / "effects.db", isolation_level=None, timeout=30)
database.execute("CREATE TABLE IF NOT EXISTS effect (key TEXT, result TEXT)")
if database.execute("SELECT 1 FROM effect WHERE key = ?", (key,)).fetchone():
    sys.exit(0)
(Path(folder) / f"looked-{os.getpid()}").touch()
deadline = time.monotonic() + 10
while len(list(Path(folder).glob("looked-*"))) < 2 and time.monotonic() < deadline:
    time.sleep(0.01)
ended = subprocess.run(command)
database.execute("INSERT INTO effect (key, result) VALUES (?, 'done')", (key,))
sys.exit(ended.returncode)
