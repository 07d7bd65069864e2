"""The sources as they are live right now: replaced as a whole on reload, read by everybody."""

from collections.abc import Mapping
from dataclasses import dataclass

from hookbox.flows.polling import Polling
from hookbox.providers.contract import Provider, Trust

# The sender's patience less what the network and our own answer may take, and never past four
# seconds: the strictest senders wait five.
PATIENCE_SHARE = 0.8
PATIENCE_MAX_S = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One configured sender: its provider as configured, what to trust, and its limits.

    `scope`: the list that its suppressions go to. `suppress_ambiguous`: the operator's word that
    its events may suppress everybody they may concern. `polling`: how its own list of events is
    asked for, where it is.
    """

    name: str
    id: int
    provider: Provider
    trust: Trust
    body_max: int
    scope: str = ""
    suppress_ambiguous: bool = False
    polling: Polling | None = None

    @property
    def deadline_s(self) -> float:
        """How long the sender may be kept waiting before it is told to come back."""
        patience_s = self.provider.patience_s
        if patience_s is None:
            return PATIENCE_MAX_S
        return min(PATIENCE_MAX_S, patience_s * PATIENCE_SHARE)


class Sources:
    """Looks sources up by name. `replace` swaps all of them between two requests."""

    def __init__(self) -> None:
        self._by_name: Mapping[str, Source] = {}

    def replace(self, sources: Mapping[str, Source]) -> None:
        self._by_name = sources

    def get(self, name: str) -> Source | None:
        return self._by_name.get(name)

    def all(self) -> tuple[Source, ...]:
        return tuple(self._by_name.values())
