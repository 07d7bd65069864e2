"""The public door: `/hooks/{source}` and nothing else.

Reads at most the source's byte cap, hands the bytes on as they came, and turns the outcome into
this sender's statuses. Answers are short and tell a stranger nothing. Never a redirect, never 410.
"""

import ipaddress
import logging
from collections.abc import Iterable
from typing import cast

from litestar.types import ASGIApp, HTTPReceiveMessage, HTTPScope, Receive, Scope, Send

from hookbox.errors import Reason
from hookbox.flows.receive import Outcome, Receipt
from hookbox.flows.sources import Source
from hookbox.model import Delivery
from hookbox.runtime import Runtime

log = logging.getLogger("hookbox.hooks")

JSON = b"application/json"
ANSWERS = {outcome: b'{"status":"%s"}' % outcome.value.encode() for outcome in Outcome}
NOT_FOUND = b'{"status":"not found"}'
TOO_LARGE = b'{"status":"too large"}'
ALLOW = (b"allow", b"POST, HEAD, GET, OPTIONS")

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Headers = Iterable[tuple[bytes, bytes]]


def public_app(runtime: Runtime) -> ASGIApp:
    """The application behind the public sockets. It has one path, so there is nothing to route:
    a framework's router in front of it took a seventh of the time of a request.
    """

    async def hooks(scope: Scope, receive: Receive, send: Send) -> None:
        """One request to `/hooks/…`. A mistake of ours is our fault: the sender comes back."""
        try:
            # Always HTTP: the server speaks no WebSocket.
            await _serve(runtime, cast(HTTPScope, scope), receive, send)
        except Exception:
            log.exception("request failed path=%r", scope["path"])
            await _answer(send, 503, ANSWERS[Outcome.BUSY], (b"retry-after", b"60"))

    return hooks


async def _serve(runtime: Runtime, scope: HTTPScope, receive: Receive, send: Send) -> None:
    source = runtime.sources.get(_source_name(scope))
    if source is None:
        await _answer(send, 404, NOT_FOUND)
        return
    method = scope["method"]
    if method == "POST":
        await _post(runtime, source, scope, receive, send)
    elif method in ("GET", "HEAD"):  # senders look who is there before they create a webhook
        await _answer(send, 200, b"")
    elif method == "OPTIONS":
        await _answer(send, 204, b"", ALLOW)
    else:
        await _answer(send, 405, b"", ALLOW)


def _source_name(scope: HTTPScope) -> str:
    """What stands after `/hooks/`, with or without one slash behind it; any other shape names no
    source.

    Taken from the path as it was sent: the framework's own has been normalised, and no source's
    name needs that.
    """
    path = scope["raw_path"].removesuffix(b"/")
    return path.removeprefix(b"/hooks/").decode("latin-1")


async def _post(
    runtime: Runtime, source: Source, scope: HTTPScope, receive: Receive, send: Send
) -> None:
    headers: Headers = scope["headers"]
    body = await _read(headers, receive, source.body_max)
    if body is None:
        runtime.tally.refused(source.id, Reason.TOO_LARGE, None, _remote(runtime, scope, headers))
        await _answer(send, 413, TOO_LARGE)
        return
    if isinstance(body, _HungUp):
        return
    delivery = Delivery(
        source=source.name,
        headers=tuple(headers),
        body=body,
        received_at=runtime.clock.now(),
        query=scope["query_string"],
        remote=_remote(runtime, scope, headers),
        via=runtime.simulations.via(source.name, body),
    )
    receipt = await runtime.receiver.receive(source, delivery)
    await _answer_receipt(send, source, receipt)


class _HungUp:
    """The sender went away in the middle of its body; there is nobody to answer and nothing to
    store.
    """


async def _read(headers: Headers, receive: Receive, body_max: int) -> bytes | _HungUp | None:
    """The whole body; None when it is longer than the cap, as soon as that is certain."""
    if _declared_length(headers) > body_max:
        return None
    parts: list[bytes] = []
    size = 0
    while True:
        message = cast(HTTPReceiveMessage, await receive())
        if message["type"] == "http.disconnect":
            return _HungUp()
        part = message.get("body", b"")
        size += len(part)
        if size > body_max:
            return None
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)


def _declared_length(headers: Headers) -> int:
    """Content-Length as the protocol let it pass: one, and digits; 0 for a chunked body."""
    for name, value in headers:
        if name == b"content-length":
            return int(value) if value.isdigit() and len(value) < 20 else 0
    return 0


def _remote(runtime: Runtime, scope: HTTPScope, headers: Headers) -> str:
    """The sender's address: the socket's, or what trusted proxies say, read from the right while
    they are trusted.
    """
    client = scope.get("client")
    peer = client[0] if client else ""
    trusted = runtime.settings.server.trusted_proxies
    if not trusted or not (peer == "" or _within(peer, trusted)):
        return peer
    chain = [
        part.strip() for value in _all(headers, b"x-forwarded-for") for part in value.split(",")
    ]
    for address in reversed(chain):
        peer = address
        if not _within(address, trusted):
            break
    return peer


def _all(headers: Headers, wanted: bytes) -> Iterable[str]:
    return (value.decode("latin-1") for name, value in headers if name == wanted)


def _within(address: str, networks: Iterable[Network]) -> bool:
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    return any(parsed in network for network in networks)


async def _answer_receipt(send: Send, source: Source, receipt: Receipt) -> None:
    answers = source.provider.answers
    if receipt.outcome is Outcome.BUSY:
        wait = str(receipt.retry_after_s).encode()
        await _answer(send, answers.busy, ANSWERS[Outcome.BUSY], (b"retry-after", wait))
    elif receipt.outcome is Outcome.REFUSED:
        assert receipt.reason is not None, "a refusal has a reason"
        status = answers.refused_by.get(receipt.reason, answers.refused)
        await _answer(send, status, ANSWERS[Outcome.REFUSED], *_challenge(status, receipt.reason))
    elif receipt.answer is not None:
        kind = receipt.answer.content_type.encode()
        await _answer(send, answers.ok, receipt.answer.answer, content_type=kind)
    else:
        status = answers.unreadable if receipt.unreadable else answers.ok
        await _answer(send, status, ANSWERS[receipt.outcome])


def _challenge(status: int, reason: Reason) -> tuple[tuple[bytes, bytes], ...]:
    """RFC 9110 wants a challenge on every 401, and SNS sends Basic credentials only after having
    seen one.
    """
    if status != 401:
        return ()
    basic = reason in (Reason.CREDENTIALS_MISSING, Reason.CREDENTIALS_WRONG)
    return ((b"www-authenticate", b'Basic realm="hookbox"' if basic else b"Signature"),)


async def _answer(
    send: Send, status: int, body: bytes, *extra: tuple[bytes, bytes], content_type: bytes = JSON
) -> None:
    headers = [(b"content-length", str(len(body)).encode()), *extra]
    if body:
        headers.append((b"content-type", content_type))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})
