"""Probe: find out what a sender really does when it is told "our fault".

The next verified delivery is stored like any other, so nothing can be lost, but answered as if the
box were busy. Both that request and every later one of the same event are kept and compared. The
probe ends by itself when each failed delivery came again, or when its sender's horizon is over.
"""

import hashlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise

from hookbox.clock import Clock
from hookbox.errors import OperatorError, StoreError
from hookbox.flows.sources import Source
from hookbox.model import Via
from hookbox.providers.contract import Provider, SignedTime, VerifiedDelivery
from hookbox.store import probes
from hookbox.store.probes import ProbeRequest, ProbeRow
from hookbox.store.writer import Writer

log = logging.getLogger("hookbox.probe")

FAILURES_MAX = 5  # further ones make the sender slow down or give up, which is another question
DEFAULT_HORIZON_S = 24 * 3600
KEPT_MAX = 50  # requests of one probe
SECRET_HEADERS = frozenset({"authorization", "cookie", "proxy-authorization"})


@dataclass(slots=True)
class _Probe:
    """A probe under way. `seen`: event key -> how often it was answered "busy"."""

    row: ProbeRow
    failed: dict[str, int] = field(default_factory=dict)
    came_again: set[str] = field(default_factory=set)
    kept: int = 0


class Probes:
    """The probes under way, one for a source at most."""

    def __init__(self, writer: Writer, clock: Clock) -> None:
        self._writer, self._clock = writer, clock
        self._by_source: dict[int, _Probe] = {}

    async def resume(self) -> None:
        """Those that are under way in the store and not here yet go on here."""
        for row in await self._writer.write(probes.active):
            if row.source_id in self._by_source:
                continue
            kept = await self._writer.write(partial(probes.requests, probe_id=row.id))
            probe = _Probe(row)
            for request in kept:
                self._note(probe, request.key, request.answered)
            self._by_source[row.source_id] = probe

    async def start(self, source: Source, failures: int) -> None:
        """Raises OperatorError when one is under way, or asks for too much."""
        if not 1 <= failures <= FAILURES_MAX:
            raise OperatorError(f"a probe fails 1 to {FAILURES_MAX} deliveries, not {failures}")
        now = self._clock.now()
        last = self._by_source.get(source.id)
        if last is not None and now >= last.row.ends_at:  # nothing came since that would tell
            await self._end(last, "horizon over")
        horizon_s = source.provider.retry_horizon_s or DEFAULT_HORIZON_S
        await self._writer.write(
            partial(
                probes.start,
                source_id=source.id,
                failures=failures,
                now=now,
                ends_at=now + horizon_s * 1000,
            )
        )
        await self.resume()

    async def stop(self, source: Source) -> None:
        """End it now. Raises OperatorError when none is under way."""
        probe = self._by_source.get(source.id)
        if probe is None:
            raise OperatorError(f"no probe of {source.name} is under way")
        await self._end(probe, "stopped")

    def of(self, source: Source) -> bool:
        """Whether this source is being probed. The answer for everybody else costs a dict read."""
        return source.id in self._by_source

    async def answer_busy(
        self, source: Source, verified: VerifiedDelivery, keys: Sequence[str]
    ) -> bool:
        """Keep this stored delivery if it matters to the probe; whether to answer "busy"."""
        probe = self._by_source.get(source.id)
        if probe is None or not keys or verified.delivery.via is not Via.WEBHOOK:
            return False
        if self._clock.now() >= probe.row.ends_at:
            await self._end(probe, "horizon over")
            return False
        again = next((key for key in keys if key in probe.failed), None)
        fail = again is None and len(probe.failed) < probe.row.failures
        if again is None and not fail:
            return False
        await self._keep(probe, verified, again or keys[0], "busy" if fail else "ok")
        if not fail and probe.came_again.issuperset(probe.failed):
            await self._end(probe, "every failed delivery came again")
        return fail

    async def _keep(
        self, probe: _Probe, verified: VerifiedDelivery, key: str, answered: str
    ) -> None:
        self._note(probe, key, answered)
        if probe.kept > KEPT_MAX:
            return
        delivery = verified.delivery
        request = ProbeRequest(
            number=0,
            key=key,
            received_at=delivery.received_at,
            signed_at=verified.signed_at,
            answered=answered,
            headers=[_shown(name, value) for name, value in delivery.headers],
            body=delivery.body,
        )
        try:
            await self._writer.write(partial(probes.record, probe_id=probe.row.id, request=request))
        except StoreError as error:
            log.warning("probe could not keep a request probe=%d error=%s", probe.row.id, error)

    @staticmethod
    def _note(probe: _Probe, key: str, answered: str) -> None:
        probe.kept += 1
        if answered == "busy":
            probe.failed[key] = probe.failed.get(key, 0) + 1
        else:
            probe.came_again.add(key)

    async def _end(self, probe: _Probe, outcome: str) -> None:
        self._by_source.pop(probe.row.source_id, None)
        log.info("probe ended source=%s outcome=%r", probe.row.source, outcome)
        end = partial(probes.end, probe_id=probe.row.id, outcome=outcome, now=self._clock.now())
        try:
            await self._writer.write(end)
        except StoreError as error:
            log.warning("probe end not recorded probe=%d error=%s", probe.row.id, error)


def _shown(name: bytes, value: bytes) -> tuple[str, str]:
    """Credentials are no finding."""
    text = name.decode("latin-1")
    return text, "…" if text in SECRET_HEADERS else value.decode("latin-1")


# --- the report


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What one retry showed, beside what is declared. `agrees` None: nothing is declared."""

    question: str
    found: str
    declared: str
    agrees: bool | None


def findings(provider: Provider, requests: Sequence[ProbeRequest]) -> list[Finding]:
    """The answers that two or more requests of one event give; none while no retry has come."""
    by_key: dict[str, list[ProbeRequest]] = {}
    for request in requests:
        by_key.setdefault(request.key, []).append(request)
    found: list[Finding] = []
    for attempts in by_key.values():
        for number, (first, second) in enumerate(pairwise(attempts)):
            found += _compared(provider, number, first, second)
    return found


def _compared(
    provider: Provider, number: int, first: ProbeRequest, second: ProbeRequest
) -> list[Finding]:
    gap_s = (second.received_at - first.received_at) / 1000
    schedule = provider.retry_schedule_s
    due_s = schedule[number] if number < len(schedule) else None
    renewed = first.signed_at != second.signed_at
    signs = provider.signed_time is not SignedTime.NONE
    changed = _changed_headers(dict(first.headers), dict(second.headers))
    same_body = hashlib.sha256(first.body).digest() == hashlib.sha256(second.body).digest()
    return [
        Finding(
            question="time until the next attempt",
            found=f"{gap_s:.1f} s",
            declared="unknown" if due_s is None else f"{due_s} s",
            agrees=None if due_s is None else abs(gap_s - due_s) <= max(5.0, due_s * 0.25),
        ),
        Finding(
            question="signed time on the retry",
            found="renewed" if renewed else "the same",
            declared=provider.signed_time.value,
            agrees=(provider.signed_time is SignedTime.ATTEMPT) == renewed if signs else None,
        ),
        Finding(
            question="event id on the retry",
            found="the same",  # it is how the retry was recognised
            declared=provider.key_kind.value,
            agrees=True,
        ),
        Finding(
            question="body on the retry",
            found="the same bytes" if same_body else "changed",
            declared="unknown",
            agrees=None,
        ),
        Finding(
            question="headers that changed",
            found=", ".join(changed) or "none",
            declared="unknown",
            agrees=None,
        ),
    ]


def _changed_headers(first: Mapping[str, str], second: Mapping[str, str]) -> list[str]:
    names = sorted(first.keys() | second.keys())
    return [name for name in names if first.get(name) != second.get(name)]
