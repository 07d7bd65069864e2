"""Resend: the words, and what is done where an event does not say whom it is about."""

import json

import pytest

from hookbox.errors import ConfigError
from hookbox.model import BounceClass, Kind, Notification, RejectReason
from tests.providers.requests import delivery, events, proved, provider_of, stored

PROVIDER = provider_of("resend")
HARD, SOFT, BLOCK = BounceClass.HARD, BounceClass.SOFT, BounceClass.BLOCK
UNDETERMINED = BounceClass.UNDETERMINED


def read(word: object, **members: object) -> Notification:
    document = {
        "type": word,
        "created_at": "2026-03-14T09:26:57.126Z",
        "data": {
            "created_at": "2026-03-14T09:26:52.894719+00:00",
            "email_id": "e30",
            "to": ["ana@example.com"],
            **members,
        },
    }
    verified = proved(delivery({"svix-id": "msg_1"}, json.dumps(document).encode()))
    (event,) = events(PROVIDER.split(verified))
    assert event.key == "msg_1"
    (notification,) = PROVIDER.normalize(stored(PROVIDER, verified, event))
    return notification


@pytest.mark.parametrize(
    ("word", "kind", "reason"),
    [
        ("email.sent", Kind.SENT, None),
        ("email.scheduled", Kind.QUEUED, None),
        ("email.delivered", Kind.DELIVERED, None),
        ("email.delivery_delayed", Kind.DEFERRED, None),
        ("email.complained", Kind.COMPLAINED, RejectReason.SPAM),
        ("email.opened", Kind.OPENED, None),
        ("email.clicked", Kind.CLICKED, None),
        ("email.failed", Kind.FAILED, None),
        ("email.received", Kind.INBOUND, None),
        ("contact.created", Kind.ACCOUNT, None),
        ("domain.deleted", Kind.ACCOUNT, None),
        ("email.something_new", Kind.UNKNOWN, None),
        ("bounced", Kind.UNKNOWN, None),
        ("", Kind.UNKNOWN, None),
        (7, Kind.UNKNOWN, None),
        (None, Kind.UNKNOWN, None),
    ],
)
def test_word_means_what_resend_says(word: object, kind: Kind, reason: RejectReason | None) -> None:
    found = read(word)
    assert (found.kind, found.reject_reason, found.bounce_class) == (kind, reason, None)
    assert found.suppress is (kind is Kind.COMPLAINED)


@pytest.mark.parametrize(
    ("bounce", "lasting"),
    [
        ({"type": "Permanent", "subType": "General"}, HARD),
        ({"type": "PERMANENT"}, HARD),
        ({"type": "hard"}, HARD),
        ({"type": "Permanent", "subType": "NoEmail"}, HARD),
        ({"type": "Transient", "subType": "MailboxFull"}, SOFT),
        ({"type": "soft"}, SOFT),
        ({"type": "Transient", "subType": "ContentRejected"}, BLOCK),
        ({"type": "Transient", "subType": "AttachmentRejected"}, BLOCK),
        ({"type": "Undetermined"}, UNDETERMINED),
        ({"type": "Undetermined", "message": "550 5.1.1 x"}, UNDETERMINED),
        ({"type": "SomethingNew"}, UNDETERMINED),
        ({"message": "550 5.1.1 user unknown"}, HARD),
        ({"message": "The recipient's mail server refused the message."}, UNDETERMINED),
        ({"diagnosticCode": ["smtp; 450 4.2.2 mailbox full"]}, SOFT),
        ({"diagnosticCode": "smtp; 450 4.2.2 mailbox full"}, UNDETERMINED),
        ({"type": ["Permanent"]}, UNDETERMINED),
        ("Permanent", UNDETERMINED),
        ([], UNDETERMINED),
        (None, UNDETERMINED),
    ],
    ids=str,
)
def test_bounce_is_classed_by_its_type_and_else_by_the_codes(
    bounce: object, lasting: BounceClass
) -> None:
    found = read("email.bounced", bounce=bounce)
    assert (found.kind, found.bounce_class, found.suppress) == (
        Kind.BOUNCED,
        lasting,
        lasting is HARD,
    )


@pytest.mark.parametrize("sub_type", ["Suppressed", "OnAccountSuppressionList"])
def test_bounce_that_was_never_tried_is_a_rejection(sub_type: str) -> None:
    found = read("email.bounced", bounce={"type": "Permanent", "subType": sub_type})
    assert (found.kind, found.reject_reason, found.bounce_class) == (
        Kind.REJECTED,
        RejectReason.BOUNCED,
        None,
    )
    assert found.suppress


@pytest.mark.parametrize(
    ("detail", "reason"),
    [
        ({"reason": "previous_bounce"}, RejectReason.BOUNCED),
        ({"reason": "previous_complaint"}, RejectReason.SPAM),
        ({"reason": "something_new"}, RejectReason.OTHER),
        ({}, RejectReason.OTHER),
        (None, RejectReason.OTHER),
        ("previous_bounce", RejectReason.OTHER),
    ],
    ids=str,
)
def test_suppressed_address_is_suppressed_here_too(detail: object, reason: RejectReason) -> None:
    found = read("email.suppressed", suppressed=detail)
    assert (found.kind, found.reject_reason) == (Kind.REJECTED, reason)
    assert found.suppress


@pytest.mark.parametrize("word", ["email.bounced", "email.complained", "email.suppressed"])
def test_event_about_one_of_several_suppresses_none(word: str) -> None:
    detail = {"bounce": {"type": "Permanent"}, "suppressed": {"reason": "previous_bounce"}}
    found = read(word, to=["a@example.com", "B@example.com"], **detail)
    assert (found.recipient, found.ambiguous, found.suppress) == (None, True, False)
    assert found.candidates == ("a@example.com", "B@example.com")
    assert read(word, to=["a@example.com"], **detail).suppress


@pytest.mark.parametrize(
    ("to", "recipient"),
    [
        (["Ana <ana@example.com>"], "ana@example.com"),
        ("ana@example.com", "ana@example.com"),
        (["Ana@Example.com", "ana@example.com"], "Ana@Example.com"),
        ([], None),
        (None, None),
        ([None, 7, {}], None),
        ([["ana@example.com"]], None),
    ],
    ids=str,
)
def test_only_address_is_the_recipient(to: object, recipient: str | None) -> None:
    found = read("email.delivered", to=to)
    assert (found.recipient, found.ambiguous) == (recipient, False)


def test_time_of_a_click_is_the_clicks() -> None:
    assert read("email.delivered").occurred_at == 1_773_480_417_126
    for told, occurred_at in (
        ({"timestamp": "2026-03-14T09:37:03.257Z"}, 1_773_481_023_257),
        ({"timestamp": "soon"}, 1_773_480_417_126),
        ({}, 1_773_480_417_126),
        (None, 1_773_480_417_126),
    ):
        assert read("email.clicked", click=told).occurred_at == occurred_at


@pytest.mark.parametrize(
    "tags",
    [
        {"campaign": "spring"},
        [{"name": "campaign", "value": "spring"}],
        [{"name": "campaign", "value": "spring"}, 7, {}, {"name": 1, "value": 2}, {"name": "x"}],
    ],
    ids=str,
)
def test_tags_are_read_in_both_shapes(tags: object) -> None:
    assert read("email.sent", tags=tags).extras["metadata"] == {"campaign": "spring"}


def test_resend_takes_no_settings() -> None:
    with pytest.raises(ConfigError):
        provider_of("resend", {"map": {"kind": "/event"}})
