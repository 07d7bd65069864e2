"""Routes: which events go on to which destination, and whose order they keep there."""

from collections.abc import Sequence
from dataclasses import dataclass

from hookbox.model import Kind, Notification, Order
from hookbox.rules.folding import folded
from hookbox.store.forwarding import Onward, target_of
from hookbox.store.ledger import Applied


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """What a destination wants. An empty filter wants everything.

    `domains` are recipients' domains, folded; a notification must fit all filters at once.
    """

    destination: str
    sources: frozenset[str] = frozenset()
    kinds: frozenset[Kind] = frozenset()
    domains: frozenset[str] = frozenset()
    order: Order = Order.NONE

    def wants(self, source: str, notifications: Sequence[Notification]) -> bool:
        """Whether an event goes this way."""
        if self.sources and source not in self.sources:
            return False
        return any(self._fits(each) for each in notifications)

    def _fits(self, notification: Notification) -> bool:
        if self.kinds and notification.kind not in self.kinds:
            return False
        if not self.domains:
            return True
        recipient = notification.recipient
        return recipient is not None and folded(recipient).rpartition("@")[2] in self.domains


def ways(
    routes: Sequence[Route], source: str, applied: Applied, *, again: bool
) -> tuple[Onward, ...]:
    """Where an applied event goes on to. `again`: a person wants it brought once more."""
    return tuple(
        Onward(
            event_id=applied.event_id,
            target=target_of(route.destination),
            again=again,
            things=_things(route.order, source, applied.notifications),
        )
        for route in routes
        if route.wants(source, applied.notifications)
    )


def _things(order: Order, source: str, notifications: Sequence[Notification]) -> tuple[str, ...]:
    if order is Order.SOURCE:
        return (source,)
    if order is Order.RECIPIENT:
        named = (folded(each.recipient) for each in notifications if each.recipient is not None)
        return tuple(dict.fromkeys(named))
    return ()
