"""The private door: health for the neighbours, and what commands ask of the running server.

It listens on a Unix socket in the state directory, which only the box's own user can open, and on a
loopback port. There health is for everybody, questions need the bearer token, and commands are
refused. Host is checked against DNS rebinding.
"""

import logging
import re
from typing import Any

from litestar import Litestar, Request, Response, get, post
from litestar.exceptions import HTTPException, PermissionDeniedException
from litestar.handlers import BaseRouteHandler
from litestar.types import ASGIApp, Receive, Scope, Send

from hookbox.control import Control
from hookbox.errors import HookboxError, OperatorError
from hookbox.model import Kind, Slot
from hookbox.runtime import Runtime
from hookbox.web.actions import Action, Fields
from hookbox.web.answers import answers
from hookbox.web.decisions import decision_actions, rebuild_actions
from hookbox.web.effects import effect_actions, effect_routes, routed
from hookbox.web.feed import feed_doors
from hookbox.web.guards import by_socket, socket_only
from hookbox.web.outbox import outbox_actions, replays
from hookbox.web.polling import poll_actions
from hookbox.web.retention import retention_actions

log = logging.getLogger("hookbox.local")

PATH_MAX = 128  # the longest path of this door has 30
PORT = re.compile(r":[0-9]+\Z")
LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "[::1]")


def local_app(runtime: Runtime) -> ASGIApp:
    """The application behind the Unix socket and the loopback port."""
    app = _routes(runtime)

    async def door(scope: Scope, receive: Receive, send: Send) -> None:
        """The router remembers paths that it saw; keys and strangers' long ones are not for it."""
        scope["path"] = routed(scope["path"])
        if len(scope["path"]) > PATH_MAX:
            scope["path"] = "/"
        await app(scope, receive, send)

    return door


def _routes(runtime: Runtime) -> Litestar:
    return Litestar(
        route_handlers=[
            *_health(runtime),
            _control(runtime),
            *answers(runtime),
            *feed_doors(runtime),
            replays(runtime),
            *effect_routes(runtime),
        ],
        before_request=_check_host,
        exception_handlers={
            HookboxError: _told,
            HTTPException: _plain,
            RecursionError: _too_deep,
            Exception: _broken,
        },
        openapi_config=None,
        logging_config=None,
    )


def _check_host(request: Request[Any, Any, Any]) -> None:
    """A web page may make a browser speak to loopback under the page's own name; that name is then
    in Host.
    """
    if by_socket(request):
        return
    host = PORT.sub("", request.headers.get("host", ""))
    if host not in LOOPBACK_HOSTS or request.headers.get("origin"):
        raise PermissionDeniedException("this door answers to its own name only")


def _told(_: Request[Any, Any, Any], error: HookboxError) -> Response[Fields]:
    """Errors with a sentence for whoever typed the command."""
    return Response(
        {"error": str(error), "kind": type(error).__name__},
        status_code=409 if isinstance(error, OperatorError) else 503,
    )


def _plain(_: Request[Any, Any, Any], error: HTTPException) -> Response[Fields]:
    return Response({"error": error.detail}, status_code=error.status_code, headers=error.headers)


def _too_deep(_: Request[Any, Any, Any], __: RecursionError) -> Response[Fields]:
    return Response({"error": "the JSON is nested too deeply"}, status_code=400)


def _broken(_: Request[Any, Any, Any], error: Exception) -> Response[Fields]:
    """A mistake of ours: in the log with its place, and told as one."""
    log.error("the private door failed", exc_info=error)
    told = {"error": f"the server failed: {error!r}", "kind": "HookboxError"}
    return Response(told, status_code=500)


def _health(runtime: Runtime) -> list[BaseRouteHandler]:
    @get("/healthz", sync_to_thread=False)
    def healthz() -> Fields:
        """The process is alive."""
        return {"status": "ok"}

    @get("/readyz", sync_to_thread=False)
    def readyz() -> Response[Fields]:
        """The box can store what it receives."""
        trouble = runtime.writer.trouble or runtime.writer.failing
        ready = runtime.ready and trouble is None
        told = (
            {"status": "ready"}
            if ready
            else {"status": "not ready", "reason": str(trouble or "stopping")}
        )
        return Response(told, status_code=200 if ready else 503)

    return [healthz, readyz]


def _control(runtime: Runtime) -> BaseRouteHandler:
    actions: dict[str, Action] = {
        **_actions(runtime),
        **decision_actions(runtime),
        **rebuild_actions(runtime),
        **outbox_actions(runtime),
        **effect_actions(runtime),
        **poll_actions(runtime),
        **retention_actions(runtime),
    }

    @post("/v1/control/{action:str}", guards=[socket_only], status_code=200)
    async def control(action: str, data: Fields) -> Fields:
        """What one command asks for."""
        if action not in actions:
            raise OperatorError(
                f"this server does not know {action!r}; is the command of another version?"
            )
        try:
            return await actions[action](data)
        except (KeyError, TypeError, ValueError) as error:
            raise OperatorError(
                f"{action} was asked in a way it does not know: {error!r}"
            ) from error

    return control


def _actions(runtime: Runtime) -> dict[str, Action]:
    control = Control(runtime)

    async def flush(_: Fields) -> Fields:
        await runtime.tally.flush()
        return {}

    async def set_secret(fields: Fields) -> Fields:
        await control.set_secret(fields["owner"], fields["text"], rotate=bool(fields["rotate"]))
        return {}

    async def drop_secret(fields: Fields) -> Fields:
        await control.drop_secret(fields["owner"], Slot(fields["slot"]))
        return {}

    async def simulate(fields: Fields) -> Fields:
        signed = await control.simulate(fields["source"], Kind(fields["kind"]), fields["to"])
        return {
            "headers": list(signed.headers),
            "body": signed.body.decode("latin-1"),
            "key": signed.key,
            "listen": runtime.public_at,
        }

    async def probe(fields: Fields) -> Fields:
        await control.probe(str(fields["source"]), int(fields["failures"]))
        return {}

    async def accept(fields: Fields) -> Fields:
        unread = bool(fields.get("unread"))
        return {"told": await control.accept_quarantined(int(fields["id"]), unread=unread)}

    async def discard(fields: Fields) -> Fields:
        await runtime.decisions.discard(int(fields["id"]), str(fields["reason"]))
        return {}

    async def reload(_: Fields) -> Fields:
        await runtime.reload()
        return {}

    return {
        "flush": flush,
        "reload": reload,
        "secret.set": set_secret,
        "secret.drop": drop_secret,
        "simulate": simulate,
        "probe": probe,
        "quarantine.accept": accept,
        "quarantine.discard": discard,
    }
