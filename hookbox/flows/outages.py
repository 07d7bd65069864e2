"""Outages: what those of the last days may have cost each source.

Every source gets a verdict against what is declared of its sender's patience, with the step that
brings back what no retry will.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from hookbox.providers import PROVIDERS
from hookbox.rules.losses import Followed, Loss, Patience, loss
from hookbox.store import cursors, gaps, heartbeat
from hookbox.store.connections import Transaction
from hookbox.store.heartbeat import Outage, Served

LOOK_BACK_MS = 7 * 86_400_000
WORST = list(Loss)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One source over the outages of the last days: the worst of them, and what to do."""

    source: str
    loss: Loss
    outage: Outage | None = None
    step: str = ""


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
