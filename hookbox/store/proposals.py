"""What is offered to the store: a verified delivery, whole or in chunks."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from hookbox.model import Rotten, SplitEvent, Via


@dataclass(slots=True, kw_only=True)
class DeliveryRow:
    """A delivery as it will be stored. `id` is given out when its first chunk is admitted."""

    source_id: int
    received_at: int
    signed_at: int | None
    via: Via
    verified_by: str
    remote: str
    headers: str
    body: bytes
    is_text: bool = True
    id: int = 0


@dataclass(slots=True, kw_only=True)
class Proposal:
    """One verified delivery, or a chunk of a large one, on its way into the store.

    The chunks of one delivery share `delivery`; whichever is stored first brings its row.
    """

    delivery: DeliveryRow
    events: Sequence[SplitEvent] = ()
    rotten: Sequence[Rotten] = ()
    token: str = ""

    @property
    def content_digest(self) -> bytes:
        """What its token vouches for: the event's own content where there is one."""
        if self.events:
            return self.events[0].digest
        return hashlib.sha256(self.delivery.body).digest()

    @property
    def rows(self) -> int:
        return len(self.events) + len(self.rotten)

    @property
    def bytes(self) -> int:
        """What it holds in memory."""
        own = sum(len(event.content) for event in self.events if event.content is not None)
        return len(self.delivery.body) + own + sum(len(piece.content) for piece in self.rotten)

    def pieces(self) -> list["Proposal"]:
        """Each event and each rotten piece by itself."""
        return [
            *(replace(self, events=(event,), rotten=()) for event in self.events),
            *(replace(self, events=(), rotten=(piece,)) for piece in self.rotten),
        ]

    def as_rotten(self, reason: str) -> "Proposal":
        """The bytes of its one event, to be kept although the event cannot be."""
        content = self.delivery.body
        for event in self.events:
            content = event.content or content[event.start : event.end]
        return replace(self, events=(), rotten=(Rotten(reason=reason, content=content),))
