"""One claim on an effect, from the command's side: asked for, renewed, completed or given up.

It outlasts a restart of the server: what gets no answer is asked again, with the same token, so
that asking twice is asking once.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass

from hookbox.cli import door
from hookbox.cli.box import Box
from hookbox.errors import Overloaded, StoreError
from hookbox.rules.effects import Answer, Claim
from hookbox.store import effects
from hookbox.store.connections import Transaction

PAUSES_S = (0.02, 0.1)  # between two tries, at random: many commands may be after one lock
CLAIM_PATIENCE_S = 10.0  # a server's restart takes less
COMPLETE_PATIENCE_S = 60.0  # what has happened had better be written down

Work = Callable[[Transaction], Answer]


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """Claims, and holds what it won."""

    box: Box
    claim: Claim

    def win(self) -> door.Fields:
        """The answer to the claim. Raises StoreError when there is none within the patience."""
        claim = self.claim
        asked = {
            "do": "claim",
            "who": claim.who,
            "lease": f"{claim.lease_ms // 1000}s",
            "if_unknown": claim.if_unknown,
        }
        return self._ask(asked, lambda t: effects.claim(t, claim, self._now), CLAIM_PATIENCE_S)

    def renew(self) -> door.Fields:
        """Asked once; the next renewal comes before the lease is over."""
        key, token = self.claim.key, self.claim.token
        return self._ask({"do": "renew"}, lambda t: effects.renew(t, key, token, self._now), 0)

    def complete(self, result: str) -> door.Fields:
        """The effect has happened."""
        key, token = self.claim.key, self.claim.token
        return self._ask(
            {"do": "complete", "result": result},
            lambda t: effects.complete(t, key, token, result, self._now),
            COMPLETE_PATIENCE_S,
        )

    def abandon(self) -> door.Fields:
        """The effect has not happened."""
        key, token = self.claim.key, self.claim.token
        return self._ask(
            {"do": "abandon"}, lambda t: effects.abandon(t, key, token), COMPLETE_PATIENCE_S
        )

    @property
    def _now(self) -> int:
        return self.box.clock.now()

    def _ask(self, asked: door.Fields, work: Work, patience_s: float) -> door.Fields:
        fields = {"key": self.claim.key, "token": self.claim.token, **asked}

        def offline(transaction: Transaction) -> door.Fields:
            return effects.line(self.claim.key, work(transaction))

        deadline = self.box.clock.monotonic() + patience_s
        while True:
            try:
                return door.change(self.box, "effects.act", fields, offline)
            except (StoreError, Overloaded):
                if self.box.clock.monotonic() >= deadline:
                    raise
            self.box.pause(random.uniform(*PAUSES_S))  # noqa: S311  (no secret)
