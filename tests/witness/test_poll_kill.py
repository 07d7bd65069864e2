"""The cursor is never ahead of the events, whenever the poller is killed."""

import asyncio
import contextlib
import json
import os
import random
import sqlite3
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.upstream import TOKEN, Upstream, event, upstream
from tests.witness.server import ROOT

pytestmark = pytest.mark.witness

HOOKBOX = (sys.executable, "-m", "hookbox")
PLANTED = (sys.executable, str(Path(__file__).with_name("cursor_first.py")))

KILLS = 200
PLANTED_KILLS_MAX = 100  # one in five is fatal to it
LIMIT = 10  # events a page
NEW_EACH_LIFE = 25
# A page is fetched, inserted, and committed in about 5 ms; on a busy machine in 20.
LINGER_MAX_S = 0.02
LIFE_MAX_S = 60.0
JOBS = "SELECT e.key, o.id AS job FROM events AS e JOIN outbox AS o ON o.event_id = e.id"


@dataclass
class Lives:
    """A poller that is killed again and again, and what was found in its database afterwards."""

    folder: Path
    command: Sequence[str]
    listed: Upstream
    sequence: int = 0
    kills: int = 0
    moments: dict[str, int] = field(default_factory=dict)
    skipped: set[int] = field(default_factory=set)

    def prepare(self) -> None:
        (self.folder / "hookbox.toml").write_text(
            '[source.agent]\nprovider = "efa"\n[source.agent.poll]\n'
            f'url = "{self.listed.url}"\ntoken = "env:AGENT_KEY"\nlimit = {LIMIT}\n'
        )

    async def live(self, *, pages: int | None) -> int:
        """Poll once; killed soon after so many pages were given, or left to end by itself."""
        given_before = len(self.listed.asked)
        child = await asyncio.create_subprocess_exec(
            *(*self.command, "poll", "agent", "--once", "--json"),
            env=self._environment(),
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        ended = asyncio.create_task(child.wait())
        async with asyncio.timeout(LIFE_MAX_S):
            while pages is not None and not ended.done():
                if len(self.listed.asked) - given_before >= pages:
                    await asyncio.sleep(LINGER_MAX_S * random.random() ** 3)  # mostly early
                    with contextlib.suppress(ProcessLookupError):
                        child.kill()
                    break
                await asyncio.sleep(0.001)
            return await ended

    def _environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "HOOKBOX_CONFIG": str(self.folder / "hookbox.toml"),
            "HOOKBOX_STATE": str(self.folder / "state"),
            "AGENT_KEY": TOKEN,
        }

    async def killed(self) -> None:
        """One life among new events, and a look at what it left."""
        fresh = range(self.sequence + 1, self.sequence + NEW_EACH_LIFE + 1)
        self.listed.add(*(event(number) for number in fresh))
        self.sequence = fresh[-1]
        before, _ = self.look()
        code = await self.live(pages=random.randint(1, 3))
        self.kills += code < 0
        cursor, stored = self.look()
        moved = "stored" if cursor > before else "not stored"
        self.moments[moved] = self.moments.get(moved, 0) + 1
        self.skipped |= set(range(1, cursor + 1)) - stored

    def look(self) -> tuple[int, set[int]]:
        """The cursor, and the sequence numbers of the events."""
        path = self.folder / "state" / "hookbox.db"
        if not path.exists():
            return 0, set()
        with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as database:
            try:
                found = database.execute("SELECT cursor FROM cursors").fetchone()
                keys = database.execute("SELECT key FROM events").fetchall()
            except sqlite3.OperationalError:  # killed before there was a table
                return 0, set()
        return int(found[0]) if found else 0, {int(key.removeprefix("evt_")) for (key,) in keys}


async def test_no_event_is_skipped_in_200_kills(memory: Path) -> None:
    """Between fetch, insert and commit; in the end every event is there, once."""
    async with upstream() as listed:
        lives = Lives(memory, HOOKBOX, listed)
        lives.prepare()
        while lives.kills < KILLS:
            await lives.killed()
            assert not lives.skipped
        assert await lives.live(pages=None) == 0
        cursor, stored = lives.look()
        assert (cursor, stored) == (lives.sequence, set(range(1, lives.sequence + 1)))
        assert min(lives.moments.get(each, 0) for each in ("stored", "not stored")) > KILLS // 20
        with contextlib.closing(sqlite3.connect(memory / "state" / "hookbox.db")) as database:
            counted = f"SELECT count(*), count(DISTINCT key), count(DISTINCT job) FROM ({JOBS})"
            assert database.execute(counted).fetchone() == (lives.sequence,) * 3
            assert database.execute("SELECT count(*) FROM quarantine").fetchone() == (0,)
            assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        print(json.dumps({"kills": lives.kills, "events": lives.sequence, **lives.moments}))


async def test_witness_sees_what_a_cursor_that_is_saved_first_skips(memory: Path) -> None:
    async with upstream() as listed:
        lives = Lives(memory, PLANTED, listed)
        lives.prepare()
        while not lives.skipped and lives.kills < PLANTED_KILLS_MAX:
            await lives.killed()
        print(json.dumps({"kills": lives.kills, **lives.moments}))
        assert lives.skipped
