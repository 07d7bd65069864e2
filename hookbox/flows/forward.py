"""Forward: an applied event is brought to a destination, one attempt at a time."""

import json
from dataclasses import dataclass, field

from hookbox.clock import Clock
from hookbox.destinations.contract import Destination
from hookbox.flows.lane import Lane
from hookbox.flows.routes import Route
from hookbox.model import Attempt, Parcel
from hookbox.store.documents import Document, documents
from hookbox.store.forwarding import target_of
from hookbox.store.jobs import Job

# 10 s, 1 min, 5 min, 30 min, 2 h, 6 h, 12 h: the eighth try comes 20 h 36 min after the first.
SCHEDULE_S = (10.0, 60.0, 300.0, 1_800.0, 7_200.0, 21_600.0, 43_200.0)
# What the sender's redeliveries change between two attempts.
CHANGING = ("state", "duplicates", "last_duplicate_at")
FAILURES_MAX = 10  # in a row, before a destination is left alone for a while


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlet:
    """A live destination: what it wants, how it is brought there, and when it is tried again.

    `fingerprint` tells one configuration of it from another.
    """

    name: str
    route: Route
    destination: Destination = field(repr=False)
    schedule_s: tuple[float, ...] = SCHEDULE_S
    concurrency: int = 1
    failures_max: int = FAILURES_MAX
    fingerprint: str = ""


def lane(outlet: Outlet, clock: Clock) -> Lane[Document]:
    """The lane that brings parcels to a destination."""

    async def attempt(document: Document, job: Job) -> Attempt:
        return await outlet.destination.deliver(parcel(document, job, clock.now()))

    return Lane(
        target=target_of(outlet.name),
        read=documents,
        attempt=attempt,
        schedule_s=outlet.schedule_s,
        concurrency=outlet.concurrency,
        failures_max=outlet.failures_max,
        fingerprint=outlet.fingerprint,
        close=outlet.destination.close,
    )


def parcel(document: Document, job: Job, now: int) -> Parcel:
    """The event as it is brought. Its body is the same in every attempt of a job."""
    told = {name: value for name, value in document.items() if name not in CHANGING}
    body = json.dumps({**told, "replay": job.replay}, ensure_ascii=False)
    return Parcel(
        event_id=job.event_id,
        replay=job.replay,
        attempt=job.attempts + 1,
        sent_at=now,
        source=document["source"],
        kind=document["kind"],
        recipient=document["recipient"],
        message_id=document["message_id"],
        body=body.encode(),
    )
