"""Boxes for the answers benchmark: one that suppresses a million addresses, one with a million
events behind it, one with work to do.

All are filled by the store's own functions, so whatever the schema is, it is the real one.
"""

import hashlib
import json
import random
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from hookbox.flows.settlement import Done, Settlement, settle
from hookbox.model import Kind, Notification, SplitEvent, Via
from hookbox.rules.suppression import Budget, Cause
from hookbox.store import admissions, database, jobs, sources, suppressions
from hookbox.store.admissions import Ids
from hookbox.store.connections import Transaction
from hookbox.store.decisions import Verb, Word
from hookbox.store.jobs import Lease
from hookbox.store.ledger import Applied
from hookbox.store.proposals import DeliveryRow, Proposal
from hookbox.store.suppressions import Wanted

CHUNK = 10_000

# What a shop's mail comes to, roughly; soft bounces and complaints rather more often than they are.
KINDS = (
    *(("email.sent", None),) * 10,
    *(("email.delivered", None),) * 66,
    *(("email.opened", None),) * 10,
    *(("email.bounced", "Permanent"),) * 5,
    *(("email.bounced", "Transient"),) * 7,
    *(("email.complained", None),) * 2,
)
RECIPIENTS = 60_000
MESSAGES_PER_EVENT = 0.5


def address(number: int) -> str:
    """The address of that number; those of the suppressed box are 0 to its size."""
    return f"user{number}.{number * 7919 % 99_991}@example{number % 300}.com"


def suppressed_state(cache: Path, size: int) -> Path:
    """A state folder in which so many addresses are suppressed, kept for the next time."""
    folder = cache / f"suppressed-{size}-{_schema()}"
    if folder.exists():
        return folder
    print(f"suppressing {size} addresses ...", file=sys.stderr)
    made = _empty(cache / "suppressed-new")
    word = Word(who="bench", reason="a stock", at=1_700_000_000_000)
    with database.exclusive(made) as run:
        for start in range(0, size, CHUNK):
            run(lambda t, start=start: suppressions.add(t, _wanted(start), Verb.IMPORT, word))
    made.rename(folder)
    return folder


def backlog_state(folder: Path, size: int, *, ago_s: float = 0) -> Path:
    """A state folder with so many events, received so long ago, that nobody has worked on yet."""
    made = _empty(folder)
    chance = random.Random(7)
    with database.exclusive(made) as run:
        source_id = run(lambda t: sources.remember(t, {"std": "standardwebhooks"}))["std"]
        for start in range(0, size, CHUNK):
            proposals = list(_proposals(source_id, start, size, chance, ago_s))
            run(lambda t, proposals=proposals: _admit(t, proposals))
    return made


def applied_state(cache: Path, size: int) -> Path:
    """A state folder with so many applied events, kept for the next time."""
    folder = cache / f"applied-{size}-{_schema()}"
    if folder.exists():
        return folder
    print(f"applying {size} events ...", file=sys.stderr)
    made = backlog_state(cache / "applied-new", size)
    with database.exclusive(made) as run:
        for token in range(1, -(-size // CHUNK) + 1):
            run(lambda t, token=token: _apply(t, Lease(instance=0, token=token)))
    made.rename(folder)
    return folder


def _apply(transaction: Transaction, lease: Lease) -> None:
    now = round(time.time() * 1000)
    claimed = jobs.claim(transaction, jobs.APPLY, lease, now=now, horizon=now, limit=CHUNK)
    done = [Done(job=job, applied=_said(job.event_id), onward=()) for job in claimed]
    settle(transaction, Settlement(lease, applied=done), now, Budget())


def _said(event_id: int) -> Applied:
    kind = Kind.COMPLAINED if event_id % 50 == 0 else Kind.DELIVERED
    told = Notification(
        kind=kind,
        recipient=address(event_id % RECIPIENTS),
        message_id=f"{event_id:032x}",
        occurred_at=1_700_000_000_000 + event_id,
    )
    return Applied(event_id=event_id, source_id=1, notifications=(told,))


def _empty(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700, parents=True)
    return folder


def _schema() -> str:
    """Tells a stock of another schema from ours."""
    from hookbox.store import schema

    text = "".join(sql for _, sql in schema.migrations())
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _wanted(start: int) -> list[Wanted]:
    return [
        Wanted(address=address(number), cause=Cause.IMPORTED, since=1_700_000_000_000)
        for number in range(start, start + CHUNK)
    ]


def _admit(transaction: Transaction, proposals: list[Proposal]) -> None:

    admissions.admit(transaction, proposals, Ids(), round(time.time() * 1000))


def _proposals(
    source_id: int, start: int, size: int, chance: random.Random, ago_s: float
) -> Iterator[Proposal]:
    for number in range(start, min(start + CHUNK, size)):
        kind, bounce = KINDS[chance.randrange(len(KINDS))]
        message = chance.randrange(int(size * MESSAGES_PER_EVENT))
        body = _body(number, kind, bounce, message)
        delivery = DeliveryRow(
            source_id=source_id,
            received_at=round((time.time() - ago_s) * 1000),
            signed_at=None,
            via=Via.WEBHOOK,
            verified_by="current",
            remote="192.0.2.7",
            headers="{}",
            body=body,
        )
        event = SplitEvent(
            key=f"msg_{number:012d}", digest=hashlib.sha256(body).digest(), raw_kind=kind
        )
        yield Proposal(delivery=delivery, events=(event,))


def _body(number: int, kind: str, bounce: str | None, message: int) -> bytes:
    facts = {
        "email_id": f"{message:032x}",
        "to": [address(message % RECIPIENTS)],
        "from": "orders@shop.example",
        "subject": f"Your order {number} has shipped",
        "tags": {"campaign": "spring", "tier": "gold"},
        "smtp": {"code": 250, "message": "2.0.0 OK queued"},
        "note": "x" * 250,
    }
    if bounce is not None:
        facts["bounce"] = {"type": bounce}
    told = {"type": kind, "timestamp": "2026-03-01T12:00:00.000Z", "data": facts}
    return json.dumps(told).encode()
