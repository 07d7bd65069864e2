"""Erase: an address is forgotten, but not that it must not be mailed.

What is known of it goes on under a name made with a key, so that `check` still finds it and nobody
can tell whose it is. Content that mentions it goes; other people's pieces of the same delivery
stay. Then every byte of the database is free of it: freed pages are overwritten, and the WAL is
emptied.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from hookbox.clock import Clock
from hookbox.errors import OperatorError
from hookbox.rules.addresses import bare
from hookbox.rules.folding import folded, spellings
from hookbox.rules.mentions import needle, pattern, written
from hookbox.store import erasure, mentions, pseudonyms
from hookbox.store.connections import Transaction
from hookbox.store.decisions import Word
from hookbox.store.mentions import Sought, Table
from hookbox.store.pseudonyms import Pseudonyms
from hookbox.store.reader import Reader
from hookbox.store.secrets import Seal
from hookbox.store.writer import Writer

T = TypeVar("T")

MENDED_MAX = 20  # rows a transaction
FOLDS_MAX = 20
FOLD_AGAIN_S = 0.25  # a reader that is in the way looks for two seconds at most


@dataclass(slots=True, kw_only=True)
class Erased:
    """What was done. `statuses` and `rows` that go by another name now; `pending`: how many
    contents were left, since they are still to be applied; `folded`: nothing is left in the WAL.
    """

    name: str
    statuses: int = 0
    rows: int = 0
    pending: int = 0
    folded: bool = False


class Erasures:
    """Carries erasures out, one at a time. `turning`: whoever holds it keeps the ledger still."""

    def __init__(
        self, writer: Writer, path: Path, seal: Seal, clock: Clock, turning: asyncio.Lock
    ) -> None:
        self._writer, self._path, self._seal = writer, path, seal
        self._clock, self._turning = clock, turning
        self._erasing = asyncio.Lock()
        self.pseudonyms = Pseudonyms()

    async def start(self) -> None:
        """Learn by which names erased addresses go."""
        self.pseudonyms = await self._writer.write(
            partial(pseudonyms.known, seal=lambda: self._seal)
        )

    async def erase(self, text: str, word: Word) -> Erased:
        """Erase the address. Doing it again does no harm, and does what was left. Raises
        OperatorError for what is no address.
        """
        address = bare(text)
        if address is None:
            raise OperatorError(f"{text!r} is not an address")
        async with self._erasing:
            return await self._erase(folded(address), word)

    async def _erase(self, address: str, word: Word) -> Erased:
        ensure = partial(pseudonyms.ensured, seal=self._seal, now=word.at)
        self.pseudonyms = await self._writer.write(ensure)
        [name] = self.pseudonyms.of_all([address])
        done = Erased(name=name)
        await self._still(partial(erasure.begin, address=address, name=name, word=word))
        rename = partial(erasure.rename_statuses, address=address, name=name)
        while renamed := await self._still(rename):
            done.statuses += renamed
        spelt = spellings(address)
        sought = Sought(needle=needle(address), pattern=pattern(written(spelt)), name=name)
        reader = Reader(self._path)
        await reader.start()
        try:
            for table in await reader.read(mentions.tables):
                await self._mend_table(reader, table, sought, done)
        finally:
            await reader.stop()
        done.folded = await self._folded()
        return done

    async def _mend_table(self, reader: Reader, table: Table, sought: Sought, done: Erased) -> None:
        for after in await reader.read(partial(mentions.pages, table=table)):
            find = partial(mentions.find, table=table, after=after, sought=sought)
            keys = await reader.read(find)
            for at in range(0, len(keys), MENDED_MAX):
                some = keys[at : at + MENDED_MAX]
                mend = partial(
                    mentions.mend, table=table, keys=some, sought=sought, now=self._clock.now()
                )
                left = await self._still(mend)
                done.pending += left
                done.rows += len(some) - left

    async def _still(self, work: Callable[[Transaction], T]) -> T:
        """A change of the ledger while nobody else is at it."""
        async with self._turning:
            return await self._writer.write(work)

    async def _folded(self) -> bool:
        for _ in range(FOLDS_MAX):
            if await self._writer.fold():
                return True
            await self._clock.sleep(FOLD_AGAIN_S)
        return False
