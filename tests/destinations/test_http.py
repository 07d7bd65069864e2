"""The http destination: signed so that others can check it, and patient with whatever answers."""

import asyncio
import base64
import contextlib
import json
import socket
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from hookbox.destinations.contract import EXCERPT_MAX
from hookbox.destinations.http import signed_headers
from hookbox.errors import ConfigError
from hookbox.flows.attempts import RETRY_AFTER_MAX_S
from hookbox.model import Attempt, Verdict
from tests.destinations.parcels import parcel
from tests.destinations.rigs import KEY, header, opened
from tests.servers import HOST, Respond, answering, http_server

OTHER = b"fedcba9876543210fedcba9876543210"
NAMES = ("webhook-id", "webhook-timestamp", "webhook-signature")


async def attempt_at(respond: Respond, **options: object) -> Attempt:
    async with http_server(respond) as seen:
        destination = opened("http", url=f"http://{HOST}:{seen.port}/in", **options)
        try:
            return await destination.deliver(parcel())
        finally:
            await destination.close()


def raw(text: bytes) -> Respond:
    """A server that writes these bytes and hangs up."""

    async def respond(head: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(text)

    return respond


# -- what is sent --------------------------------------------------------------------------------


def verifier(key: bytes) -> Webhook:
    return Webhook("whsec_" + base64.b64encode(key).decode())


async def test_independent_verifier_accepts_what_arrives() -> None:
    async with http_server(answering("204 No Content")) as seen:
        destination = opened("http", url=f"http://{HOST}:{seen.port}/in?a=b")
        await destination.deliver(parcel(replay=2))
        await destination.close()
    [head], [body] = seen.heads, seen.bodies
    verified = verifier(KEY).verify(body, {name: header(head, name) for name in NAMES})
    assert verified == json.loads(body)
    assert head.startswith(b"POST /in?a=b HTTP/1.1\r\n")
    assert header(head, "content-type") == "application/json"
    assert header(head, "webhook-id") == header(head, "idempotency-key") == "7:r2"


def rejected(key: bytes, body: bytes, headers: Mapping[str, str]) -> bool:
    try:
        verifier(key).verify(body, dict(headers))
    except WebhookVerificationError:
        return True
    return False


def test_during_a_rotation_receivers_with_either_key_accept() -> None:
    sent = parcel()
    headers = signed_headers(sent, (KEY, OTHER))
    assert not rejected(KEY, sent.body, headers)
    assert not rejected(OTHER, sent.body, headers)
    assert rejected(OTHER, sent.body, signed_headers(sent, (KEY,)))


def test_signature_covers_id_time_and_body() -> None:
    sent = parcel()
    headers = signed_headers(sent, (KEY,))
    other = signed_headers(replace(parcel(8), sent_at=sent.sent_at + 1000), (KEY,))
    assert rejected(KEY, sent.body + b" ", headers)
    for name in ("webhook-id", "webhook-timestamp"):
        assert rejected(KEY, sent.body, {**headers, name: other[name]})


async def test_keys_are_not_shown() -> None:
    destination = opened("http", url=f"http://{HOST}:1/")
    assert KEY.decode() not in repr(destination)


# -- what comes back -----------------------------------------------------------------------------


@pytest.mark.parametrize("status", ["200 OK", "201 Created", "202 Accepted", "204 No Content"])
async def test_any_2xx_is_done(status: str) -> None:
    assert (await attempt_at(answering(status))).verdict is Verdict.DONE


@pytest.mark.parametrize("status", [301, 400, 401, 404, 409, 410, 413, 422, 429, 500, 503, 599])
async def test_any_other_status_is_tried_later(status: int) -> None:
    """A program that is being deployed answers 404 or 410 for a moment."""
    attempt = await attempt_at(answering(f"{status} No", b"why not"))
    assert (attempt.verdict, attempt.status) == (Verdict.LATER, status)
    assert attempt.excerpt == "why not"
    assert attempt.blames_target


async def test_redirect_is_not_followed_and_told_shortened() -> None:
    async with http_server(answering("200 OK")) as trap:
        lead = f"http://{HOST}:{trap.port}/{'x' * 500}"
        attempt = await attempt_at(answering("308 Permanent Redirect", b"", f"Location: {lead}"))
    assert trap.heads == []
    assert attempt.verdict is Verdict.LATER
    assert f"redirected to http://{HOST}:{trap.port}/xxx" in attempt.outcome
    assert len(attempt.outcome) < 160


@pytest.mark.parametrize("status", ["429 Too Many", "503 Busy", "404 Not Found", "301 Moved"])
@pytest.mark.parametrize(("text", "expected_s"), [("7", 7.0), ("1.5", 1.5), ("soon", None)])
async def test_retry_after_in_seconds_is_honoured(
    status: str, text: str, expected_s: float | None
) -> None:
    attempt = await attempt_at(answering(status, b"", f"Retry-After: {text}"))
    assert attempt.retry_after_s == expected_s


@pytest.mark.parametrize("text", ["9" * 10, "9" * 300, "9" * 5_000, "9" * 30 + ".5"])
async def test_retry_after_of_years_is_a_day(text: str) -> None:
    """It means "not soon", which is then cut to a day."""
    attempt = await attempt_at(answering("503 Busy", b"", f"Retry-After: {text}"))
    assert attempt.retry_after_s == RETRY_AFTER_MAX_S


async def test_retry_after_as_a_date_is_honoured() -> None:
    at = datetime.now(UTC) + timedelta(seconds=100)
    line = f"Retry-After: {format_datetime(at, usegmt=True)}"
    attempt = await attempt_at(answering("503 Busy", b"", line))
    assert attempt.retry_after_s is not None
    assert 90 < attempt.retry_after_s <= 101


async def _endless(head: bytes, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"10000\r\n" + b"x" * 65_536 + b"\r\n")
        await writer.drain()


@pytest.mark.parametrize("respond", [answering("200 OK", b"x" * 10_000_000), _endless])
async def test_long_answer_is_judged_by_its_status_without_reading_on(respond: Respond) -> None:
    attempt = await attempt_at(respond)
    assert attempt.verdict is Verdict.DONE
    assert attempt.excerpt == "x" * EXCERPT_MAX


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\x00\x01\x02\xff" * 100,
        b"SSH-2.0-x\r\n\r\n",
        b"HTTP/1.1 999999 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12",
        b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n12",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: " + b"x" * 300_000,
        b"HTTP/1.1 100 Continue\r\n\r\n" * 3,
    ],
    ids=["nothing", "noise", "ssh", "status", "short", "length", "chunks", "head", "continue"],
)
async def test_garbage_is_a_failed_attempt(text: bytes) -> None:
    attempt = await attempt_at(raw(text))
    assert (attempt.verdict, attempt.outcome) == (Verdict.LATER, "no answer")
    assert 0 < len(attempt.excerpt) <= EXCERPT_MAX
    assert attempt.excerpt.isprintable()


async def test_excerpt_is_printable_whatever_was_answered() -> None:
    answer = b"\x1b[31m\xff\xfe\n\n caf\xc3\xa9 \x00" + bytes(range(256)) * 10
    attempt = await attempt_at(answering("500 No", answer))
    assert attempt.excerpt.isprintable()
    assert "café" in attempt.excerpt
    assert len(attempt.excerpt) <= EXCERPT_MAX


async def _drop_by_drop(head: bytes, writer: asyncio.StreamWriter) -> None:
    """Each byte in time for a deadline that only looks at the gaps between them."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    while True:
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.01)


async def test_slow_answer_is_given_up_at_the_deadline() -> None:
    attempt = await attempt_at(_drop_by_drop, timeout=0.3)
    assert (attempt.verdict, attempt.outcome) == (Verdict.LATER, "no answer")
    assert "within 0.3 s" in attempt.excerpt


# -- where it may go -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "ftp://app.example/",
        "app.example",
        "https://user:password@app.example/",
        "http://10.0.0.5/in",
        "https://10.0.0.5/in",
        "https://[fd00::1]/in",
        "http://169.254.169.254/latest",
        "http://93.184.215.14/in",
    ],
)
def test_url_that_must_not_be_called_is_refused_from_the_start(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        opened("http", url=url)
    assert caught.value.where == "url"
    assert "password" not in str(caught.value)


# -- the README's receiver -----------------------------------------------------------------------

README = Path(__file__).parents[2] / "README.md"


def receiver(port: int) -> str:
    """The program in the README, at a free port."""
    text = (
        README.read_text().partition("A receiver in Python:\n")[2].partition("\nIt is started")[0]
    )
    program = textwrap.dedent(text)
    assert program.count("\n") < 20
    for written, wanted in (
        ("3000", str(port)),
        ("http.server.HTTPServer(", "server = http.server.HTTPServer("),
        (".serve_forever()", "; print('ready', flush=True); server.handle_request()"),
    ):
        assert written in program
        program = program.replace(written, wanted)
    return program


def free_port() -> int:
    with socket.socket() as unused:
        unused.bind((HOST, 0))
        return int(unused.getsockname()[1])


@pytest.mark.parametrize(("key", "status"), [(KEY, 204), (OTHER, 401)])
async def test_receiver_in_the_readme_verifies(key: bytes, status: int) -> None:
    port = free_port()
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", receiver(port)),
        env={"SECRET": "whsec_" + base64.b64encode(key).decode()},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert child.stdout is not None
    destination = opened("http", url=f"http://{HOST}:{port}/in")
    try:
        await child.stdout.readline()
        attempt = await destination.deliver(parcel())
        assert attempt.status == status
    finally:
        await destination.close()
        with contextlib.suppress(ProcessLookupError):
            child.terminate()
        said, _ = await child.communicate()
    assert (b"7 bounced ann" in said) is (status == 204)
