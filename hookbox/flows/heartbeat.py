"""Heartbeat: the box notes that it lives, and after each silence says what that may have cost."""

import logging
from functools import partial

from hookbox.clock import Clock
from hookbox.errors import StoreError
from hookbox.flows.outages import verdicts
from hookbox.rules.losses import Loss
from hookbox.store import heartbeat
from hookbox.store.writer import Writer

log = logging.getLogger("hookbox.heartbeat")

# A kill is known this exactly where nothing came before it. Each beat is a commit, and the WAL is
# folded away after half a minute without one.
BEAT_S = 60.0
SILENCE_MS = 2 * round(BEAT_S * 1000)  # a busy disk is late with a beat
RESTART_MS = 1_000  # at a start every silence counts: nobody was there


class Heartbeat:
    """Beats from `start` until its task is cancelled; `stop` makes the last one exact."""

    def __init__(self, writer: Writer, clock: Clock) -> None:
        self._writer, self._clock = writer, clock

    async def start(self) -> None:
        """The first beat of this start, and what the silence before it means. Raises StoreError."""
        await self._beat(RESTART_MS)

    async def run(self) -> None:
        """For ever. A beat that the store does not take is an outage, and is told by the next."""
        while True:
            await self._clock.sleep(BEAT_S)
            try:
                await self.beat()
            except StoreError as error:
                log.warning("no heartbeat error=%s", error)

    async def beat(self) -> None:
        """One more beat, for whoever wants to know that the box can store. Raises StoreError."""
        await self._beat(SILENCE_MS)

    async def stop(self) -> None:
        """From here on there is nobody."""
        try:
            await self.beat()
        except StoreError as error:
            log.warning("no heartbeat error=%s", error)

    async def _beat(self, silence_ms: int) -> None:
        now = self._clock.now()
        beating = partial(heartbeat.beat, now=now, silence_ms=silence_ms)
        outage = await self._writer.write(beating)
        if outage is None:
            return
        log.warning("nothing could be stored for %.0f s, until now", outage.length_s)
        for verdict in await self._writer.write(partial(verdicts, now=now)):
            level = logging.INFO if verdict.loss is Loss.SAFE else logging.WARNING
            told = (verdict.source, verdict.loss, verdict.step or "none")
            log.log(level, "outage source=%s verdict=%s step=%s", *told)
