"""Writes the requests that the load generator sends: signed, unique, and laid out as it reads them.

Such a file is a row of records: a little-endian 32-bit length, then one whole HTTP/1.1 request.
"""

import base64
import hmac
import os
import random
import secrets
import struct
import time
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

PATH = "/hooks/std"
BODY_BYTES = 600

BODY = (
    '{{"type":"email.delivered","timestamp":"2026-03-01T12:00:00.000Z","id":"{key}","data":{{'
    '"email_id":"{message:032x}","to":["user{user}@example.com"],"from":"orders@shop.example",'
    '"subject":"Your order {order} has shipped","tags":{{"campaign":"spring","tier":"gold"}},'
    '"smtp":{{"code":250,"message":"2.0.0 OK queued"}},"note":"{note}"}}}}'
)
HEAD = (
    "POST {path} HTTP/1.1\r\nhost: bench.local\r\n"
    "user-agent: Standard-Webhooks/1.0\r\naccept: */*\r\n"
    "content-type: application/json\r\nwebhook-id: {key}\r\nwebhook-timestamp: {sent_at}\r\n"
    "webhook-signature: v1,{signature}\r\ncontent-length: {length}\r\n\r\n"
)


class Ids(StrEnum):
    """How a sender makes its event ids: at random (UUIDv4), or rising with time (KSUID, UUIDv7)."""

    RANDOM = "random"
    ORDERED = "ordered"


def make_secret() -> str:
    """A Standard Webhooks secret for one run of the benchmark."""
    return "whsec_" + base64.b64encode(secrets.token_bytes(24)).decode()


def write_requests(path: Path, count: int, *, secret: str, ids: Ids = Ids.RANDOM) -> Path:
    """`count` requests, each with an id of its own, all signed with the present time.

    The file is on disk when this returns, so that its write-back does not disturb the next load.
    """
    with path.open("wb", buffering=1 << 20) as out:
        for request in _requests(count, secret, ids):
            out.write(struct.pack("<I", len(request)) + request)
        out.flush()
        os.fsync(out.fileno())
    return path


def _requests(count: int, secret: str, ids: Ids) -> Iterator[bytes]:
    material = base64.b64decode(secret.removeprefix("whsec_"))
    chance = random.Random()
    sent_at = int(time.time())
    for number in range(count):
        key = _key(ids, sent_at * 1000 + number // 8, chance)
        body = _body(key, chance)
        proof = hmac.digest(material, f"{key}.{sent_at}.".encode() + body, "sha256")
        signature = base64.b64encode(proof).decode()
        head = HEAD.format(
            path=PATH, key=key, sent_at=sent_at, signature=signature, length=len(body)
        )
        yield head.encode() + body


def _key(ids: Ids, now: int, chance: random.Random) -> str:
    if ids is Ids.ORDERED:
        return f"msg_{now:012x}{chance.getrandbits(80):020x}"
    return f"msg_{chance.getrandbits(128):032x}"


def _body(key: str, chance: random.Random) -> bytes:
    message, user, order = chance.getrandbits(128), chance.getrandbits(17), chance.getrandbits(20)
    short = BODY.format(key=key, message=message, user=user, order=order, note="")
    return short.replace('"note":"', '"note":"' + "x" * (BODY_BYTES - len(short))).encode()
