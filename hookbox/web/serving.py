"""Opening and closing a door: an ASGI app served on sockets that are already bound.

Owns how uvicorn is set up. Leaves signals, logging and the choice of event loop to the caller, and
never opens a socket that it was not given. `sockets.py` binds them.
"""

import asyncio
import contextlib
import logging
import math
import socket
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import cast

import uvicorn

from hookbox.web.connections import Limits, Registry
from hookbox.web.sockets import BACKLOG

App = Callable[..., Awaitable[None]]
ProtocolFactory = Callable[..., asyncio.Protocol]

# How many connections the loop takes from the kernel in one turn. Evicted ones give their file
# descriptors back only in the next turn, so this many may be open on top of the cap.
_ACCEPTED_A_TURN = 100

logger = logging.getLogger(__name__)


class _Server(uvicorn.Server):
    """uvicorn's server without its signal handlers, and with word of the moment when it accepts."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.accepting = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for bound in sockets or ():
            bound.listen(BACKLOG)  # asyncio has shortened the kernel's queue to its own turn
        self.accepting.set()


class Door:
    """One app on its sockets, from `start` to `stop`. Its `registry` has the counters."""

    def __init__(
        self, app: App, sockets: Sequence[socket.socket], limits: Limits | None = None
    ) -> None:
        self.registry = Registry(limits or Limits())
        self._app = app
        self._sockets = list(sockets)
        self._server: _Server | None = None
        self._serving: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Serve; returns as soon as connections are accepted."""
        self._server = server = _Server(_config(self._app, self.registry))
        self._serving = serving = asyncio.create_task(server.serve(self._sockets))
        accepting = asyncio.create_task(server.accepting.wait())
        await asyncio.wait({serving, accepting}, return_when=asyncio.FIRST_COMPLETED)
        if serving.done():
            accepting.cancel()
            await serving  # raises what kept it from starting

    async def stop(self, grace_s: float) -> None:
        """Accept nobody new, let everybody be answered, cut off who is not done after the grace.

        Callers still in the kernel's queue stay there when somebody else, such as the service
        manager, holds the socket too; else they are refused. Whoever is cut off hears nothing and
        comes back. Nothing in the app is cancelled: what it does, it finishes without a listener.
        """
        if self._server is None or self._serving is None:
            return
        self.registry.draining = True
        self._server.should_exit = True
        await asyncio.wait({self._serving}, timeout=grace_s)
        self._server.force_exit = True
        self.registry.evict_all()
        await self._serving


def protocol_for(registry: Registry) -> ProtocolFactory:
    """The guarded protocol bound to this registry, or h11's own where httptools has no wheel."""
    try:
        from hookbox.web.protocol import GuardedProtocol
    except ModuleNotFoundError as error:
        if error.name != "httptools":
            raise
        from uvicorn.protocols.http.h11_impl import H11Protocol

        logger.warning(
            "httptools is not installed: this door has no receive deadlines and no eviction of"
            " slow senders, and is four times slower. Put a proxy that buffers requests in front."
        )
        return H11Protocol
    return partial(GuardedProtocol, registry)


def _config(app: App, registry: Registry) -> uvicorn.Config:
    limits = registry.limits
    protocol = protocol_for(registry)
    guarded = isinstance(protocol, partial)
    return uvicorn.Config(
        app,
        http=cast(type[asyncio.Protocol], protocol),
        ws="none",
        lifespan="off",  # the runtime starts and stops what the app needs
        interface="asgi3",
        log_config=None,
        log_level=logging.WARNING,
        access_log=False,
        proxy_headers=False,  # whom to believe is a setting of ours, not "everybody on loopback"
        server_header=False,
        backlog=_ACCEPTED_A_TURN,
        timeout_keep_alive=math.ceil(limits.idle_s),
        h11_max_incomplete_event_size=limits.head_bytes_max,
        # The guarded protocol evicts the slowest instead of turning newcomers away.
        limit_concurrency=None if guarded else limits.connections_max,
    )
