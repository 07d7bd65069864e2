"""Who may ask what at the private door."""

import hmac
from typing import Any

from litestar.connection import ASGIConnection
from litestar.exceptions import NotAuthorizedException
from litestar.handlers import BaseRouteHandler
from litestar.types import Guard

from hookbox.runtime import Runtime

Connection = ASGIConnection[Any, Any, Any, Any]

SCHEME = "bearer"


def by_socket(connection: Connection) -> bool:
    """Whether the caller came through the Unix socket (a TCP server address has a port)."""
    server = connection.scope.get("server")
    return server is not None and server[1] is None


def socket_only(connection: Connection, _: BaseRouteHandler) -> None:
    """Commands: whoever can open the socket is the box's own user."""
    if not by_socket(connection):
        raise NotAuthorizedException("use the hookbox command on this machine")


def with_token(runtime: Runtime) -> Guard:
    """Questions: through the socket, or with the bearer token as it is right now."""

    def guard(connection: Connection, _: BaseRouteHandler) -> None:
        if by_socket(connection):
            return
        scheme, __, shown = connection.headers.get("authorization", "").partition(" ")
        known = hmac.compare_digest(
            shown.strip().encode("utf-8", "replace"), runtime.token.encode()
        )
        if scheme.lower() != SCHEME or not known:
            raise NotAuthorizedException(
                "this needs the token that `hookbox token` prints",
                headers={"WWW-Authenticate": "Bearer"},
            )

    return guard
