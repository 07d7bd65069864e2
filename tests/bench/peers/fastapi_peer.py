"""Peer: FastAPI on uvicorn with sqlite3, one transaction per request in the thread pool."""

import threading

from common import store, verified
from fastapi import FastAPI, Request, Response
from starlette.concurrency import run_in_threadpool

app = FastAPI()
writing = threading.Lock()  # kinder to SQLite than forty threads in its busy handler


def store_alone(request: Request, body: bytes) -> None:
    with writing:
        store(request.headers, body)


@app.post("/hooks/std")
async def receive(request: Request) -> Response:
    body = await request.body()
    if not verified(request.headers, body):
        return Response(status_code=401)
    await run_in_threadpool(store_alone, request, body)
    return Response(status_code=200)
