"""A verifier of Standard Webhooks as people write it, with a switch for each mistake they make.

With no switch it is right. It shares nothing with hookbox's own, so that it can show whether the
mutations would notice a mistake there.
"""

import base64
import hashlib
import hmac
import json
from enum import StrEnum

from hookbox.errors import Reason, Refused
from hookbox.model import Delivery

WINDOW_S = 300


class Bug(StrEnum):
    """A mistake, in a few words."""

    PREFIX_ONLY = "compares as much as was sent"
    ANY_BODY = "signs the headers alone"
    WRITTEN_ANEW = "signs the body written anew"
    STRIPPED = "signs the body without the white space around it"
    LAX_BASE64 = "decodes base64 without looking at it"
    ONE_SIDED = "refuses the past only"
    NO_WINDOW = "asks for no time"
    LAX_NUMBER = "reads the time as any number"
    NO_NUMBER = "skips the window when the time is no number"
    EMPTY_KEY = "goes on with an empty key when there is none"
    ABSENT_IS_FINE = "lets pass what is not signed at all"
    LAST_WINS = "takes the last of two headers"
    ANY_VERSION = "compares entries of every version"
    DOTTED_ID = "takes ids with a dot"
    TEXT_COMPARE = "compares text, which trips over other bytes"
    LOWER_CASE = "compares in lower case"


def verify(bug: Bug | None, found: Delivery, key: bytes | None, now_s: float) -> None:
    """Refuses what is wrong, but for what the bug lets pass."""
    event_id, time = _header(bug, found, "id"), _header(bug, found, "timestamp")
    signatures = _header(bug, found, "signature")
    if not signatures and bug is Bug.ABSENT_IS_FINE:
        return
    if not (event_id and time and signatures) or b", " in signatures:
        raise Refused(Reason.SIGNATURE_MISSING)
    if any(byte <= 32 or byte > 126 for byte in event_id) or len(event_id) > 256:
        raise Refused(Reason.ID_MALFORMED)
    if b"." in event_id and bug is not Bug.DOTTED_ID:
        raise Refused(Reason.ID_MALFORMED)
    if key is None and bug is not Bug.EMPTY_KEY:
        raise Refused(Reason.NO_SECRET)
    body = _signed_body(bug, found.body)
    mac = hmac.new(key or b"", b"%b.%b.%b" % (event_id, time, body), hashlib.sha256).digest()
    if not any(_right(bug, mac, entry) for entry in signatures.split(b" ")):
        raise Refused(Reason.SIGNATURE_WRONG)
    _check_window(bug, time, now_s)


def _header(bug: Bug | None, found: Delivery, name: str) -> bytes:
    values = [value for each, value in found.headers if each == b"webhook-" + name.encode()]
    if len(values) > 1 and bug is not Bug.LAST_WINS:
        raise Refused(Reason.HEADER_AMBIGUOUS)
    value = values[-1] if values else b""
    if not value.isascii() and bug is not Bug.TEXT_COMPARE:
        raise Refused(Reason.HEADER_MALFORMED)
    return value


def _signed_body(bug: Bug | None, body: bytes) -> bytes:
    if bug is Bug.ANY_BODY:
        return b""
    if bug is Bug.STRIPPED:
        return body.strip()
    if bug is Bug.WRITTEN_ANEW:
        return json.dumps(json.loads(body), ensure_ascii=False).encode()
    return body


def _right(bug: Bug | None, mac: bytes, entry: bytes) -> bool:
    version, _, sent = entry.partition(b",")
    if version != b"v1" and bug is not Bug.ANY_VERSION:
        return False
    expected = base64.b64encode(mac)
    if bug is Bug.PREFIX_ONLY:
        return expected.startswith(sent)
    if bug is Bug.LAX_BASE64:
        return base64.b64decode(sent) == mac
    if bug is Bug.TEXT_COMPARE:
        return hmac.compare_digest(expected.decode(), sent.decode("latin-1"))
    if bug is Bug.LOWER_CASE:
        return expected.lower() == sent.lower()
    return hmac.compare_digest(expected, sent)


def _check_window(bug: Bug | None, time: bytes, now_s: float) -> None:
    if bug is Bug.NO_WINDOW:
        return
    if bug is Bug.LAX_NUMBER:
        age_s = now_s - float(time)
    elif time.isdigit() and len(time) <= 12:
        age_s = now_s - int(time)
    elif bug is Bug.NO_NUMBER:
        return
    else:
        raise Refused(Reason.TIMESTAMP_MALFORMED)
    if age_s > WINDOW_S or (age_s < -WINDOW_S and bug is not Bug.ONE_SIDED):
        raise Refused(Reason.STALE)
