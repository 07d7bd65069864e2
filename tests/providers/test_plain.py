"""Plain reading, and the maps that replace parts of it."""

import json

import pytest

from hookbox.errors import ConfigError
from hookbox.model import BounceClass, Kind, Notification, StoredEvent, TimeSource
from tests.providers.requests import provider_of

READS = ("standardwebhooks", "svix")


def _read(
    document: object,
    options: dict[str, object] | None = None,
    headers: dict[str, str] | None = None,
) -> Notification:
    event = StoredEvent(
        id=1,
        source="test",
        key="k",
        raw_kind="",
        content=document if isinstance(document, bytes) else json.dumps(document).encode(),
        headers=headers or {},
        received_at=0,
    )
    (notification,) = provider_of("standardwebhooks", options or {}).normalize(event)
    return notification


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        *((f"email.{kind.value}", kind) for kind in Kind),
        ("email.delivery_delayed", Kind.DEFERRED),
        ("email.scheduled", Kind.QUEUED),
        ("email.suppressed", Kind.REJECTED),
        ("email.received", Kind.INBOUND),
        ("webhook.test", Kind.CONTROL),
        ("test.ping", Kind.CONTROL),
        ("bounced", Kind.BOUNCED),
        ("Email.Bounced", Kind.BOUNCED),
        ("com.example:email/bounced", Kind.BOUNCED),
        ("bounced.email", Kind.UNKNOWN),
        ("email.bouncedx", Kind.UNKNOWN),
        ("email.not_bounced", Kind.UNKNOWN),
        ("email.bounced\n", Kind.UNKNOWN),
        ("email.", Kind.UNKNOWN),
        ("", Kind.UNKNOWN),
        (None, Kind.UNKNOWN),
        (7, Kind.UNKNOWN),
        (["email.bounced"], Kind.UNKNOWN),
        ({"a": 1}, Kind.UNKNOWN),
    ],
)
def test_kind_is_the_last_word_of_the_type(word: object, kind: Kind) -> None:
    assert _read({"type": word}).kind is kind


@pytest.mark.parametrize(
    ("about", "recipients"),
    [
        ({"recipient": "a@example.com"}, ["a@example.com"]),
        ({"email": "a@example.com"}, ["a@example.com"]),
        ({"to": "a@example.com"}, ["a@example.com"]),
        ({"to": ["a@example.com"]}, ["a@example.com"]),
        ({"to": ["a@example.com", "A@EXAMPLE.COM"]}, ["a@example.com"]),
        ({"to": ["a@example.com", "b@example.com"]}, ["a@example.com", "b@example.com"]),
        ({"to": "a@example.com, b@example.com"}, ["a@example.com", "b@example.com"]),
        (
            {"recipient": "a@example.com", "to": ["b@example.com", "c@example.com"]},
            ["a@example.com"],
        ),
        ({"recipient": "", "to": "c@example.com"}, ["c@example.com"]),
        ({"recipient": None, "email": [], "to": "c@example.com"}, ["c@example.com"]),
        ({"to": []}, []),
        ({"to": [None, 7, {}, ["a@example.com"]]}, []),
        ({"to": "nobody"}, []),
        ("a@example.com", []),
        (None, []),
    ],
)
def test_recipient_is_the_only_address(about: object, recipients: list[str]) -> None:
    """Of several it is none, and all of them are candidates."""
    notification = _read({"type": "email.bounced", "data": about})
    assert notification.recipient == (recipients[0] if len(recipients) == 1 else None)
    assert notification.ambiguous is (len(recipients) > 1)
    assert list(notification.candidates) == (recipients if len(recipients) > 1 else [])


@pytest.mark.parametrize(
    ("word", "bounce_class"),
    [
        ("Permanent", BounceClass.HARD),
        ("permanent", BounceClass.HARD),
        ("Transient", BounceClass.SOFT),
        ("Undetermined", BounceClass.UNDETERMINED),
        ("anything", BounceClass.UNDETERMINED),
        (None, BounceClass.UNDETERMINED),
        (["Permanent"], BounceClass.UNDETERMINED),
    ],
)
def test_bounce_class_is_told_or_undetermined(word: object, bounce_class: BounceClass) -> None:
    data = {"bounce": {"type": word}}
    assert _read({"type": "email.bounced", "data": data}).bounce_class is bounce_class
    assert _read({"type": "email.delivered", "data": data}).bounce_class is None


def test_time_is_the_event_s_or_none_with_a_flag() -> None:
    told = _read({"created_at": "2023-11-14T22:13:20Z", "timestamp": "2020-01-01T00:00:00Z"})
    assert (told.occurred_at, told.time_source) == (1_700_000_000_000, TimeSource.EVENT)
    assert _read({"timestamp": 1_700_000_000}).occurred_at == 1_700_000_000_000
    for unread in ("the day after tomorrow", 99999999999999999999, None, True, {}, -1):
        silent = _read({"timestamp": unread})
        assert (silent.occurred_at, silent.time_source) == (None, TimeSource.RECEIVED)


def test_map_replaces_what_it_names_and_leaves_the_rest_plain() -> None:
    options = {
        "map": {
            "kind": ["header:X-Kind", "/what"],
            "recipient": "/who/mail",
            "bounce_class": "/how",
            "types": {"gone": "bounced", "email.opened": "unknown"},
        }
    }
    document = {
        "what": "gone",
        "how": "Blocked",
        "who": {"mail": "Ana <ana@example.com>"},
        "data": {"message_id": "m1", "recipient": "other@example.com"},
    }
    found = _read(document, options)
    assert (found.kind, found.bounce_class) == (Kind.BOUNCED, BounceClass.BLOCK)
    assert (found.recipient, found.message_id) == ("ana@example.com", "m1")
    assert _read(document, options, {"x-kind": "email.delivered"}).kind is Kind.DELIVERED
    assert _read(document, options, {"x-kind": "email.opened"}).kind is Kind.UNKNOWN


def test_star_stands_for_every_other_word() -> None:
    options = {"map": {"types": {"*": "unknown", "parcel.lost": "account"}}}
    assert _read({"type": "email.bounced"}, options).kind is Kind.UNKNOWN
    assert _read({"type": "parcel.lost"}, options).kind is Kind.ACCOUNT


@pytest.mark.parametrize("name", READS)
def test_only_setting_is_the_map(name: str) -> None:
    with pytest.raises(ConfigError) as refused:
        provider_of(name, {"map": {}, "signed": "{body}"})
    assert refused.value.where == "signed"


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"7", b'"x"', b"\xff", b'{"a":1,"a":2}'])
def test_content_that_is_no_event_reads_as_unknown(content: bytes) -> None:
    """It can only have been released from quarantine by a person."""
    assert _read(content).kind is Kind.UNKNOWN
