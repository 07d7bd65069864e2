"""Listening sockets: bound from a setting, or inherited from the service manager.

Owns nothing afterwards: whoever asks for a socket closes it.
"""

import errno
import os
import socket
import stat
from collections.abc import MutableMapping
from pathlib import Path

from hookbox.errors import ConfigError, HookboxError

# Callers that the kernel lets wait while we are busy or being replaced: a restart of two seconds
# under 500 new connections a second. The kernel cuts it down to its own somaxconn.
BACKLOG = 1_024

# Where the service manager puts the first socket it hands over.
_FIRST_INHERITED = 3


def bind(listen: str) -> socket.socket:
    """A listening socket for `host:port`, `[v6]:port` or `unix:/path`."""
    if listen.startswith("unix:"):
        return _bind_path(Path(listen.removeprefix("unix:")))
    host, colon, port = listen.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not (port.isascii() and port.isdigit()) or int(port) > 65_535:
        raise ConfigError(
            f"cannot listen on `{listen}`",
            mend='write "127.0.0.1:8080", "[::1]:8080" or "unix:/run/hookbox/hooks.sock"',
        )
    return _bind_port(host, int(port))


def inherited_sockets(environ: MutableMapping[str, str] = os.environ) -> list[socket.socket]:
    """The listening sockets that the service manager opened for this very process, in its order.

    The variables that announce them are removed, so that no child takes them for its own.
    """
    for_pid = environ.pop("LISTEN_PID", "")
    count = environ.pop("LISTEN_FDS", "")
    environ.pop("LISTEN_FDNAMES", None)
    if for_pid != str(os.getpid()) or not count.isdigit():
        return []
    return [_inherit(number) for number in range(_FIRST_INHERITED, _FIRST_INHERITED + int(count))]


def _inherit(number: int) -> socket.socket:
    os.set_inheritable(number, False)
    inherited = socket.socket(fileno=number)
    if inherited.type != socket.SOCK_STREAM:
        raise HookboxError(
            f"the service manager handed over a socket that is no stream (number {number});"
            " use ListenStream= in hookbox.socket"
        )
    return _without_delay(inherited)


def _bind_port(host: str, port: int) -> socket.socket:
    try:
        family, *_, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        # SO_REUSEADDR is set inside: a restart need not wait until old connections are forgotten.
        bound = socket.create_server(
            address[:2],
            family=family,
            backlog=BACKLOG,
            dualstack_ipv6=host == "::" and socket.has_dualstack_ipv6(),
        )
    except socket.gaierror as error:
        raise HookboxError(f"cannot listen on {host}: no such address here") from error
    except OSError as error:
        raise HookboxError(_why_not(f"{host}:{port}", error)) from error
    return _without_delay(bound)


def _without_delay(bound: socket.socket) -> socket.socket:
    """Connections get it from their listener. asyncio sets it only on sockets that name TCP as
    their protocol, which these do not, and an answer in two writes would wait 40 ms for the ACK
    of the first.
    """
    if bound.family in (socket.AF_INET, socket.AF_INET6):
        bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return bound


def _bind_path(path: Path) -> socket.socket:
    _remove_stale(path)
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    # Only the mask gives the file its mode in the moment it appears; a later chmod leaves a gap.
    mask = os.umask(0o177)
    try:
        bound.bind(str(path))
        bound.listen(BACKLOG)
    except OSError as error:
        bound.close()
        raise HookboxError(_why_not(str(path), error)) from error
    finally:
        os.umask(mask)
    return bound


def _remove_stale(path: Path) -> None:
    """Remove the socket that a program left behind; never another kind of file, nor a live one."""
    try:
        kind = path.lstat().st_mode
    except OSError:
        return  # nothing there, or nothing to be seen: bind says what is wrong
    if not stat.S_ISSOCK(kind):
        raise HookboxError(f"cannot listen on {path}: there is a file that is no socket. Move it.")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink(missing_ok=True)
            return
        except OSError as error:
            raise HookboxError(_why_not(str(path), error)) from error
    raise HookboxError(_why_not(str(path), OSError(errno.EADDRINUSE, "")))


def _why_not(where: str, error: OSError) -> str:
    reasons = {
        errno.EADDRINUSE: "another program listens there. Stop it, or set another `listen`.",
        errno.EADDRNOTAVAIL: "this machine does not have that address. `ip address` lists its own.",
        errno.EACCES: "no permission. Take a port above 1023, or a directory of your own.",
        errno.ENOENT: "the directory does not exist. Create it first.",
    }
    reason = reasons.get(error.errno or 0, error.strerror or str(error))
    return f"cannot listen on {where}: {reason}"
