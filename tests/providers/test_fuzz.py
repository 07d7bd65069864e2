"""Whatever comes in, providers raise nothing but what they declare."""

import contextlib
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hookbox.errors import Refused, Unintelligible
from hookbox.model import Handshake, Notification, StoredEvent
from hookbox.providers import PROVIDERS
from hookbox.providers.standardwebhooks import ID as ID_FORM
from tests.providers.mutations import BODY, ID, NOW_S, TIME
from tests.providers.requests import (
    PLAINEST,
    delivery,
    proved,
    provider_of,
    stored,
    trust,
)
from tests.providers.senders import SECRETS, SENDERS, Sender

NAMES = [
    *(name.lower() for sender in SENDERS for name in sender.sign(ID, TIME, BODY)),
    "content-encoding",
    "x-email-digit-event-id",
]
# Values near the real ones reach deeper than noise does.
VALUES = st.one_of(
    st.binary(max_size=60),
    st.sampled_from([b"gzip", b"deflate", b"br", TIME.encode(), b"v1,", b"sha256=", b"t=,v1="]),
    st.tuples(st.sampled_from([b"v1,", b"sha256=", b"t=1,sha256=", b"v0="]), st.binary()).map(
        b"".join
    ),
)
HEADERS = st.lists(st.tuples(st.sampled_from(sorted(set(NAMES))), VALUES), max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
MEMBERS = ("id", "type", "data", "created_at", "timestamp", "event", "challenge", "events")
DATA = ("recipient", "email", "to", "message_id", "bounce", "status", "type", "reason")
OBJECTS = st.dictionaries(
    st.sampled_from(MEMBERS), JSON | st.dictionaries(st.sampled_from(DATA), JSON)
)
BODIES = st.binary(max_size=200) | (JSON | OBJECTS).map(lambda value: json.dumps(value).encode())

OPTIONS: dict[str, list[dict[str, object]]] = {
    "hmac": [
        PLAINEST,
        {**PLAINEST, "items": "/events", "natural_key": ["/type"]},
        {**PLAINEST, "body": "form", "signed": "{ts}{form_sorted}{query:a}{body}"},
        {**PLAINEST, "signed": "{json:/data/to}{ts}{body}", "signs": "plain", "id": "{/id}{/type}"},
        {**PLAINEST, "challenge": {"when": "/type", "equals": "x", "echo": "/challenge"}},
    ]
}
EVERY = [(name, options) for name in sorted(PROVIDERS) for options in OPTIONS.get(name, [None])]
CASES = pytest.mark.parametrize(
    ("name", "options"), EVERY, ids=[f"{name}-{n}" for n, (name, _) in enumerate(EVERY)]
)


@CASES
@given(headers=HEADERS, body=BODIES, query=st.binary(max_size=20))
@settings(max_examples=25)
def test_verify_refuses_and_does_nothing_else(
    name: str,
    options: dict[str, object] | None,
    headers: list[tuple[str, bytes]],
    body: bytes,
    query: bytes,
) -> None:
    provider = provider_of(name, options)
    secrets = [SECRETS[name]] if name in SECRETS else []  # some trust certificates instead
    with contextlib.suppress(Refused):
        provider.verify(delivery(headers, body, query), trust(provider, *secrets), NOW_S * 1000)
        pytest.fail("noise was believed")


def _passes(name: str, header: str, value: bytes) -> bool:
    """Whether `verify` lets this header pass: what it refuses never gets to `split`."""
    two_sets = name in ("svix", "resend")
    if header in ("webhook-id", "svix-id"):
        return bool(ID_FORM.fullmatch(value)) and two_sets == (header == "svix-id")
    return value.isascii() and not (two_sets and header.startswith("webhook-"))


@CASES
@given(headers=HEADERS, body=BODIES)
@settings(max_examples=40)
def test_proved_noise_is_split_and_read_or_set_aside(
    name: str,
    options: dict[str, object] | None,
    headers: list[tuple[str, bytes]],
    body: bytes,
) -> None:
    provider = provider_of(name, options)
    once = {header: value for header, value in headers if _passes(name, header, value)}
    received = proved(delivery(once.items(), body))
    try:
        split = provider.split(received)
    except Unintelligible:
        return
    if isinstance(split, Handshake):
        return
    for event in split.events:
        assert event.key.isprintable()
        assert event.raw_kind.isprintable() or "\n" in event.raw_kind or "\t" in event.raw_kind
        for notification in provider.normalize(stored(provider, received, event)):
            _check(notification)


@CASES
@given(content=BODIES, headers=HEADERS)
@settings(max_examples=25)
def test_normalize_never_raises(
    name: str,
    options: dict[str, object] | None,
    content: bytes,
    headers: list[tuple[str, bytes]],
) -> None:
    event = StoredEvent(
        id=1,
        source="test",
        key="k",
        raw_kind="",
        content=content,
        headers={header: value.decode("latin-1") for header, value in headers},
        received_at=0,
    )
    notifications = provider_of(name, options).normalize(event)
    assert notifications
    for notification in notifications:
        _check(notification)


def _check(notification: Notification) -> None:
    """Texts fit into UTF-8 columns; extras are JSON."""
    for text in (notification.recipient, notification.message_id, *notification.candidates):
        assert text is None or "\0" not in text.encode().decode()
    json.dumps(notification.extras, allow_nan=False).encode()


@given(body=st.binary(max_size=300))
@pytest.mark.parametrize("sender", SENDERS, ids=str)
@settings(max_examples=20)
def test_any_bytes_rightly_signed_are_accepted(sender: Sender, body: bytes) -> None:
    """Nothing about the body is looked at before the signature was found right."""
    provider = provider_of(sender.name)
    good = delivery(sender.sign(ID, TIME, body), body)
    provider.verify(good, trust(provider, sender.secret), NOW_S * 1000)
