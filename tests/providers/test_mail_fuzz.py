"""The mail senders' own samples with anything in any member: read or set aside, never tripped over.

What comes before trust (Mailgun's triple) is refused at worst; what comes after is an event, a
piece in quarantine, or Unintelligible.
"""

import hashlib
import hmac
import json
from collections.abc import Iterator
from urllib.parse import urlencode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hookbox.errors import Refused, Unintelligible
from hookbox.model import Notification, Split
from tests.providers.requests import delivery, proved, provider_of, stored, trust
from tests.providers.samples import Sample, samples
from tests.providers.senders import SECRETS

MAIL = ("sendgrid", "mailgun", "postmark", "resend")
SAMPLES = [each for each in samples() if each.provider in MAIL]
NOW_S = 1_773_480_413

# Text that databases, terminals and encoders trip over; numbers that do not fit anywhere.
ODD = st.sampled_from(
    [
        *("", " ", "None", "\0", "\ud83d", "a\nb", "\u202e", "x" * 3000, "1" * 30, "NaN", "é@é.é"),
        *("a@example.com", "<a@example.com>", "a@example.com, b@example.com", "2026-03-14"),
        *(0, -1, 2**63, 10**30, 1e300, 1e-300, True, False, None, [], {}, [None], {"": {}}),
    ]
)
JSON = st.recursive(
    ODD | st.text() | st.integers() | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


def _places(document: object, above: tuple[object, ...] = ()) -> Iterator[tuple[object, ...]]:
    """Every place in the document, the document itself included."""
    yield above
    if isinstance(document, dict):
        for name, value in document.items():
            yield from _places(value, (*above, name))
    elif isinstance(document, list):
        for number, value in enumerate(document):
            yield from _places(value, (*above, number))


def _with(document: object, place: tuple[object, ...], value: object) -> object:
    if not place:
        return value
    first, rest = place[0], place[1:]
    if isinstance(document, dict):
        return {**document, first: _with(document[first], rest, value)}
    assert isinstance(document, list)
    assert isinstance(first, int)
    return [*document[:first], _with(document[first], rest, value), *document[first + 1 :]]


def _check(notification: Notification) -> None:
    """What leaves a provider can be stored, shown and sent on."""
    for text in (
        *(notification.recipient, notification.message_id, notification.meaning),
        *(notification.scope, *notification.candidates),
    ):
        assert text is None or "\0" not in text.encode().decode()
    json.dumps(notification.extras, allow_nan=False, ensure_ascii=False).encode()
    assert not (notification.suppress and (notification.ambiguous or notification.scope))


def _read(sample: Sample, body: bytes) -> None:
    provider = provider_of(sample.provider)
    verified = proved(delivery(sample.headers, body))
    try:
        split = provider.split(verified)
    except Unintelligible:
        return
    assert isinstance(split, Split)
    for event in split.events:
        assert event.key.isprintable()
        assert len(event.digest) == 32
        for notification in provider.normalize(stored(provider, verified, event)):
            _check(notification)


JSON_SAMPLES = [each for each in SAMPLES if each.body[:1] in (b"{", b"[")]


@pytest.mark.parametrize("sample", JSON_SAMPLES, ids=str)
@given(choices=st.data())
@settings(max_examples=12)
def test_anything_anywhere_is_read_or_set_aside(sample: Sample, choices: st.DataObject) -> None:
    document = json.loads(sample.body)
    for _ in range(choices.draw(st.integers(1, 3))):
        place = choices.draw(st.sampled_from(list(_places(document))))
        document = _with(document, place, choices.draw(JSON))
    _read(sample, json.dumps(document).encode())


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
@given(at=st.integers(0, 10**6), noise=st.binary(max_size=4))
@settings(max_examples=12)
def test_any_bytes_anywhere_are_read_or_set_aside(sample: Sample, at: int, noise: bytes) -> None:
    at %= len(sample.body) + 1
    _read(sample, sample.body[:at] + noise + sample.body[at + len(noise) :])


TRIPLE = st.fixed_dictionaries(
    {},
    optional={
        name: JSON | st.just(str(NOW_S)) | st.just("a1" * 25)
        for name in ("timestamp", "token", "signature", "parent-signature")
    },
)


@given(block=TRIPLE | JSON, event=JSON)
@settings(max_examples=200)
def test_anything_in_mailguns_triple_is_refused(block: object, event: object) -> None:
    provider = provider_of("mailgun")
    body = json.dumps({"signature": block, "event-data": event}).encode()
    with pytest.raises(Refused):
        provider.verify(delivery({}, body), trust(provider, SECRETS["mailgun"]), NOW_S * 1000)


@given(event=JSON)
@settings(max_examples=100)
def test_anything_beside_a_right_triple_is_split_and_never_refused(event: object) -> None:
    provider, stamp, token = provider_of("mailgun"), str(NOW_S), "a1" * 25
    mac = hmac.new(SECRETS["mailgun"].encode(), (stamp + token).encode(), hashlib.sha256)
    triple = {"timestamp": stamp, "token": token, "signature": mac.hexdigest()}
    text = json.dumps(event)
    for body in (
        json.dumps({"signature": triple, "event-data": event}).encode(),
        urlencode({"message-headers": text, "recipient": text, "event": text, **triple}).encode(),
    ):
        verified = provider.verify(
            delivery({}, body), trust(provider, SECRETS["mailgun"]), NOW_S * 1000
        )
        split = provider.split(verified)
        assert isinstance(split, Split)
        assert split.token == token
        for each in split.events:
            for notification in provider.normalize(stored(provider, verified, each)):
                _check(notification)
