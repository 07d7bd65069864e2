"""Simulate: correctly signed requests that the box sends itself, through the real HTTP path.

The server makes the request, since only it holds the live secrets; the command sends it. The box
remembers what it made, so that the event is marked as simulated whatever headers a stranger may
send.
"""

import hashlib
import secrets
from collections import OrderedDict

from hookbox.clock import Clock
from hookbox.errors import OperatorError
from hookbox.flows.signer import local_signer
from hookbox.flows.sources import Source
from hookbox.model import Kind, Via
from hookbox.providers.contract import Signed, Simulation
from hookbox.rules.addresses import bare

REMEMBERED_MAX = 1_000  # a command sends what it was given at once; older ones were never sent


class Simulations:
    """The requests that were made and have not come in yet."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._expected: OrderedDict[tuple[str, bytes], None] = OrderedDict()

    def make(self, source: Source, kind: Kind, to: str, secret: str) -> Signed:
        """A request as the source's sender would sign it. Raises OperatorError when it cannot be
        made.
        """
        provider = source.provider
        if provider.simulate is None:
            raise OperatorError(
                f"{provider.title} cannot be simulated: only the sender holds its private key"
            )
        if not secret and provider.needs_secret:
            raise OperatorError(
                f"source {source.name} has no secret yet; set one with: "
                f"hookbox secret set {source.name}"
            )
        if bare(to) is None:
            raise OperatorError(f"{to!r} is not an address; write one like someone@example.com")
        if kind not in provider.kinds:
            known = ", ".join(sorted(provider.kinds))
            raise OperatorError(
                f"{provider.title} has no event for {kind.value!r}; it has: {known}"
            )
        directory = provider.certificates
        signed = provider.simulate(
            Simulation(
                kind=kind,
                to=to,
                secret=secret,
                id=f"sim_{secrets.token_hex(8)}",
                now=self._clock.now(),
                signing_key=local_signer(directory) if directory else "",
            )
        )
        self._expected[source.name, hashlib.sha256(signed.body).digest()] = None
        while len(self._expected) > REMEMBERED_MAX:
            self._expected.popitem(last=False)
        return signed

    def via(self, source: str, body: bytes) -> Via:
        """Whether this body is one of ours. Costs nothing while none is expected."""
        if not self._expected:
            return Via.WEBHOOK
        place = (source, hashlib.sha256(body).digest())
        if place not in self._expected:
            return Via.WEBHOOK
        del self._expected[place]
        return Via.SIMULATE
