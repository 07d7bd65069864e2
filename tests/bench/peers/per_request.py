"""Peer: plain ASGI with aiosqlite, one transaction per request: what batching is compared with."""

import asyncio
import os

import aiosqlite
from common import ADD_EVENT, ADD_OUTBOX, row, verified


class PerRequest:
    """One connection; every request waits for its turn, then for its own sync."""

    def __init__(self) -> None:
        self.db: aiosqlite.Connection | None = None
        self.turn = asyncio.Lock()

    async def open(self) -> aiosqlite.Connection:
        db = await aiosqlite.connect(os.environ["PEER_DB"], isolation_level=None)
        await db.execute("PRAGMA journal_mode = WAL")
        await db.execute("PRAGMA synchronous = FULL")
        await db.executescript(os.environ["PEER_SCHEMA"])
        return db

    async def store(self, headers: dict[str, str], body: bytes) -> None:
        event = row(headers, body)
        async with self.turn:
            self.db = self.db or await self.open()
            await self.db.execute("BEGIN IMMEDIATE")
            added = await self.db.execute(ADD_EVENT, event)
            if added.rowcount:
                await self.db.execute(ADD_OUTBOX, (added.lastrowid, event[2]))
            await self.db.execute("COMMIT")

    async def __call__(self, scope, receive, send) -> None:  # type: ignore[no-untyped-def]
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        status = 401
        if verified(headers, body):
            await self.store(headers, body)
            status = 200
        await send(
            {
                "type": "http.response.start",
                "status": status,
                "headers": [(b"content-length", b"0")],
            }
        )
        await send({"type": "http.response.body", "body": b""})


app = PerRequest()
