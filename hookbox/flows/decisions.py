"""Decisions: what a person tells the running box about addresses, events and the outbox.

Each is one transaction of the writer, in which the decision itself is written down.
"""

from collections.abc import Callable, Sequence
from functools import partial

from hookbox.clock import Clock
from hookbox.flows.erase import Erasures
from hookbox.store import outbox, quarantine, reprocess, suppressions
from hookbox.store.connections import Transaction
from hookbox.store.decisions import Verb, Word
from hookbox.store.forwarding import target_of
from hookbox.store.reprocess import Replays
from hookbox.store.suppressions import Wanted
from hookbox.store.writer import Writer


class Decisions:
    """Carries decisions out. `wake`: there is something new to do. `recall`: nothing more may begin
    at this target.
    """

    def __init__(
        self,
        writer: Writer,
        clock: Clock,
        wake: Callable[[], None],
        recall: Callable[[str], None],
        erasures: Erasures,
    ) -> None:
        self._writer, self._clock, self._wake = writer, clock, wake
        self._recall, self._erasures = recall, erasures

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
            partial(
                suppressions.lift,
                address=address,
                scope=scope,
                word=word,
                pseudonyms=self._erasures.pseudonyms,
            )
        )

    async def discard(self, entry_id: int, reason: str) -> None:
        """Close a quarantined thing without effect. Raises OperatorError."""
        now = self._clock.now()
        await self._writer.write(
            partial(quarantine.discard, entry_id=entry_id, reason=reason, now=now)
        )

    async def forget(self, source: str, key: str, word: Word) -> int:
        """Let the sender's replay of an event be news; the event's id. Raises OperatorError."""
        return await self._writer.write(
            partial(reprocess.forget, source=source, key=key, word=word)
        )

    async def replay(self, event_ids: Sequence[int], to: Sequence[str], word: Word) -> Replays:
        """Have events applied again, or brought to destinations again."""
        replays = await self._writer.write(
            partial(reprocess.replay_each, event_ids=event_ids, to=to, word=word)
        )
        self._wake()
        return replays

    async def retry(self, job_ids: Sequence[int]) -> None:
        """Have jobs tried at once. Raises OperatorError, and then none of them is."""
        await self._writer.write(partial(outbox.retry, job_ids=job_ids, now=self._clock.now()))
        self._wake()

    async def retry_exhausted(self, destination: str) -> int:
        """Have everything tried again that a destination's attempts were given up on."""
        now = self._clock.now()
        retried = await self._in_steps(
            partial(outbox.retry_exhausted, destination=destination, now=now)
        )
        self._wake()
        return retried

    async def cancel(self, job_ids: Sequence[int], word: Word) -> None:
        """Give jobs up. Raises OperatorError, and then none of them is."""
        await self._writer.write(partial(outbox.cancel, job_ids=job_ids, word=word))

    async def pause(self, destination: str, word: Word) -> int:
        """Bring nothing more to a destination; how many jobs wait for it."""
        await self._writer.write(partial(outbox.pause, destination=destination, word=word))
        held = await self._in_steps(partial(outbox.hold, destination=destination))
        self._recall(target_of(destination))
        return held

    async def resume(self, destination: str) -> int:
        """Let a destination go on; how many jobs are due. Raises OperatorError."""
        await self._writer.write(partial(outbox.resume, destination=destination))
        released = await self._in_steps(partial(outbox.release, destination=destination))
        self._wake()
        return released

    async def _in_steps(self, step: Callable[[Transaction], int]) -> int:
        """A change of many jobs, a bounded transaction at a time: senders go in between."""
        changed = 0
        while (count := await self._writer.write(step)) > 0:
            changed += count
        return changed
