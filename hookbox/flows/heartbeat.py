"""Heartbeat: the box notes that it lives, and after each silence says what that may have cost.

Every source gets a verdict against what is declared of its sender's patience, with the step that
brings back what no retry will.
"""

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from hookbox.clock import Clock
from hookbox.errors import StoreError
from hookbox.providers import PROVIDERS
from hookbox.rules.losses import Followed, Loss, Patience, loss
from hookbox.store import cursors, gaps, heartbeat
from hookbox.store.connections import Transaction
from hookbox.store.heartbeat import Outage, Served
from hookbox.store.writer import Writer

log = logging.getLogger("hookbox.heartbeat")

# A kill is known this exactly where nothing came before it. Each beat is a commit, and the WAL is
# folded away after half a minute without one.
BEAT_S = 60.0
SILENCE_MS = 2 * round(BEAT_S * 1000)  # a busy disk is late with a beat
RESTART_MS = 1_000  # at a start every silence counts: nobody was there
LOOK_BACK_MS = 7 * 86_400_000
WORST = list(Loss)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One source over the outages of the last days: the worst of them, and what to do."""

    source: str
    loss: Loss
    outage: Outage | None = None
    step: str = ""


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


def verdicts(transaction: Transaction, now: int) -> list[Verdict]:
    """Every source's, by name."""
    outages = heartbeat.outages(transaction, now - LOOK_BACK_MS)
    rounds, opened = cursors.last_rounds(transaction), gaps.open_counts(transaction)
    found = []
    for served in heartbeat.sources(transaction):
        last = rounds.get(served.id)
        expired = gaps.EXPIRED in opened.get(served.id, {})
        followed = Followed(caught_up_at=last.caught_up_at, expired=expired) if last else None
        found.append(_worst(served, _concerning(served, outages), followed, now))
    return found


def _concerning(served: Served, outages: Iterable[Outage]) -> Iterator[Outage]:
    """Those that came when the source was served already."""
    for outage in outages:
        if served.since is not None and served.since < outage.to_at:
            yield outage


def _worst(
    served: Served, outages: Iterable[Outage], followed: Followed | None, now: int
) -> Verdict:
    provider = PROVIDERS.get(served.provider)
    patience = Patience(
        horizon_s=provider.retry_horizon_s if provider else None,
        schedule_s=provider.retry_schedule_s if provider else (),
    )
    worst = Verdict(source=served.name, loss=Loss.SAFE)
    for outage in outages:
        found = loss(outage.from_at, outage.to_at, patience, followed, now)
        if WORST.index(found) > WORST.index(worst.loss):
            worst = Verdict(
                source=served.name,
                loss=found,
                outage=outage,
                step=_step(served, found, followed),
            )
    return worst


def _step(served: Served, found: Loss, followed: Followed | None) -> str:
    """What brings back what no retry will bring."""
    if found not in (Loss.AT_RISK, Loss.LOST):
        return ""
    if followed is not None and not followed.expired:
        return f"hookbox poll {served.name}"
    provider = PROVIDERS.get(served.provider)
    own = provider.recovery if provider and followed is None else ""
    return own or "look at the sender what came in that time"
