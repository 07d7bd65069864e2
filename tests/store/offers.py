"""Short words for what is offered to the store."""

import hashlib

from hookbox.model import Rotten, SplitEvent, Via
from hookbox.store.proposals import DeliveryRow, Proposal


def event(key: str, content: bytes = b"{}", **changes: object) -> SplitEvent:
    fields: dict[str, object] = {
        "key": key,
        "digest": hashlib.sha256(content).digest(),
        "raw_kind": "test",
    }
    return SplitEvent(**{**fields, **changes})  # type: ignore[arg-type]


def proposal(
    *events: SplitEvent, body: bytes = b"{}", source_id: int = 1, rotten: tuple[Rotten, ...] = ()
) -> Proposal:
    row = DeliveryRow(
        source_id=source_id,
        received_at=1_700_000_000_000,
        signed_at=None,
        via=Via.WEBHOOK,
        verified_by="current",
        remote="192.0.2.1",
        headers="{}",
        body=body,
    )
    return Proposal(delivery=row, events=events, rotten=rotten)
