"""Every way we know to make a right request wrong. None of them may be accepted, by any provider.

Each sender's one good request becomes hundreds of bad ones: some are what a stranger could send,
some are rightly signed but must not be believed (a time that is none, an id with a dot in it).
"""

import base64
import gzip
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from hookbox.model import Delivery
from tests.providers.requests import Headers, delivery
from tests.providers.senders import Sender

ID = "evt_01HV7Q2Z"
NOW_S = 1_773_480_413
TIME = str(NOW_S)
BODY = json.dumps(
    {"id": ID, "type": "email.bounced", "note": "é/ x", "data": {"to": "ana@example.com"}},
    ensure_ascii=False,
).encode()


@dataclass(frozen=True)
class Mutation:
    """A request that must be refused. `secrets` and `now` are the receiver's."""

    name: str
    delivery: Delivery
    secrets: tuple[str, ...]
    now: int


def mutations(sender: Sender) -> Iterator[Mutation]:
    """All of them, for one sender."""
    for name, headers, body in _requests(sender):
        yield Mutation(name, delivery(headers, body), (sender.secret,), NOW_S * 1000)
    good = delivery(sender.sign(ID, TIME, BODY), BODY)
    yield Mutation("another secret", good, (sender.other_secret,), NOW_S * 1000)
    yield Mutation("no secret at all", good, (), NOW_S * 1000)
    keyless = sender.headers(ID, TIME, sender.mac(sender.message(ID, TIME, BODY), b""))
    yield Mutation("no secret, and none used", delivery(keyless, BODY), (), NOW_S * 1000)
    for seconds in (300.5, 301, 3600, 86_400, 10**9) if sender.timed else ():
        for sign, word in ((1, "old"), (-1, "early")):
            now = round((NOW_S + sign * seconds) * 1000)
            yield Mutation(f"{seconds} s {word}", good, (sender.secret,), now)


def _requests(sender: Sender) -> Iterator[tuple[str, Headers, bytes]]:
    good = sender.sign(ID, TIME, BODY)
    yield from ((f"body {name}", good, body) for name, body in _bodies())
    yield from _headers(good, _proving(sender, good))
    yield from _signatures(sender)
    yield from _signers(sender)
    if sender.timed:
        for name, time in _times():
            yield f"signed time {name}", sender.sign(ID, time, BODY), BODY
        for name, time in (("one second on", str(NOW_S + 1)), ("leading zero", f"0{TIME}")):
            mac = sender.mac(sender.message(ID, TIME, BODY))
            yield f"unsigned time {name}", sender.headers(ID, time, mac), BODY
    if sender.signs_id:
        for name, event_id in _ids():
            yield f"signed id {name}", sender.sign(event_id, TIME, BODY), BODY
        mac = sender.mac(sender.message(ID, TIME, BODY))
        yield "another id", sender.headers("evt_other", TIME, mac), BODY
        yield "id and time moved", sender.headers(f"{ID}.{TIME[:5]}", TIME[5:], mac), BODY
    yield "compressed, but the plain body was signed", _gzipped(good), gzip.compress(BODY)


def _gzipped(good: dict[str, str]) -> dict[str, str]:
    return {**good, "Content-Encoding": "gzip"}


def _proving(sender: Sender, good: dict[str, str]) -> list[str]:
    """The headers that the proof stands on: a change of any must be noticed."""
    words = ("signature", "hmac", *(("timestamp",) if sender.timed else ()))
    words += ("-id",) if sender.signs_id else ()
    return [name for name in good if any(word in name.lower() for word in words)]


def _bodies() -> Iterator[tuple[str, bytes]]:
    for at in (0, 1, len(BODY) // 2, len(BODY) - 1):
        yield f"flipped at {at}", BODY[:at] + bytes([BODY[at] ^ 1]) + BODY[at + 1 :]
    yield "empty", b""
    yield "cut by one", BODY[:-1]
    yield "cut in half", BODY[: len(BODY) // 2]
    yield "without its first byte", BODY[1:]
    for name, tail in (("blank", b" "), ("newline", b"\n"), ("CR LF", b"\r\n"), ("NUL", b"\0")):
        yield f"and a {name}", BODY + tail
    yield "twice", BODY + BODY
    yield "behind a byte order mark", b"\xef\xbb\xbf" + BODY
    yield "written anew", json.dumps(json.loads(BODY)).encode()
    yield "compact", json.dumps(json.loads(BODY), separators=(",", ":")).encode()
    yield "with sorted members", json.dumps(json.loads(BODY), sort_keys=True).encode()
    yield "in other case", BODY.swapcase()
    yield "with escaped slashes", BODY.replace(b"/", b"\\/")
    yield "as latin-1", BODY.decode().encode("latin-1")
    yield "as UTF-16", BODY.decode().encode("utf-16")


def _headers(good: dict[str, str], names: list[str]) -> Iterator[tuple[str, Headers, bytes]]:
    for name in names:
        value, others = good[name], [(n, v) for n, v in good.items() if n != name]
        yield f"{name} absent", others, BODY
        for what, changed in _values(value):
            yield f"{name} {what}", [*others, (name, changed)], BODY
        for what, copies in (
            ("twice", (value, value)),
            ("twice, a wrong one first", ("x", value)),
            ("twice, a wrong one last", (value, "x")),
            ("twice, an empty one first", ("", value)),
        ):
            yield f"{name} {what}", [*others, *((name, each) for each in copies)], BODY
        yield f"{name} under its name with _", [*others, (name.replace("-", "_"), value)], BODY


def _values(value: str) -> Iterator[tuple[str, str | bytes]]:
    raw = value.encode("latin-1")
    yield "empty", ""
    yield "joined with itself", f"{value}, {value}"
    for byte in (b"\xe9", b"\xff", b"\0", b"\xc2\xa0"):
        for at in (0, len(raw) // 2, len(raw)):
            yield f"with {byte!r} at {at}", raw[:at] + byte + raw[at:]


def _signatures(sender: Sender) -> Iterator[tuple[str, Headers, bytes]]:
    mac = sender.mac(sender.message(ID, TIME, BODY))
    for name, changed in _macs(mac):
        yield f"signature {name}", sender.headers(ID, TIME, changed), BODY
    good = sender.headers(ID, TIME, mac)
    for form in sender.other_forms:
        sent = form.format(mac=mac, time=TIME)
        yield f"signature as `{form}`", {**good, sender.signature: sent}, BODY


def _macs(mac: str) -> Iterator[tuple[str, str]]:
    for at in range(len(mac)):
        yield f"flipped at {at}", mac[:at] + chr(ord(mac[at]) ^ 1) + mac[at + 1 :]
    for length in (0, 1, 8, len(mac) // 2, len(mac) - 4, len(mac) - 2, len(mac) - 1):
        yield f"cut to {length}", mac[:length]
    for tail in ("A", "0", "=", "==", "\n", "%0A", "\0", mac):
        yield f"and {tail[:3]!r}", mac + tail
    for junk in ("!", "-", "\n", "=", "\\x41"):
        yield f"with {junk!r} in the middle", mac[:20] + junk + mac[20:]
    if not mac.islower():
        yield "in other case", mac.swapcase()
        yield "in lower case", mac.lower()
        yield "with its spare bits set", mac[:-2] + chr(ord(mac[-2]) + 1) + mac[-1]
        yield "in the other alphabet", mac.translate(str.maketrans("+/=", "-_."))
        yield "without padding", mac.rstrip("=")
    yield "reversed", mac[::-1]
    yield "of one letter", mac[0] * len(mac)
    yield "as the word `undefined`", "undefined"


def _signers(sender: Sender) -> Iterator[tuple[str, Headers, bytes]]:
    """Somebody who signs, but with another key, or something else."""
    message = sender.message(ID, TIME, BODY)
    right = sender.key(sender.secret)
    secret = sender.secret.encode()
    for name, key in {
        "nothing": b"",
        "another key": sender.key(sender.other_secret),
        "half the key": right[: len(right) // 2],
        "the key and a newline": right + b"\n",
        "a NUL": b"\0",
        "the key in base64": base64.b64encode(right),
        "the key in hex": right.hex().encode(),
        "the secret's text": secret if secret != right else b"whsec_" + secret,
    }.items():
        yield f"signed with {name}", sender.headers(ID, TIME, sender.mac(message, key)), BODY
    for algorithm in ("sha1", "sha512", "md5", "sha384"):
        mac = sender.mac(message, algorithm=algorithm)
        yield f"signed with {algorithm}", sender.headers(ID, TIME, mac), BODY
    other: Callable[[bytes], str] = bytes.hex if sender.encode is not bytes.hex else _base64
    digest = base64.b64decode if sender.encode is not bytes.hex else bytes.fromhex
    mac = other(digest(sender.mac(message)))
    yield "written in the other encoding", sender.headers(ID, TIME, mac), BODY
    for name, wrong in {
        "nothing": b"",
        "the parts in another order": BODY + b"." + TIME.encode() + b"." + ID.encode(),
        "the body, stripped of its end": sender.message(ID, TIME, BODY[:-1]),
        "the body written anew": sender.message(ID, TIME, json.dumps(json.loads(BODY)).encode()),
        "the text and a newline": message + b"\n",
        "everything but the body": sender.message(ID, TIME, b""),
        **({"the body alone": BODY} if message != BODY else {}),
    }.items():
        yield f"signed {name}", sender.headers(ID, TIME, sender.mac(wrong)), BODY


def _base64(mac: bytes) -> str:
    return base64.b64encode(mac).decode()


def _times() -> Iterator[tuple[str, str]]:
    yield from (
        ("empty", ""),
        ("in milliseconds", f"{TIME}000"),
        ("in microseconds", f"{TIME}000000"),
        ("with a fraction", f"{TIME}.0"),
        ("with an exponent", "1.773480413e9"),
        ("with a plus", f"+{TIME}"),
        ("with a minus", f"-{TIME}"),
        ("with blanks", f" {TIME} "),
        ("with a newline", f"{TIME}\n"),
        ("with underscores", f"{NOW_S:_d}"),
        ("with commas", f"{NOW_S:,d}"),
        ("in hexadecimal", hex(NOW_S)),
        ("and letters", f"{TIME}abc"),
        ("NaN", "NaN"),
        ("nan", "nan"),
        ("Infinity", "Infinity"),
        ("null", "null"),
        ("of 5,000 digits", "9" * 5000),
        ("zero", "0"),
        ("a date", "2026-03-14T09:26:53Z"),
    )


def _ids() -> Iterator[tuple[str, str]]:
    yield from (
        ("empty", ""),
        ("with a dot", "evt.1"),
        ("that is a dot", "."),
        ("with a blank", "evt 1"),
        ("with a tab", "evt\t1"),
        ("with a NUL", "evt\x001"),
        ("with an escape", "evt\x1b[31m"),
        ("outside ASCII", "evt\xe9"),
        ("of 300 characters", "e" * 300),
    )
