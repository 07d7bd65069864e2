"""`hookbox serve`: the runtime behind its doors, from the first signal to the last.

Order: runtime first (nobody is told "stored" before the database is open), then the private door,
then the public one. On SIGTERM the public door closes first and politely; what was acknowledged is
already on disk. The private one closes when nothing is under way any more.
"""

import asyncio
import contextlib
import logging
import signal
import socket
from collections.abc import Callable
from pathlib import Path

from hookbox.clock import SystemClock
from hookbox.errors import ConfigError, HookboxError
from hookbox.runtime import Runtime
from hookbox.settings import Settings
from hookbox.store.state import SOCKET_NAME
from hookbox.web.connections import Limits
from hookbox.web.hooks import public_app
from hookbox.web.local import local_app
from hookbox.web.serving import Door
from hookbox.web.sockets import bind, inherited_sockets
from hookbox.web.supervisor import READY, STOPPING, Supervisor

log = logging.getLogger("hookbox.serve")

# For requests that are being answered at the public and the private door. With the runtime's own
# grace between them the whole stop stays under 10 s.
GRACE_S = 4.0
PRIVATE_GRACE_S = 1.0
# The private door serves one person and a few programs on this machine. Some of them wait half a
# minute for events.
LOCAL_LIMITS = Limits(
    connections_max=50, held_bytes_max=8 * 1024 * 1024, answer_s=45.0, half_closed=False
)

Load = Callable[[], Settings]


def serve(settings: Settings, load: Load) -> int:
    """Serve until SIGTERM or SIGINT; SIGHUP takes `load()` live. The exit code. Raises
    HookboxError.
    """
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(_Serving(settings, load).run())


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop's where it has a wheel: a request costs a tenth less than on asyncio's own loop."""
    try:
        from uvloop import new_event_loop
    except ModuleNotFoundError:
        return None
    return new_event_loop


class _Serving:
    """One run of the box."""

    def __init__(self, settings: Settings, load: Load) -> None:
        self._settings = settings
        clock = SystemClock()
        self._runtime = Runtime(settings, clock, load)
        self._supervisor = Supervisor(clock)
        self._watching: asyncio.Task[None] | None = None
        self._doors: list[Door] = []
        self._public: Door
        self._sockets: list[socket.socket] = []
        self._paths: dict[socket.socket, Path] = {}
        self._stop = asyncio.Event()
        self._reload = asyncio.Event()

    async def run(self) -> int:
        """Start, wait for signals, stop. A signal that comes while starting stops as soon as that
        is safe.
        """
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop.set)
        loop.add_signal_handler(signal.SIGHUP, self._reload.set)
        loop.add_signal_handler(signal.SIGUSR1, self._runtime.pollers.wake_all)
        try:
            await self._runtime.start()
            await self._open()
            self._watching = asyncio.create_task(
                self._supervisor.watch(self._runtime.heartbeat.beat)
            )
            self._supervisor.tell(READY)
            await self._wait()
        finally:
            await self._close()
        return 1 if self._runtime.broken.is_set() else 0

    async def _open(self) -> None:
        settings = self._settings
        private = [self._bound(f"unix:{settings.state / SOCKET_NAME}")]
        if settings.local.listen is not None:
            private.append(self._bound(settings.local.listen.text))
        await self._start(Door(local_app(self._runtime), private, LOCAL_LIMITS))
        public = inherited_sockets() or [self._bound(each.text) for each in settings.server.listen]
        self._public = Door(public_app(self._runtime), public, self._limits())
        await self._start(self._public)
        self._runtime.public_at = _listen(public[0])
        names = ", ".join(source.name for source in self._runtime.sources.all()) or "none"
        places = " ".join(_shown(each) for each in public)
        log.info("serving listen=%s sources=%s", places, names)

    def _limits(self) -> Limits:
        """The public door's, with room for the largest body that any source takes."""
        largest = max(
            (source.body_max for source in self._runtime.sources.all()),
            default=self._settings.server.body_max,
        )
        return Limits(
            body_bytes_max=largest, held_bytes_max=max(Limits().held_bytes_max, 2 * largest)
        )

    def _bound(self, listen: str) -> socket.socket:
        made = bind(listen)
        self._sockets.append(made)
        if listen.startswith("unix:"):
            self._paths[made] = Path(listen.removeprefix("unix:"))
        return made

    async def _start(self, door: Door) -> None:
        await door.start()
        self._doors.append(door)

    async def _wait(self) -> None:
        """Until a signal says stop; reloads happen here, one after the other."""
        broken = self._runtime.broken
        while not self._stop.is_set() and not broken.is_set():
            signs = (self._stop, self._reload, broken)
            waits = {asyncio.create_task(sign.wait()) for sign in signs}
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for wait in waits:
                wait.cancel()
            if self._reload.is_set():
                self._reload.clear()
                self._supervisor.reloading()
                await self._take_live()
                self._supervisor.tell(READY)

    async def _take_live(self) -> None:
        """A bad new configuration leaves the old one running, and says so."""
        try:
            await self._runtime.reload()
        except ConfigError as error:
            log.error("configuration refused, the old one goes on error=%s", error)
        except HookboxError as error:
            log.error("reload failed, the old configuration goes on error=%s", error)
        except Exception:  # whatever it was, the running box is worth more than the new file
            log.exception("reload failed, the old configuration goes on")
        else:
            self._public.registry.limits = self._limits()

    async def _close(self) -> None:
        if self._doors:
            log.info("stopping")
            self._runtime.feed.end()
        self._supervisor.tell(STOPPING)
        private, *public = self._doors or (None,)
        for door in public:
            await door.stop(GRACE_S)
        await self._runtime.settle()  # programs that are brought events may still ask and tell
        if private is not None:
            await private.stop(PRIVATE_GRACE_S)
        for each in self._sockets:
            each.close()
            self._remove(each)
        if self._watching is not None:
            self._watching.cancel()
        await self._runtime.stop()

    def _remove(self, bound: socket.socket) -> None:
        """Socket files go while the lock is held: after that they may be the next server's."""
        if bound in self._paths:
            with contextlib.suppress(FileNotFoundError):
                self._paths.pop(bound).unlink()


def _shown(bound: socket.socket) -> str:
    listen = _listen(bound)
    return listen if listen.startswith("unix:") else f"http://{listen}/hooks/NAME"


def _listen(bound: socket.socket) -> str:
    """A socket's own address as settings write it; it may be inherited, or on any free port."""
    name = bound.getsockname()
    if isinstance(name, tuple):
        host = f"[{name[0]}]" if ":" in name[0] else name[0]
        return f"{host}:{name[1]}"
    return f"unix:{name}"
