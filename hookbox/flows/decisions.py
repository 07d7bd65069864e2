"""Decisions: what a person tells the running box about addresses and events.

Each is one transaction of the writer, in which the decision itself is written down.
"""

from collections.abc import Callable, Sequence
from functools import partial

from hookbox.clock import Clock
from hookbox.store import reprocess, suppressions
from hookbox.store.decisions import Verb, Word
from hookbox.store.suppressions import Wanted
from hookbox.store.writer import Writer


class Decisions:
    """Carries decisions out. `wake`: there is something new to apply."""

    def __init__(self, writer: Writer, clock: Clock, wake: Callable[[], None]) -> None:
        self._writer, self._clock, self._wake = writer, clock, wake

    def word(self, who: str, reason: str) -> Word:
        """A person's word, given now."""
        return Word(who=who, reason=reason, at=self._clock.now())

    async def suppress(self, wanted: Sequence[Wanted], verb: Verb, word: Word) -> int:
        """Put addresses on the list; how many were not on it."""
        return await self._writer.write(
            partial(suppressions.add, wanted=wanted, verb=verb, word=word)
        )

    async def lift(self, address: str, scope: str, word: Word) -> None:
        """Take an address off the list. Raises OperatorError when it is not on it."""
        await self._writer.write(
            partial(suppressions.lift, address=address, scope=scope, word=word)
        )

    async def forget(self, source: str, key: str, word: Word) -> int:
        """Let the sender's replay of an event be news; the event's id. Raises OperatorError."""
        return await self._writer.write(
            partial(reprocess.forget, source=source, key=key, word=word)
        )

    async def replay(self, event_id: int, word: Word) -> int:
        """Have an event applied again; the number of the replay. Raises OperatorError."""
        number = await self._writer.write(partial(reprocess.replay, event_id=event_id, word=word))
        self._wake()
        return number
