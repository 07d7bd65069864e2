"""The cursor is never ahead of the events, whenever the poller is killed."""

import asyncio
import contextlib
import json
import os
import random
import signal
import sqlite3
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.upstream import TOKEN, Upstream, event, upstream
from tests.witness.server import ROOT

pytestmark = pytest.mark.witness

LIVES = (sys.executable, str(Path(__file__).with_name("lives.py")))
PLANTED = (*LIVES, "tests.witness.cursor_first")

KILLS = 200
PLANTED_KILLS_MAX = 100  # one in five is fatal to it
LIMIT = 10  # events a page
NEW_EACH_LIFE = 25
# A page is fetched, inserted, and committed in about 5 ms; on a busy machine in 20.
LINGER_MAX_S = 0.02
LIFE_MAX_S = 60.0
MOMENTS = ("nothing stored", "something stored")
JOBS = "SELECT e.key, o.id AS job FROM events AS e JOIN outbox AS o ON o.event_id = e.id"


@dataclass
class Lives:
    """A poller that is killed again and again, and what was found in its database afterwards."""

    folder: Path
    command: Sequence[str]
    listed: Upstream
    sequence: int = 0
    kills: int = 0
    parent: asyncio.subprocess.Process | None = None
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
        pid = await self._begin()
        ended = asyncio.create_task(self._line())
        async with asyncio.timeout(LIFE_MAX_S):
            while pages is not None and not ended.done():
                if len(self.listed.asked) - given_before >= pages:
                    await asyncio.sleep(LINGER_MAX_S * random.random() ** 3)  # mostly early
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                    break
                await asyncio.sleep(0.001)
            return int(await ended)

    async def _begin(self) -> int:
        if self.parent is None:
            self.parent = await asyncio.create_subprocess_exec(
                *self.command,
                env=self._environment(),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
            )
        assert self.parent.stdin is not None
        self.parent.stdin.write(b"\n")
        return int(await self._line())

    async def _line(self) -> bytes:
        assert self.parent is not None
        assert self.parent.stdout is not None
        return await self.parent.stdout.readline()

    async def end(self) -> None:
        if self.parent is not None:
            self.parent.kill()
            await self.parent.wait()

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
        moved = MOMENTS[cursor > before]
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


@asynccontextmanager
async def lives(folder: Path, command: Sequence[str]) -> AsyncIterator[Lives]:
    async with upstream() as listed:
        made = Lives(folder, command, listed)
        made.prepare()
        try:
            yield made
        finally:
            await made.end()


async def test_no_event_is_skipped_in_200_kills(memory: Path) -> None:
    """Between fetch, insert and commit; in the end every event is there, once."""
    async with lives(memory, LIVES) as poller:
        while poller.kills < KILLS:
            await poller.killed()
            assert not poller.skipped
        while (await poller.live(pages=None), poller.look()[0]) != (0, poller.sequence):
            pass  # a hundred pages a round
        _, stored = poller.look()
        assert stored == set(range(1, poller.sequence + 1))
        print(json.dumps({"kills": poller.kills, "events": poller.sequence, **poller.moments}))
        assert min(poller.moments.get(each, 0) for each in MOMENTS) > KILLS // 20
    with contextlib.closing(sqlite3.connect(memory / "state" / "hookbox.db")) as database:
        counted = f"SELECT count(*), count(DISTINCT key), count(DISTINCT job) FROM ({JOBS})"
        assert database.execute(counted).fetchone() == (poller.sequence,) * 3
        assert database.execute("SELECT count(*) FROM quarantine").fetchone() == (0,)
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)


async def test_witness_sees_what_a_cursor_that_is_saved_first_skips(memory: Path) -> None:
    async with lives(memory, PLANTED) as poller:
        while not poller.skipped and poller.kills < PLANTED_KILLS_MAX:
            await poller.killed()
        print(json.dumps({"kills": poller.kills, **poller.moments}))
        assert poller.skipped
