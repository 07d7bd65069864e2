"""The declarative provider: each setting does what it says."""

import base64
import gzip
import hashlib
import hmac
import json
import zlib
from collections.abc import Callable

import pytest

from hookbox.errors import Reason, Refused, Unintelligible
from hookbox.model import Handshake, Kind, Slot, Split
from hookbox.providers.contract import KeyKind, Provider, SignedTime
from hookbox.rules.digest import read_json
from tests.providers.mutations import NOW_S
from tests.providers.requests import (
    PLAINEST,
    Headers,
    delivery,
    events,
    proved,
    provider_of,
    stored,
    trust,
)
from tests.providers.senders import SECRET

KEY = SECRET.encode()
UNTIMED = {name: value for name, value in PLAINEST.items() if name != "timestamp"}
BODY_ONLY = {**UNTIMED, "signed": "{body}"}


def _mac(message: bytes, algorithm: str = "sha256", key: bytes = KEY) -> bytes:
    return hmac.new(key, message, getattr(hashlib, algorithm)).digest()


def _accepts(
    provider: Provider, headers: Headers, body: bytes, query: bytes = b"", secret: str = SECRET
) -> bool:
    try:
        provider.verify(delivery(headers, body, query), trust(provider, secret), NOW_S * 1000)
    except Refused:
        return False
    return True


def _split(options: dict[str, object], headers: Headers, body: bytes) -> Split:
    split = provider_of("hmac", {**PLAINEST, **options}).split(proved(delivery(headers, body)))
    assert isinstance(split, Split)
    return split


@pytest.mark.parametrize("algorithm", ["sha256", "sha1", "sha512"])
@pytest.mark.parametrize(
    ("encoding", "encode"),
    [
        ("hex", lambda mac: mac.hex()),
        ("base64", lambda mac: base64.b64encode(mac).decode()),
        ("base64url", lambda mac: base64.urlsafe_b64encode(mac).decode()),
        ("base64-unpadded", lambda mac: base64.b64encode(mac).decode().rstrip("=")),
        ("base64url-unpadded", lambda mac: base64.urlsafe_b64encode(mac).decode().rstrip("=")),
    ],
)
def test_algorithms_and_encodings(
    algorithm: str, encoding: str, encode: Callable[[bytes], str]
) -> None:
    options = {"algorithm": f"hmac-{algorithm}", "signature_encoding": encoding}
    provider = provider_of("hmac", {**BODY_ONLY, **options})
    text = encode(_mac(b"{}", algorithm))
    assert _accepts(provider, {"X-Signature": text}, b"{}")
    assert not _accepts(provider, {"X-Signature": text}, b"{} ")
    for other in ("sha256", "sha1", "sha512"):
        if other != algorithm:
            assert not _accepts(provider, {"X-Signature": encode(_mac(b"{}", other))}, b"{}")


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("utf8", SECRET),
        ("utf8", f"  {SECRET}\n"),
        ("hex", KEY.hex()),
        ("base64", base64.b64encode(KEY).decode()),
        ("base64", base64.b64encode(KEY).decode().rstrip("=")),
        ("base64url", base64.urlsafe_b64encode(KEY).decode()),
        ("whsec", "whsec_" + base64.b64encode(KEY).decode()),
        ("whsec", base64.b64encode(KEY).decode() + "\n"),
    ],
)
def test_secret_encoding_is_as_told_and_never_guessed(encoding: str, text: str) -> None:
    provider = provider_of("hmac", {**BODY_ONLY, "secret_encoding": encoding})
    assert _accepts(provider, {"X-Signature": _mac(b"{}").hex()}, b"{}", secret=text)
    plain = provider_of("hmac", BODY_ONLY)
    right = encoding == "utf8"
    assert _accepts(plain, {"X-Signature": _mac(b"{}").hex()}, b"{}", secret=text) is right


@pytest.mark.parametrize(
    ("template", "signed"),
    [
        ("{body}", b"{}"),
        ("v0:{header:X-Time}:{body}", b"v0:17:{}"),
        ("{query:token}.{body}", b"t o/\xe9k.{}"),
        ("{url}{body}", b"https://hooks.example.com/hooks/x{}"),
        ("{header:X-Time}{header:X-Nonce}", b"17n1"),
        ("{body}\N{SNOWMAN}", "{}\N{SNOWMAN}".encode()),
    ],
)
def test_template_says_what_is_signed(template: str, signed: bytes) -> None:
    url = {"url": "https://hooks.example.com/hooks/x"}
    provider = provider_of("hmac", {**BODY_ONLY, **url, "signed": template})
    headers = {"X-Signature": _mac(signed).hex(), "X-Time": "17", "X-Nonce": "n1"}
    query = b"a=1&token=t+o%2F%E9k"
    assert _accepts(provider, headers, b"{}", query)
    assert not _accepts(provider, {**headers, "X-Signature": _mac(b"").hex()}, b"{}", query)


def test_parts_in_the_body_and_in_a_form() -> None:
    """A sender that signs fields of its JSON, and one that signs its sorted form under its URL."""
    options = {"signed": "{json:/sig/ts}{json:/sig/token}", "signature": "/sig/mac"}
    provider = provider_of("hmac", {**BODY_ONLY, **options})
    assert provider.signs_body is False
    mac = _mac(b"17tok").hex()
    for ts in ("17", 17):
        body = json.dumps({"sig": {"ts": ts, "token": "tok", "mac": mac}}).encode()
        assert _accepts(provider, {}, body)
    assert not _accepts(provider, {}, b'{"sig": {"ts": 17, "mac": "%b"}}' % mac.encode())
    assert not _accepts(provider, {}, b'{"sig": {"ts": 17, "token": "tok"}}')
    assert not _accepts(provider, {}, b"[")

    options = {"signed": "{url}{form_sorted}", "url": "https://x.example.com", "body": "form"}
    provider = provider_of("hmac", {**BODY_ONLY, **options})
    signed = b"https://x.example.coma" + "é+ b".encode() + b"b2b1c"
    headers = {"X-Signature": _mac(signed).hex()}
    assert _accepts(provider, headers, b"b=2&b=1&c=&a=%C3%A9%2B+b")
    assert not _accepts(provider, headers, b"b=1&b=2&c=&a=%C3%A9%2B+b")
    assert not _accepts(provider, headers, b"&".join([b"a=1"] * 1001))


@pytest.mark.parametrize(
    ("nonce", "body"), [("n.1", b"{}"), ("n", b"1.{}")], ids=["in the part", "in the body"]
)
def test_signed_text_is_taken_apart_in_one_way_only(nonce: str, body: bytes) -> None:
    """`n.1` + `.` + `{}` and `n` + `.` + `1.{}` are the same bytes, so only one may be right."""
    provider = provider_of("hmac", {**BODY_ONLY, "signed": "{header:X-Nonce}.{body}"})
    headers = {"X-Signature": _mac(b"n.1.{}").hex(), "X-Nonce": nonce}
    assert _accepts(provider, headers, body) is ("." not in nonce)


def test_url_is_the_configured_one_whatever_the_request_says() -> None:
    options = {"signed": "{url}{body}", "url": "https://hooks.example.com/hooks/x"}
    provider = provider_of("hmac", {**BODY_ONLY, **options})
    for host in ("hooks.example.com", "evil.example"):
        headers = {"Host": host, "X-Forwarded-Host": host, "X-Forwarded-Proto": "http"}
        right = _mac(b"https://hooks.example.com/hooks/x{}").hex()
        wrong = _mac(f"http://{host}/hooks/x{{}}".encode()).hex()
        assert _accepts(provider, {**headers, "X-Signature": right}, b"{}")
        assert not _accepts(provider, {**headers, "X-Signature": wrong}, b"{}")


def test_signature_patterns_lists_and_pairs() -> None:
    mac = _mac(b"{}").hex()
    several = {"signature_pattern": ["sha256={sig}", "({sig})"], "signature_separator": " "}
    provider = provider_of("hmac", {**BODY_ONLY, **several})
    for text in (f"sha256={mac}", f"({mac})", f"junk sha256=00 ({mac}) more"):
        assert _accepts(provider, {"X-Signature": text}, b"{}")
    for text in (mac, f"sha256=({mac})", f"sha1={mac}", f"sha256={mac},x", f"({mac}"):
        assert not _accepts(provider, {"X-Signature": text}, b"{}")
    assert not _accepts(provider, {"X-Signature": " ".join([f"({mac})"] * 17)}, b"{}")

    semicolons = {"signature_pair": "sig", "signature_separator": ";", "timestamp": "pair:ts"}
    provider = provider_of("hmac", {**PLAINEST, **semicolons})
    mac = _mac(b"%d.{}" % NOW_S).hex()
    for text in (f"ts={NOW_S};sig={mac}", f"sig=00; sig={mac} ;v=1; ts={NOW_S}"):
        assert _accepts(provider, {"X-Signature": text}, b"{}")
    for text in (f"ts={NOW_S},sig={mac}", f"ts={NOW_S};ts={NOW_S};sig={mac}", f"sig={mac}"):
        assert not _accepts(provider, {"X-Signature": text}, b"{}")


@pytest.mark.parametrize(
    ("unit", "text", "right"),
    [
        ("s", str(NOW_S), True),
        ("s", f"{NOW_S}000", False),
        ("ms", f"{NOW_S}999", True),
        ("ms", str(NOW_S), False),
        ("iso8601", "2026-03-14T09:26:53.5Z", True),
        ("iso8601", "2026-03-14T10:26:53+01:00", True),
        ("iso8601", "2026-03-14T10:26:53Z", False),
        ("iso8601", "2026-03-14T09:26:53", False),
        ("iso8601", str(NOW_S), False),
        ("iso8601", "Sat, 14 Mar 2026 09:26:53 +00:00", False),
    ],
)
def test_timestamp_units(unit: str, text: str, right: bool) -> None:
    provider = provider_of("hmac", {**PLAINEST, "timestamp_unit": unit})
    headers = {"X-Signature": _mac(f"{text}.{{}}".encode()).hex(), "X-Timestamp": text}
    assert _accepts(provider, headers, b"{}") is right


def test_facts_follow_the_settings() -> None:
    provider = provider_of("hmac")
    assert (provider.signed_time, provider.tolerance_s) == (SignedTime.ATTEMPT, 300)
    assert (provider.key_kind, provider.signs_body) == (KeyKind.BODY, True)
    provider = provider_of("hmac", {**BODY_ONLY, "id": "header:X-Id"})
    assert (provider.signed_time, provider.tolerance_s) == (SignedTime.NONE, None)
    assert provider.key_kind is KeyKind.HEADER
    changing = {"id_stable": False, "natural_key": ["/order"]}
    assert provider_of("hmac", {**BODY_ONLY, **changing}).key_kind is KeyKind.SYNTHESISED
    kept = {"map": {"kind": "header:X-Kind", "occurred_at": ["/at", "header:X-At"]}}
    assert provider_of("hmac", {**BODY_ONLY, **kept}).headers_kept == {"x-kind", "x-at"}


# -- identity ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("identity", "body", "key"),
    [
        ("/id", b'{"id": "e1"}', "e1"),
        ("/id", b'{"id": 92356927693813856}', "92356927693813856"),
        ("json:/data/0/id", b'{"data": [{"id": "x y"}]}', "x y"),
        ("header:X-Id", b"{}", "h1"),
        ("{header:X-Id}:{/id}", b'{"id": 7}', "h1:7"),
    ],
)
def test_id_stands_where_the_setting_says(identity: str, body: bytes, key: str) -> None:
    (event,) = _split({"id": identity}, {"X-Id": "h1"}, body).events
    assert (event.key, event.synthesised) == (key, False)


@pytest.mark.parametrize(
    "body",
    [
        *(b"{}", b'{"id": null}', b'{"id": ""}', b'{"id": true}', b'{"id": 1.5}', b'{"id": []}'),
        *(b'{"id": "a\\u0000"}', b'{"id": "\\ud83d"}', b'{"id": "a\\nb"}', b'{"id": {"a": 1}}'),
        b'{"id": "' + b"x" * 600 + b'"}',
    ],
)
def test_unusable_id_is_no_identity(body: bytes) -> None:
    """`None` as text would make all such events one; each is set aside instead."""
    with pytest.raises(Unintelligible):
        _split({}, {}, body)


def test_natural_key_takes_over_where_there_is_no_usable_id() -> None:
    """And each use of it is marked."""
    for body in (b'{"order": 1}', b'{"order": 1, "id": null}', b'{"order": 1, "id": "a\\n"}'):
        (event,) = _split({"natural_key": ["/order"]}, {}, body).events
        assert event.synthesised
    (event,) = _split({"natural_key": ["/order"]}, {}, b'{"order": 1, "id": "a"}').events
    assert (event.key, event.synthesised) == ("a", False)


def test_natural_key_is_made_of_its_parts() -> None:
    pointers = ["/order", "/status", "/to", "/paid", "/missing"]
    body = b'{"order": 17, "status": "Sent", "to": "Ana@Example.com", "paid": true}'
    (event,) = _split({"natural_key": pointers}, {}, body).events
    parts = b"17|Sent|ana@example.com|true|"
    assert (event.key, event.synthesised) == (f"h:{hashlib.sha256(parts).hexdigest()}", True)


def test_unstable_ids_are_not_used() -> None:
    options = {"id_stable": False, "natural_key": ["/order", "/status"]}
    keys = {
        _split(options, {}, b'{"id": "%d", "order": 1, "status": "sent"}' % attempt).events[0].key
        for attempt in range(3)
    }
    assert len(keys) == 1
    with pytest.raises(Unintelligible):
        _split(options, {}, b'{"id": "e1"}')


# -- content -------------------------------------------------------------------------------------


def test_batch_is_kept_as_slices_and_rot_is_set_aside_alone() -> None:
    body = (
        '{"n": [1], "events": [ {"id": "é1"} ,\r\n{"id": 2, "x": NaN},{"id": "c", "id": "d"}, 7,'
        '{"no": "id"}, {"id": "ü2"} ] , "after": "ok"}\r\n'
    ).encode()
    split = _split({"items": "/events"}, {}, body)
    assert [event.key for event in split.events] == ["é1", "ü2"]
    for event in split.events:
        content = body[event.start : event.end]
        assert json.loads(content)["id"] == event.key
        assert event.digest == read_json(content).digest
    assert [rotten.content for rotten in split.rotten] == [
        b'{"id": 2, "x": NaN}',
        b'{"id": "c", "id": "d"}',
        b"7",
        b'{"no": "id"}',
    ]


def test_regrouped_batch_has_the_same_events() -> None:
    one, two = b'{"id": "1", "a": 1.50}', b'{"id": "2"}'
    together = _split({"items": ""}, {}, b"[%b, %b]" % (one, two)).events
    alone = [_split({"items": ""}, {}, b"[ %b ]" % each).events[0] for each in (one, two)]
    for first, second in zip(together, alone, strict=True):
        assert (first.key, first.digest) == (second.key, second.digest)


@pytest.mark.parametrize("body", [b"", b"[", b"{}", b'{"events": 1}', b'{"events": [}', b"[]"])
def test_batch_that_is_none_is_set_aside(body: bytes) -> None:
    with pytest.raises(Unintelligible):
        _split({"items": "/events"}, {}, body)


def test_empty_batch_is_no_event_and_no_fault() -> None:
    assert _split({"items": ""}, {}, b" [ ] \r\n") == Split()


def test_form_becomes_a_flat_object() -> None:
    options = {"body": "form", "map": {"recipient": "/to", "kind": "/event"}}
    provider = provider_of("hmac", {**PLAINEST, **options})
    received = delivery({}, b"id=e1&event=bounced&to=Ana%40example.com&note=a+b%26")
    (event,) = events(provider.split(proved(received)))
    assert event.key == "e1"
    (notification,) = provider.normalize(stored(provider, proved(received), event))
    assert (notification.kind, notification.recipient) == (Kind.BOUNCED, "Ana@example.com")
    for body in (b"id=1&id=2", b"id=%FF", b"&".join([b"a=1"] * 1001)):
        with pytest.raises(Unintelligible):
            provider.split(proved(delivery({}, body)))


def test_challenge_is_answered_and_leaves_no_event() -> None:
    options = {"challenge": {"when": "/type", "equals": "verify", "echo": "/challenge"}}
    provider = provider_of("hmac", {**PLAINEST, **options})

    def answer(body: bytes) -> object:
        return provider.split(proved(delivery({}, body)))

    assert answer(b'{"type": "verify", "challenge": "abc"}') == Handshake(answer=b"abc")
    assert isinstance(answer(b'{"type": "verify", "id": "1"}'), Split)
    assert isinstance(answer(b'{"type": "other", "challenge": "abc", "id": "1"}'), Split)
    assert answer(b'{"type": "verify", "challenge": "\\ud83d"}') == Handshake(answer=b"?")


# -- Content-Encoding ----------------------------------------------------------------------------

PLAIN = b'{"id": "e1", "type": "email.sent"}'
CODED = {
    "gzip": gzip.compress(PLAIN),
    "x-gzip": gzip.compress(PLAIN),
    "GZip": gzip.compress(PLAIN),
    "deflate": zlib.compress(PLAIN),
    "Deflate": zlib.compress(PLAIN)[2:-4],  # without its frame, as some senders do
    "identity": PLAIN,
}


@pytest.mark.parametrize("coding", CODED)
def test_signature_over_the_bytes_received_then_inflated(coding: str) -> None:
    provider = provider_of("hmac", BODY_ONLY)
    body = CODED[coding]
    headers = {"Content-Encoding": coding, "X-Signature": _mac(body).hex()}
    received = delivery(headers, body)
    verified = provider.verify(received, trust(provider, SECRET), NOW_S * 1000)
    (event,) = events(provider.split(verified))
    assert stored(provider, verified, event).content == PLAIN
    assert event.key == "e1"


def test_signature_over_the_plain_text_only_where_the_source_says_so() -> None:
    body = gzip.compress(PLAIN)
    headers = {"Content-Encoding": "gzip", "X-Signature": _mac(PLAIN).hex()}
    assert not _accepts(provider_of("hmac", BODY_ONLY), headers, body)
    telling = provider_of("hmac", {**BODY_ONLY, "signs": "plain"})
    assert _accepts(telling, headers, body)
    assert not _accepts(telling, {**headers, "X-Signature": _mac(body).hex()}, body)
    for broken in (body[:-1], body + b"x", b"", PLAIN):
        with pytest.raises(Refused) as refused:
            telling.verify(delivery(headers, broken), trust(telling, SECRET), NOW_S * 1000)
        assert refused.value.reason is Reason.ENCODING_UNSUPPORTED
    with pytest.raises(Refused):
        telling.verify(
            delivery({**headers, "Content-Encoding": "br"}, body), trust(telling, SECRET), 0
        )


@pytest.mark.parametrize("coding", ["br", "gzip, gzip", "zstd", "caf\xe9"])
def test_proved_body_in_an_unknown_coding_is_set_aside_not_lost(coding: str) -> None:
    """The coding is not signed: it can hide a proved body from us, and must not cost it."""
    provider = provider_of("hmac", BODY_ONLY)
    headers = {"Content-Encoding": coding, "X-Signature": _mac(PLAIN).hex()}
    verified = provider.verify(delivery(headers, PLAIN), trust(provider, SECRET), NOW_S * 1000)
    with pytest.raises(Unintelligible):
        provider.split(verified)


def test_proved_bomb_is_set_aside_and_unproved_one_is_never_inflated() -> None:
    provider = provider_of("hmac", BODY_ONLY)
    bomb = gzip.compress(b"0" * (20 << 20))
    headers = {"Content-Encoding": "gzip", "X-Signature": _mac(bomb).hex()}
    verified = provider.verify(delivery(headers, bomb), trust(provider, SECRET), NOW_S * 1000)
    with pytest.raises(Unintelligible, match="more than 2 MiB"):
        provider.split(verified)
    assert not _accepts(provider, {**headers, "X-Signature": "0" * 64}, bomb)


def test_key_of_a_broken_body_is_the_signed_header_s_where_there_is_one() -> None:
    provider = provider_of("github")
    with pytest.raises(Unintelligible) as broken:
        provider.split(proved(delivery({"X-GitHub-Delivery": "d1"}, b'{"ref":')))
    assert broken.value.key == "d1"


def test_header_that_names_the_event_is_refused_when_it_is_there_twice() -> None:
    provider = provider_of("github")
    for name in ("X-GitHub-Delivery", "X-GitHub-Event"):
        headers = [("X-Hub-Signature-256", f"sha256={_mac(b'{}').hex()}"), (name, "a"), (name, "a")]
        assert not _accepts(provider, headers, b"{}")
        assert _accepts(provider, headers[:-1], b"{}")


def test_source_adds_to_a_preset() -> None:
    options = {
        "id": "{header:X-GitHub-Hook-ID}:{header:X-GitHub-Delivery}",
        "map": {"types": {"push": "account"}},
    }
    provider = provider_of("github", options)
    headers = {"X-GitHub-Delivery": "d1", "X-GitHub-Hook-ID": "30", "X-GitHub-Event": "push"}
    received = delivery(headers, b"{}")
    (event,) = events(provider.split(proved(received)))
    assert (event.key, event.raw_kind) == ("30:d1", "push")
    (notification,) = provider.normalize(stored(provider, proved(received), event))
    assert notification.kind is Kind.ACCOUNT
    assert provider.kinds == (Kind.ACCOUNT, Kind.CONTROL, Kind.UNKNOWN)


def test_slot_of_a_declared_sender() -> None:
    provider = provider_of("hmac", BODY_ONLY)
    received = delivery({"X-Signature": _mac(b"{}").hex()}, b"{}")
    keys = trust(provider, "another-secret-of-a-length", SECRET)
    assert provider.verify(received, keys, 0).slot is Slot.PREVIOUS
