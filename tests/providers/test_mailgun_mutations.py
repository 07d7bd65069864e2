"""No change of a right triple is believed. What stands beside it is not proved at all, see
test_mailgun.py."""

import hashlib
import hmac
import json
from collections.abc import Iterator
from urllib.parse import urlencode

from hookbox.errors import Refused
from tests.providers.requests import delivery, provider_of, trust

PROVIDER = provider_of("mailgun")
KEY, OTHER_KEY = "key-mailgun-that-is-not-real", "another-key-that-is-not-real"
NOW_S = 1_773_480_413
STAMP, TOKEN = str(NOW_S), "a1" * 25
EVENT = {"id": "x", "timestamp": NOW_S, "event": "failed", "recipient": "ana@example.com"}
MUTATIONS_MIN = 80


def _mac(message: str, key: str = KEY, algorithm: str = "sha256") -> str:
    return hmac.new(key.encode(), message.encode(), getattr(hashlib, algorithm)).hexdigest()


GOOD = {"timestamp": STAMP, "token": TOKEN, "signature": _mac(STAMP + TOKEN)}


def _triples() -> Iterator[tuple[str, dict[str, str]]]:
    """Whole triples that somebody made or changed."""
    for at in range(64):
        mac = GOOD["signature"]
        flipped = mac[:at] + ("0" if mac[at] != "0" else "1") + mac[at + 1 :]
        yield f"signature changed at {at}", {**GOOD, "signature": flipped}
    for name in GOOD:
        yield f"{name} absent", {each: text for each, text in GOOD.items() if each != name}
        for what, text in _texts(GOOD[name]):
            yield f"{name} {what}", {**GOOD, name: text}
    yield "parent-signature by a stranger", {**GOOD, "signature": "x", "parent-signature": "y"}
    for what, mac in {
        "by another key": _mac(STAMP + TOKEN, OTHER_KEY),
        "by nothing": _mac(STAMP + TOKEN, ""),
        "over SHA-1": _mac(STAMP + TOKEN, algorithm="sha1"),
        "over SHA-512": _mac(STAMP + TOKEN, algorithm="sha512"),
        "of the token alone": _mac(TOKEN),
        "of the time alone": _mac(STAMP),
        "of token and time": _mac(TOKEN + STAMP),
        "with a dot between": _mac(f"{STAMP}.{TOKEN}"),
        "of the event": _mac(json.dumps(EVENT)),
    }.items():
        yield f"signature {what}", {**GOOD, "signature": mac}
    for stamp in (
        *(str(NOW_S - 10 * 3600), str(NOW_S + 10 * 3600), f"{STAMP}000", f"0{STAMP}", f"+{STAMP}"),
        *(f"{STAMP}.0", f" {STAMP}", f"{NOW_S:_d}", "9" * 5000, "0", "NaN", "2026-03-14T09:26:53Z"),
    ):
        signed = {**GOOD, "timestamp": stamp, "signature": _mac(stamp + TOKEN)}
        yield f"signed time {stamp[:20]}", signed
    for token in ("", " ", "a b", "é", "\0", "x" * 200):
        yield (
            f"signed token {token[:9]!r}",
            {
                **GOOD,
                "token": token,
                "signature": _mac(STAMP + token),
            },
        )


def _texts(text: str) -> Iterator[tuple[str, str]]:
    for tail in ("0", " ", "\n", "\0", "é", "="):
        yield f"and {tail!r}", text + tail
    yield "empty", ""
    yield "cut by one", text[:-1]
    yield "reversed", text[::-1]
    yield "twice", text + text
    yield "in quotes", f'"{text}"'


def _requests() -> Iterator[tuple[str, bytes]]:
    for name, triple in _triples():
        yield f"{name}, as JSON", json.dumps({"signature": triple, "event-data": EVENT}).encode()
        yield f"{name}, as a form", urlencode({"recipient": "a@example.com", **triple}).encode()
    right = json.dumps({"signature": GOOD, "event-data": EVENT}).encode()
    yield from {
        "nothing": b"",
        "an empty object": b"{}",
        "a list": b"[" + right + b"]",
        "a text": json.dumps(right.decode()).encode(),
        "cut by one": right[:-1],
        "cut in half": right[: len(right) // 2],
        "as UTF-16": right.decode().encode("utf-16"),
        "the triple one level up": json.dumps({**GOOD, "event-data": EVENT}).encode(),
        "the triple inside the event": json.dumps({"event-data": {"signature": GOOD}}).encode(),
        "the triple as a list": json.dumps({"signature": list(GOOD.values())}).encode(),
        "the triple as a text": json.dumps({"signature": json.dumps(GOOD)}).encode(),
        "a thousand brackets": b'{"signature":' * 100_000,
        "a thousand fields": b"a=b&" * 2000,
        "a boundary without end": b"--x\r\n\r\n",
        "a number": b"7",
    }.items()


def test_no_mutation_is_accepted() -> None:
    """An error other than Refused would be a crash on demand, and ends the test."""
    keys, accepted, every = trust(PROVIDER, KEY), [], list(_requests())
    for name, body in every:
        try:
            PROVIDER.verify(delivery({}, body), keys, NOW_S * 1000)
        except Refused:
            continue
        accepted.append(name)
    assert accepted == []
    assert len(every) >= MUTATIONS_MIN


def test_right_triple_is_accepted_in_every_shape() -> None:
    keys = trust(PROVIDER, OTHER_KEY, KEY)
    multipart = "".join(
        f'--b\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{text}\r\n'
        for name, text in GOOD.items()
    )
    for body in (
        json.dumps({"signature": GOOD, "event-data": EVENT}).encode(),
        b"\xef\xbb\xbf \r\n" + json.dumps({"signature": GOOD}).encode(),
        urlencode(GOOD).encode(),
        f"{multipart}--b--\r\n".encode(),
    ):
        PROVIDER.verify(delivery({}, body), keys, NOW_S * 1000)
