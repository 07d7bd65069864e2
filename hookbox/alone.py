"""Alone: the one part of the runtime that a command needs when no server runs.

It takes the server's place for as long as it lasts: it holds the lock, so there is still exactly
one process that writes. What it stores is applied when the server runs again.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from hookbox import assembly
from hookbox.clock import Clock
from hookbox.flows.pollers import Pollers
from hookbox.flows.sources import Sources
from hookbox.net import Net
from hookbox.settings import Settings
from hookbox.store.alone import writer_alone


@asynccontextmanager
async def pollers_alone(settings: Settings, name: str, clock: Clock) -> AsyncIterator[Pollers]:
    """The poller of one source, which asks when it is told to. Raises StoreBusy while a server
    runs, ConfigError and StoreError.
    """
    async with writer_alone(settings.state, clock) as writer:
        providers = assembly.providers_of(settings)
        ids = await writer.write(partial(assembly.remember, providers=providers, now=clock.now()))
        sources = Sources()
        sources.replace(assembly.reading_sources(settings, ids, polling=name))
        yield Pollers(writer, Net(), sources, clock, lambda: None)
