"""The HTTP front alone, in a process of its own: every hook is answered 200 once it is read.

    front.py guarded|stock

Takes the same environment as `hookbox serve` (of the configuration, only where to listen), and a
socket of the service manager. `stock` is uvicorn's own protocol with its own farewell: what the
witnesses of the front must catch.
"""

import asyncio
import logging
import os
import signal
import socket
import sys
import tomllib
from pathlib import Path
from typing import Any

import uvicorn

from hookbox.web.serving import Door
from hookbox.web.sockets import bind, inherited_sockets


async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
    parts = []  # kept until the last one is there, as a receiver must that verifies the whole
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        parts.append(message["body"])
        more = message["more_body"]
    body = b"" if scope["method"] == "HEAD" else b'{"status":"accepted"}'
    headers = [(b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def guarded(sockets: list[socket.socket]) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    door = Door(app, sockets)
    await door.start()
    await stop.wait()
    await door.stop(grace_s=5)


async def stock(sockets: list[socket.socket]) -> None:
    config = uvicorn.Config(
        app,
        http="httptools",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=5,
    )
    await uvicorn.Server(config).serve(sockets)


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    settings = tomllib.loads(Path(os.environ["HOOKBOX_CONFIG"]).read_text())
    listening = inherited_sockets() or [bind(settings["server"]["listen"])]
    kinds = {"guarded": guarded, "stock": stock}
    asyncio.run(kinds[sys.argv[1]](listening))
