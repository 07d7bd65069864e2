"""No mutation of a good message of SNS is believed, and nothing but a refusal comes of noise."""

import base64
import contextlib
import json
from collections.abc import Iterator, Mapping

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hookbox.errors import Refused
from hookbox.model import StoredEvent
from tests.providers.requests import Headers, delivery
from tests.providers.topics import (
    FAREWELL,
    NOTIFICATION,
    NOW_S,
    OFFER,
    headers,
    posted,
    pss_signature,
    signature,
    signed_text,
    source,
    stranger,
    trusting,
)
from tests.rules.hostile import CERTIFICATE_URLS

MUTATIONS_MIN = 80
MESSAGES = pytest.mark.parametrize(
    "message", [NOTIFICATION, OFFER, FAREWELL], ids=lambda message: message["Type"]
)

Mutation = tuple[str, Headers, bytes]


def mutations(message: Mapping[str, str], version: str) -> Iterator[Mutation]:
    good, sent = posted(message, version), headers(message["Type"])
    named = [
        *_members(message, version),
        *_signatures(message, version),
        *((f"certificate at {url[:60]!r}", {"SigningCertURL": url}) for url in CERTIFICATE_URLS),
    ]
    yield from ((name, sent, good.but(**changed).body) for name, changed in named)
    for gone in (*message, "Signature", "SignatureVersion", "SigningCertURL"):
        yield f"without {gone}", sent, good.without(gone).body
    yield from ((name, sent, body) for name, body in _bodies(good.body))
    for kind in {"Notification", "SubscriptionConfirmation", "UnsubscribeConfirmation", "x"}:
        if kind != message["Type"]:
            yield f"type header {kind}", headers(kind), good.body
    yield "type header twice", [*sent.items(), *sent.items()], good.body


def _members(message: Mapping[str, str], version: str) -> Iterator[tuple[str, dict[str, object]]]:
    for name, text in message.items():
        for what, changed in {
            "empty": "",
            "a letter longer": text + "x",
            "a letter shorter": text[:-1],
            "with a line break": text + "\n",
            "with a blank": text + " ",
            "behind a blank": " " + text,
            "in other case": text.swapcase(),
            "null": None,
            "a number": 5,
            "a list": [text],
            "an object": {"text": text},
        }.items():
            if changed != text:
                yield f"{name} {what}", {name: changed}
    for other in ("Notification", "SubscriptionConfirmation", "UnsubscribeConfirmation"):
        if other != message["Type"]:
            yield f"as a {other}", {**OFFER, **message, "Type": other}
    if "Subject" not in message and message["Type"] == "Notification":
        yield "with a subject", {"Subject": "x"}
    for other in ("1", "2"):
        if other != version:
            yield f"version {other}", {"SignatureVersion": other}
    yield "version as a number", {"SignatureVersion": int(version)}


def _signatures(
    message: Mapping[str, str], version: str
) -> Iterator[tuple[str, dict[str, object]]]:
    text, right = signed_text(message), str(posted(message, version).members["Signature"])
    digest = {"1": "sha1", "2": "sha256"}[version]
    raw = base64.b64decode(right)
    names = list(message)
    for what, changed in {
        "empty": "",
        "a blank": " ",
        "null": None,
        "a list": [right],
        "behind a blank": " " + right,
        "and a blank": right + " ",
        "and a line break": right + "\n",
        "with a line break in it": right[:76] + "\n" + right[76:],
        "without padding": right.rstrip("="),
        "with more padding": right + "=",
        "in the other alphabet": right.translate(str.maketrans("+/", "-_")) + "-_",
        "in hexadecimal": raw.hex(),
        "in other case": right.swapcase(),
        "twice": right + right,
        "cut": base64.b64encode(raw[:-1]).decode(),
        "longer": base64.b64encode(raw + b"\0").decode(),
        "with a zero in front": base64.b64encode(b"\0" + raw).decode(),
        "of zeros": base64.b64encode(bytes(256)).decode(),
        "of ones": base64.b64encode(b"\xff" * 256).decode(),
        "reversed": base64.b64encode(raw[::-1]).decode(),
        "outside ASCII": "\u00e9" + right,
        "as the word undefined": "undefined",
        "with a data URL in front": f"data:;base64,{right}",
    }.items():
        yield f"signature {what}", {"Signature": changed}
    for at in range(0, 256, 16):
        flipped = bytearray(raw)
        flipped[at] ^= 1
        yield f"signature flipped at {at}", {"Signature": base64.b64encode(flipped).decode()}
    for what, found in {
        "by a stranger": signature(text, stranger(), digest),
        "with MD5": signature(text, digest="md5"),
        "with SHA-512": signature(text, digest="sha512"),
        "with the other version's digest": signature(
            text, digest="sha1" if version == "2" else "sha256"
        ),
        "with the other padding": pss_signature(text),
        "over nothing": signature(b"", digest=digest),
        "over the values alone": signature("".join(message.values()).encode(), digest=digest),
        "over the text without its last line break": signature(text[:-1], digest=digest),
        "over the text with another line break": signature(text + b"\n", digest=digest),
        "over the text with CR LF": signature(text.replace(b"\n", b"\r\n"), digest=digest),
        "over the members as they come": signature(
            "".join(f"{name}\n{message[name]}\n" for name in names).encode() + b"\n", digest=digest
        ),
        "over the escaped message": signature(
            text.replace(message["Message"].encode(), json.dumps(message["Message"]).encode()),
            digest=digest,
        ),
        "over the body": signature(json.dumps(message).encode(), digest=digest),
        "over the text in UTF-16": signature(text.decode().encode("utf-16"), digest=digest),
        "over the text in lower case": signature(text.lower(), digest=digest),
    }.items():
        yield f"signed {what}", {"Signature": found}


def _bodies(body: bytes) -> Iterator[tuple[str, bytes]]:
    yield "no body", b""
    yield "cut", body[:-1]
    yield "cut in half", body[: len(body) // 2]
    yield "twice", body + body
    yield "and more", body + b"x"
    yield "in a list", b"[" + body + b"]"
    yield "as a text", json.dumps(body.decode()).encode()
    yield "as UTF-16", body.decode().encode("utf-16")
    yield "with a byte of latin-1", body.replace(b"SES", b"S\xe9S") + b"\xe9"
    yield "with NaN", body[:-1] + b', "x": NaN}'
    yield "with a huge number", body[:-1] + b', "x": ' + b"9" * 5000 + b"}"
    yield "with depth", body[:-1] + b', "x": ' + b"[" * 50_000 + b"]" * 50_000 + b"}"
    for name in ("Message", "MessageId", "TopicArn", "Type", "SigningCertURL", "Signature", "x"):
        twice = f', "{name}": "first", "{name}": "second"}}'.encode()
        yield f"with {name} twice", body[:-1] + twice
    yield "as a form", b"Type=Notification&Message=x"
    yield "as XML", b"<Notification/>"


@pytest.mark.parametrize("version", ["1", "2"])
@MESSAGES
def test_no_mutation_is_believed(message: Mapping[str, str], version: str) -> None:
    """Neither by the question for a certificate nor, whatever that says, by the proof."""
    provider = source()
    trust, tried, believed = trusting(provider), 0, []
    for name, sent, body in mutations(message, version):
        tried += 1
        received = delivery(sent, body)
        try:
            provider.verify(received, trust, NOW_S * 1000)
        except Refused:
            continue
        believed.append(name)
    assert believed == []
    assert tried >= MUTATIONS_MIN


@pytest.mark.parametrize("version", ["1", "2"])
@MESSAGES
def test_what_the_mutations_start_from_is_believed(
    message: Mapping[str, str], version: str
) -> None:
    """However the body is written: the signature is over what it says."""
    provider, good = source(), posted(message, version)
    for body in (
        good.body,
        json.dumps(good.members, sort_keys=True, separators=(",", ":")).encode(),
        json.dumps(good.members, ensure_ascii=False).replace("/", "\\/").encode(),
        b"\xef\xbb\xbf" + good.body + b"\r\n",
    ):
        received = delivery(headers(message["Type"]), body)
        assert provider.verify(received, trusting(provider), NOW_S * 1000).skew_s == 0


# -- noise ---------------------------------------------------------------------------------------

TEXT = st.text(st.characters(exclude_categories=()), max_size=40)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


@given(
    changed=st.dictionaries(st.sampled_from([*posted(OFFER).members]), JSON, min_size=1),
    noise=st.dictionaries(TEXT, JSON, max_size=2),
)
@settings(max_examples=100)
def test_noise_in_an_envelope_is_refused_and_nothing_else(
    changed: dict[str, object], noise: dict[str, object]
) -> None:
    provider, good = source(), posted(OFFER)
    assume(any(good.members[name] != value for name, value in changed.items()))
    received = delivery({}, json.dumps({**noise, **good.members, **changed}).encode())
    assert provider.certificate_url
    with contextlib.suppress(Refused):
        provider.certificate_url(received, trusting(provider))
    with pytest.raises(Refused):
        provider.verify(received, trusting(provider), NOW_S * 1000)


SES = st.sampled_from(
    [
        *("eventType", "notificationType", "mail", "bounce", "complaint", "delivery", "send"),
        *("reject", "open", "click", "failure", "deliveryDelay", "subscription", "receipt"),
        *("destination", "timestamp", "messageId", "tags", "commonHeaders", "feedbackId", "link"),
        *("bouncedRecipients", "complainedRecipients", "delayedRecipients", "recipients", "action"),
        *("emailAddress", "bounceType", "bounceSubType", "complaintFeedbackType", "diagnosticCode"),
        *("newTopicPreferences", "oldTopicPreferences", "topicSubscriptionStatus", "topicName"),
        *("subscriptionStatus", "unsubscribeAll", "contactList", "spamVerdict", "status"),
    ]
)
WORDS = st.sampled_from(
    [
        *("Bounce", "Complaint", "Delivery", "Send", "Reject", "Open", "Click", "DeliveryDelay"),
        *("Rendering Failure", "Subscription", "Received", "Permanent", "Transient", "OptOut"),
        *("not-spam", "OnAccountSuppressionList", "ana@example.com", "2026-03-14T09:26:55Z"),
    ]
)
REPORTS = st.recursive(
    JSON | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(SES, inner, max_size=8),
    max_leaves=30,
)


@given(word=WORDS, report=st.dictionaries(SES, REPORTS, max_size=8))
@settings(max_examples=100)
def test_odd_report_is_read_whatever_it_says(word: str, report: dict[str, object]) -> None:
    provider = source()
    message = json.dumps({**report, "eventType": word})
    assume("NaN" not in message and "Infinity" not in message)
    event = StoredEvent(
        id=1,
        source="test",
        key="k",
        raw_kind=word,
        content=posted({**NOTIFICATION, "Message": message}).body,
        headers={},
        received_at=NOW_S * 1000,
    )
    found = provider.normalize(event)
    assert found
    assert all(each.recipient is None or each.recipient.isprintable() for each in found)
    json.dumps([dict(each.extras) for each in found])
