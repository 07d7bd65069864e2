"""Control: what a person at the private door can have the running box do."""

from functools import partial

from hookbox import assembly
from hookbox.errors import OperatorError
from hookbox.flows.release import release
from hookbox.flows.sources import Source
from hookbox.model import Kind, Slot
from hookbox.providers.contract import Provider, Signed
from hookbox.runtime import Runtime
from hookbox.store import bearer, secrets


class Control:
    """Acts on a runtime. Each call is one change, made whole or refused."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    async def set_secret(self, owner: str, text: str, *, rotate: bool) -> None:
        """Set the current secret of a source or a destination; with `rotate` the old one stays
        valid as the previous one.
        """
        settings = self._runtime.settings
        owners = {secrets.source_owner(each.name) for each in settings.sources}
        owners |= {secrets.destination_owner(each.name) for each in settings.destinations}
        if owner not in owners:
            raise OperatorError(f"the running server knows no {owner}; see: hookbox check")
        sealed, now = self._runtime.seal.close(text), self._runtime.clock.now()
        if rotate:
            await self._runtime.adopt(lambda t: secrets.rotate(t, owner, sealed, now))
        else:
            await self._runtime.adopt(lambda t: secrets.put(t, owner, Slot.CURRENT, sealed, now))

    def renew_token(self) -> None:
        """From now on the private port asks for another token."""
        self._runtime.token = bearer.renew(self._runtime.settings.state)

    async def drop_secret(self, owner: str, slot: Slot) -> None:
        """Forget one slot of a source or a destination."""
        await self._runtime.adopt(lambda t: secrets.drop(t, owner, slot))

    async def simulate(self, name: str, kind: Kind, to: str) -> Signed:
        """A correctly signed request of this source, for whoever asked to send. Raises
        OperatorError.
        """
        source = self._source(name)
        chosen = next(each for each in self._runtime.settings.sources if each.name == name)
        sealed = await self._runtime.writer.write(
            partial(assembly.open_secrets, seal=self._runtime.seal, names={name: ""})
        )
        text = assembly.secret_text(chosen, sealed.get(name, {}))
        return self._runtime.simulations.make(source, kind, to, text)

    async def probe(self, name: str, failures: int) -> None:
        """Begin to probe a source; with 0 failures, end it. Raises OperatorError."""
        source = self._source(name)
        await (
            self._runtime.probes.start(source, failures)
            if failures
            else self._runtime.probes.stop(source)
        )

    async def accept_quarantined(self, entry_id: int, *, unread: bool) -> str:
        """Let a quarantined thing through; what became of it, for a person."""

        def provider_of(name: str) -> Provider | None:
            source = self._runtime.sources.get(name)
            return None if source is None else source.provider

        now = self._runtime.clock.now()
        told = await self._runtime.writer.write(
            lambda t: release(t, entry_id, provider_of, now, unread=unread)
        )
        self._runtime.worker.wake()
        return told

    def _source(self, name: str) -> Source:
        source = self._runtime.sources.get(name)
        if source is None:
            raise OperatorError(f"no source is called {name!r}; see: hookbox source list")
        return source
