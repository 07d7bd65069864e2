"""Receive: one delivery, from its raw bytes to rows that survive a power cut.

Prove who sent it, split it into events, have the writer store them, and only then say so. Expected
outcomes are values here; the door turns them into this sender's HTTP statuses. Nothing that was
proved is lost: what cannot be read, or trips over a mistake of ours, goes to quarantine.
"""

import json
import logging
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum

from hookbox.clock import Clock
from hookbox.errors import (
    CannotVerify,
    Overloaded,
    Reason,
    Refused,
    StoreBusy,
    StoreError,
    Unintelligible,
)
from hookbox.flows.certificates import Certificates
from hookbox.flows.in_order import InOrder
from hookbox.flows.probe import Probes
from hookbox.flows.sources import Source
from hookbox.flows.tally import Tally
from hookbox.model import Admission, Delivery, Handshake, Rotten, Split
from hookbox.providers.contract import VerifiedDelivery
from hookbox.store.proposals import DeliveryRow, Proposal
from hookbox.store.waiting import BATCH_ROWS_MAX
from hookbox.store.writer import Writer

log = logging.getLogger("hookbox.receive")

CREDENTIALS = frozenset({"authorization", "proxy-authorization", "cookie"})
RETRY_SOON_S = 5  # overload and locks pass
RETRY_LATER_S = 60  # a full disk or a wrong clock takes a person


class Outcome(StrEnum):
    """What became of a delivery."""

    ACCEPTED = "accepted"
    DUPLICATE = "duplicate"
    QUARANTINED = "quarantined"
    HANDSHAKE = "handshake"
    REFUSED = "refused"
    BUSY = "busy"  # our fault: the sender should come back


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """The outcome of one delivery. `reason` goes with REFUSED, `retry_after_s` with BUSY, `answer`
    with HANDSHAKE.

    `unreadable`: nothing of the delivery could be read as an event.
    """

    outcome: Outcome
    admission: Admission = field(default_factory=Admission)
    reason: Reason | None = None
    retry_after_s: int | None = None
    answer: Handshake | None = None
    unreadable: bool = False


class Receiver:
    """The receive flow with what it needs at hand. `stored` is called after every commit that
    brought something new.
    """

    def __init__(
        self,
        writer: Writer,
        tally: Tally,
        certificates: Certificates,
        probes: Probes,
        clock: Clock,
        stored: Callable[[Collection[str]], None],
        in_order: InOrder | None = None,
    ) -> None:
        self._in_order = in_order
        self._writer, self._tally, self._certificates = writer, tally, certificates
        self._probes, self._clock, self._stored = probes, clock, stored

    async def receive(self, source: Source, delivery: Delivery) -> Receipt:
        """Prove, split, store. Never raises for anything that a sender or the disk can do."""
        try:
            verified = await self._verify(source, delivery)
        except Refused as refusal:
            return self._refuse(source, delivery, refusal)
        except CannotVerify:  # in the log already, once for each fetch and not for each delivery
            self._tally.refused(source.id, Reason.CERTIFICATE_UNAVAILABLE, None, delivery.remote)
            return Receipt(outcome=Outcome.BUSY, retry_after_s=RETRY_LATER_S)
        split = _split(source, verified)
        if isinstance(split, Handshake):
            return Receipt(outcome=Outcome.HANDSHAKE, answer=split)
        try:
            admission = await self._admit(source, _proposals(source, verified, split))
        except (Overloaded, StoreError) as trouble:
            return _busy(source, trouble)
        if admission.token_reused:
            log.error("token reused with other content source=%s", source.name)
            return self._refuse(source, delivery, Refused(Reason.TOKEN_REUSED))
        if admission.new:
            self._stored({job for event in split.events for job in event.jobs})
        if self._probes.of(source):
            keys = [event.key for event in split.events]
            if await self._probes.answer_busy(source, verified, keys):
                return Receipt(outcome=Outcome.BUSY, retry_after_s=RETRY_SOON_S)
        return Receipt(
            outcome=_outcome(admission),
            admission=admission,
            unreadable=bool(split.rotten) and not split.events,
        )

    async def _admit(self, source: Source, proposals: list[Proposal]) -> Admission:
        if self._in_order is not None and self._in_order.concerns(source, proposals):
            return await self._in_order.keep(source, proposals)
        return await self._writer.admit(proposals, source.deadline_s)

    async def _verify(self, source: Source, delivery: Delivery) -> VerifiedDelivery:
        provider, trust = source.provider, source.trust
        if not trust.keys and provider.needs_secret:
            raise Refused(Reason.NO_SECRET)
        if provider.certificate_url is not None:
            url = provider.certificate_url(delivery, trust)
            pem = await self._certificates.get(url, provider.certificates)
            trust = replace(trust, certificate=pem)
        verified = provider.verify(delivery, trust, self._clock.now())
        self._tally.proved(source.id, verified.slot, delivery.received_at)
        self._observe(source, verified)
        return verified

    def _observe(self, source: Source, verified: VerifiedDelivery) -> None:
        """Under `skew = "observe"` a delivery outside the window is accepted, and counted as what
        it would have been.
        """
        window_s = source.provider.tolerance_s
        skew_s = verified.skew_s
        if source.trust.tolerance_s is not None or window_s is None or skew_s is None:
            return
        if abs(skew_s) > window_s:
            reason = Reason.STALE if skew_s > 0 else Reason.FUTURE
            self._tally.refused(source.id, reason, skew_s, verified.delivery.remote)

    def _refuse(self, source: Source, delivery: Delivery, refusal: Refused) -> Receipt:
        self._tally.refused(source.id, refusal.reason, refusal.skew_s, delivery.remote)
        if refusal.reason is Reason.NO_SECRET:  # ours to mend, and then the sender's retry is taken
            return Receipt(outcome=Outcome.BUSY, reason=refusal.reason, retry_after_s=RETRY_LATER_S)
        return Receipt(outcome=Outcome.REFUSED, reason=refusal.reason)


def _split(source: Source, verified: VerifiedDelivery) -> Split | Handshake:
    """Authentic from here on: whatever goes wrong now is set aside, never refused."""
    body = verified.delivery.body
    try:
        return source.provider.split(verified)
    except Unintelligible as error:
        return Split(rotten=(Rotten(reason=error.reason, content=body, key=error.key),))
    except Exception:
        log.exception("split failed source=%s bytes=%d", source.name, len(body))
        return Split(rotten=(Rotten(reason="split_failed", content=body),))


def _proposals(source: Source, verified: VerifiedDelivery, split: Split) -> list[Proposal]:
    """The delivery in chunks small enough that a big batch never holds up a small one for long."""
    row = _delivery_row(source, verified, split)
    if len(split.events) == 1 and not split.rotten:
        return [Proposal(delivery=row, events=split.events, token=split.token)]
    chunks = [
        Proposal(delivery=row, events=split.events[at : at + BATCH_ROWS_MAX], token=split.token)
        for at in range(0, len(split.events), BATCH_ROWS_MAX)
    ]
    if split.rotten or not chunks:
        chunks.append(
            Proposal(delivery=row, rotten=split.rotten, token="" if chunks else split.token)
        )
    return chunks


def _delivery_row(source: Source, verified: VerifiedDelivery, split: Split) -> DeliveryRow:
    delivery = verified.delivery
    return DeliveryRow(
        source_id=source.id,
        received_at=delivery.received_at,
        signed_at=verified.signed_at,
        via=delivery.via,
        verified_by=verified.slot,
        remote=delivery.remote,
        headers=_kept_headers(source, delivery, unread=bool(split.rotten)),
        body=delivery.body,
        is_text=all(_is_text(content) for content in _shown(delivery, split)),
    )


def _kept_headers(source: Source, delivery: Delivery, *, unread: bool) -> str:
    """What the provider will want to read again, as a JSON object: what it asks for, or everything
    but credentials where something could not be read yet.
    """
    kept = source.provider.headers_kept
    if not kept and not unread:
        return "{}"
    named = ((name.decode("latin-1"), value) for name, value in delivery.headers)
    return json.dumps(
        {
            name: value.decode("latin-1")
            for name, value in named
            if name in kept or (unread and name not in CREDENTIALS)
        }
    )


def _shown(delivery: Delivery, split: Split) -> Iterator[bytes]:
    """The contents that the views will show: each event's own, or else the body."""
    own = [event.content for event in split.events if event.content is not None]
    yield from own
    yield from (piece.content for piece in split.rotten)
    if len(own) < len(split.events):
        yield delivery.body


def _is_text(content: bytes) -> bool:
    if b"\0" in content:
        return False
    if content.isascii():
        return True
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def _outcome(admission: Admission) -> Outcome:
    if admission.new:
        return Outcome.ACCEPTED
    if admission.conflicting or admission.quarantined:
        return Outcome.QUARANTINED
    return Outcome.DUPLICATE if admission.duplicate else Outcome.ACCEPTED


def _busy(source: Source, trouble: Exception) -> Receipt:
    """Our fault, in the log once per delivery: this is rare, and each one is a sender sent away."""
    passing = isinstance(trouble, Overloaded | StoreBusy)
    log.warning("not stored source=%s error=%s", source.name, trouble)
    return Receipt(outcome=Outcome.BUSY, retry_after_s=RETRY_SOON_S if passing else RETRY_LATER_S)
