"""Peer: Flask on gunicorn with the standard library's sqlite3, one transaction per request."""

from common import store, verified
from flask import Flask, request

app = Flask(__name__)


@app.post("/hooks/std")
def receive() -> tuple[str, int]:
    headers, body = {name.lower(): value for name, value in request.headers}, request.get_data()
    if not verified(headers, body):
        return "", 401
    store(headers, body)
    return "", 200
