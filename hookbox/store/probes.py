"""Probes: what a sender really does after an answer that says "our fault"."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from hookbox.errors import OperatorError
from hookbox.store.connections import Row, Transaction

START = """
INSERT INTO probe (source_id, started_at, ends_at, failures)
VALUES (:source_id, :now, :ends_at, :failures)
ON CONFLICT DO NOTHING
RETURNING id
"""
RECORD = """
INSERT INTO probe_request
  (probe_id, number, key, received_at, signed_at, answered, headers, body)
SELECT :probe_id, coalesce(max(number), 0) + 1, :key, :received_at, :signed_at, :answered, :headers,
  :body
FROM probe_request WHERE probe_id = :probe_id
"""
END = "UPDATE probe SET ended_at = :now, outcome = :outcome WHERE id = :id AND ended_at IS NULL"
PROBES = """
SELECT p.id, p.source_id, s.name AS source, p.started_at, p.ends_at, p.failures, p.ended_at,
  p.outcome
FROM probe AS p JOIN source AS s ON s.id = p.source_id
"""
ACTIVE = PROBES + "WHERE p.ended_at IS NULL"
LATEST = PROBES + "WHERE s.name = :source ORDER BY p.id DESC LIMIT 1"
REQUESTS = """
SELECT number, key, received_at, signed_at, answered, headers, body
FROM probe_request WHERE probe_id = :id ORDER BY number
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeRow:
    """One probe. It ends by itself: at `ends_at`, or when every failed delivery came again."""

    id: int
    source_id: int
    source: str
    started_at: int
    ends_at: int
    failures: int
    ended_at: int | None
    outcome: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeRequest:
    """One request that the probe kept, and how it was answered (`busy` or `ok`)."""

    number: int
    key: str
    received_at: int
    signed_at: int | None
    answered: str
    headers: Sequence[tuple[str, str]]
    body: bytes


def start(
    transaction: Transaction, source_id: int, *, failures: int, now: int, ends_at: int
) -> int:
    """The new probe's id. Raises OperatorError when one is under way for this source."""
    place = {"source_id": source_id, "failures": failures, "now": now, "ends_at": ends_at}
    made = transaction.execute(START, place).fetchone()
    if made is None:
        raise OperatorError(
            "a probe of this source is under way; see: hookbox probe SOURCE --show, "
            "or end it with: hookbox probe SOURCE --stop"
        )
    return int(made["id"])


def record(transaction: Transaction, probe_id: int, request: ProbeRequest) -> None:
    """Keep one request; its number is given here."""
    transaction.execute(
        RECORD,
        {
            "probe_id": probe_id,
            "key": request.key,
            "received_at": request.received_at,
            "signed_at": request.signed_at,
            "answered": request.answered,
            "headers": json.dumps(request.headers),
            "body": request.body,
        },
    )


def end(transaction: Transaction, probe_id: int, outcome: str, now: int) -> None:
    """The probe is over."""
    transaction.execute(END, {"id": probe_id, "outcome": outcome, "now": now})


def active(transaction: Transaction) -> list[ProbeRow]:
    """Those under way."""
    return [_row(row) for row in transaction.execute(ACTIVE)]


def latest(transaction: Transaction, source: str) -> ProbeRow | None:
    """The last one of a source, over or not."""
    row = transaction.execute(LATEST, {"source": source}).fetchone()
    return None if row is None else _row(row)


def requests(transaction: Transaction, probe_id: int) -> list[ProbeRequest]:
    """What it kept, in the order of arrival."""
    return [
        ProbeRequest(
            number=row["number"],
            key=row["key"],
            received_at=row["received_at"],
            signed_at=row["signed_at"],
            answered=row["answered"],
            headers=[(name, value) for name, value in json.loads(row["headers"])],
            body=row["body"],
        )
        for row in transaction.execute(REQUESTS, {"id": probe_id})
    ]


def _row(row: Row) -> ProbeRow:
    return ProbeRow(**{name: row[name] for name in row.keys()})  # noqa: SIM118  (a Row is no dict)
