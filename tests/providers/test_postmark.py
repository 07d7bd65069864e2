"""Postmark: credentials instead of a signature, and what follows from that."""

import base64
import json
from collections.abc import Mapping
from dataclasses import replace

import pytest

from hookbox.errors import ConfigError, Reason, Refused, Unintelligible
from hookbox.model import BounceClass, Delivery, Kind, Notification, RejectReason, Slot, SplitEvent
from hookbox.providers.contract import Simulation
from tests.providers.requests import delivery, events, proved, provider_of, stored, trust

PROVIDER = provider_of("postmark")
SECRET, OTHER_SECRET = "hookbox:not-a-real-password-1", "hookbox:not-a-real-password-2"
NOW = 1_773_480_413_000

BOUNCE = {
    "RecordType": "Bounce",
    "ID": 901542550,
    "Type": "HardBounce",
    "MessageID": "883953f4-6105-42a2-a16a-77a8eac79483",
    "Email": "ana@example.com",
    "BouncedAt": "2026-03-14T09:26:57.3963935Z",
}
CLICK = {
    "RecordType": "Click",
    "MessageID": "883953f4-6105-42a2-a16a-77a8eac79483",
    "Recipient": "ana@example.com",
    "ReceivedAt": "2026-03-14T09:37:03.9065615Z",
    "OriginalLink": "https://example.org/a",
}


def authorized(secret: str = SECRET) -> dict[str, str]:
    return {"Authorization": f"Basic {base64.b64encode(secret.encode()).decode()}"}


def posted(document: object, headers: Mapping[str, str] | None = None) -> Delivery:
    return delivery({**authorized(), **(headers or {})}, json.dumps(document).encode())


def split(document: object, headers: Mapping[str, str] | None = None) -> SplitEvent:
    verified = PROVIDER.verify(posted(document, headers), trust(PROVIDER, SECRET), NOW)
    (event,) = events(PROVIDER.split(verified))
    return event


def read(document: Mapping[str, object]) -> Notification:
    verified = proved(posted(document))
    (event,) = events(PROVIDER.split(verified))
    (notification,) = PROVIDER.normalize(stored(PROVIDER, verified, event))
    return notification


# -- proof ---------------------------------------------------------------------------------------


def test_any_content_under_the_right_credentials_is_believed_at_any_time() -> None:
    """The weakness itself: Postmark signs neither content nor time."""
    assert not PROVIDER.signs_body
    for document in (BOUNCE, {**BOUNCE, "Email": "victim@example.com"}):
        for now in (0, NOW, 2 * NOW):
            PROVIDER.verify(posted(document), trust(PROVIDER, SECRET), now)


def test_two_credentials_count_at_once() -> None:
    keys = trust(PROVIDER, SECRET, OTHER_SECRET)
    for secret, slot in ((SECRET, Slot.CURRENT), (OTHER_SECRET, Slot.PREVIOUS)):
        found = delivery(authorized(secret), json.dumps(BOUNCE).encode())
        assert PROVIDER.verify(found, keys, NOW).slot is slot


def test_refusals_let_the_sender_come_back() -> None:
    """403 would end the delivery, and with it what a changed password refused."""
    answers = PROVIDER.answers
    for headers, reason in (
        ({}, Reason.CREDENTIALS_MISSING),
        (authorized(OTHER_SECRET), Reason.CREDENTIALS_WRONG),
    ):
        with pytest.raises(Refused) as refused:
            PROVIDER.verify(delivery(headers, b"{}"), trust(PROVIDER, SECRET), NOW)
        assert refused.value.reason is reason
        assert answers.refused_by.get(reason, answers.refused) == 401
    assert (answers.ok, answers.busy) == (200, 503)


@pytest.mark.parametrize(
    ("remote", "listed"),
    [
        ("50.31.156.6", True),
        ("::ffff:50.31.156.6", True),
        ("198.51.100.77", True),
        ("2001:db8::5", True),
        ("50.31.156.7", False),
        ("198.51.101.1", False),
        ("", False),
        ("unix:", False),
        ("50.31.156.6, 192.0.2.1", False),
    ],
)
def test_listed_address_is_needed_beside_the_credentials(remote: str, listed: bool) -> None:
    listing = ["50.31.156.6", "198.51.100.0/24", "2001:db8::/32"]
    provider = provider_of("postmark", {"addresses": listing})
    keys = trust(provider, SECRET)
    found = replace(posted(BOUNCE), remote=remote)
    if listed:
        provider.verify(found, keys, NOW)
        return
    with pytest.raises(Refused) as refused:
        provider.verify(found, keys, NOW)
    assert refused.value.reason is Reason.ADDRESS_NOT_LISTED


def test_listed_address_alone_proves_nothing() -> None:
    provider = provider_of("postmark", {"addresses": ["192.0.2.1"]})
    found = replace(delivery({}, b"{}"), remote="192.0.2.1")
    with pytest.raises(Refused) as refused:
        provider.verify(found, trust(provider, SECRET), NOW)
    assert refused.value.reason is Reason.CREDENTIALS_MISSING


@pytest.mark.parametrize(
    "options",
    [
        {"addresses": "192.0.2.1"},
        {"addresses": ["192.0.2"]},
        {"addresses": ["192.0.2.1/24"]},
        {"addresses": [1]},
        {"adresses": []},
    ],
    ids=str,
)
def test_wrong_settings_are_refused_with_a_mend(options: dict[str, object]) -> None:
    with pytest.raises(ConfigError) as refused:
        provider_of("postmark", options)
    assert refused.value.mend


@pytest.mark.parametrize("secret", ["", "user", "user:", ":password-of-16-bytes", "u:short"])
def test_credentials_that_are_none_are_refused(secret: str) -> None:
    with pytest.raises(ConfigError):
        PROVIDER.read_secret(secret)


# -- identity ------------------------------------------------------------------------------------


def test_trace_id_names_the_event_and_its_retries() -> None:
    header = {"X-PM-Webhook-Trace-Id": "4f1c2a90-1d2e-4f3a-8b5c-6d7e8f901234"}
    for document in (BOUNCE, CLICK):
        event = split(document, header)
        assert (event.key, event.synthesised) == (header["X-PM-Webhook-Trace-Id"], False)


def test_two_trace_ids_are_none() -> None:
    name = b"X-PM-Webhook-Trace-Id"
    headers = [*posted(BOUNCE).headers, (name, b"a"), (name, b"b")]
    with pytest.raises(Refused):
        PROVIDER.verify(delivery(headers, b"{}"), trust(PROVIDER, SECRET), NOW)


def test_retry_without_its_trace_id_means_the_same_fact() -> None:
    """The meaning does not depend on any header."""
    assert read(BOUNCE).meaning == "Bounce:901542550"
    assert read(CLICK).meaning == split(CLICK).key


@pytest.mark.parametrize(
    "other",
    [
        {"Recipient": "eve@example.com"},
        {"ReceivedAt": "2026-03-14T09:37:03.9065616Z"},
        {"OriginalLink": "https://example.org/b"},
        {"MessageID": "another"},
        {"RecordType": "Open"},
    ],
    ids=str,
)
def test_synthesised_key_holds_what_makes_the_event_itself(other: dict[str, str]) -> None:
    first, second = split(CLICK), split({**CLICK, **other})
    assert first.key != second.key
    assert first.synthesised


def test_case_of_the_recipient_is_no_other_event() -> None:
    assert split(CLICK).key == split({**CLICK, "Recipient": "ANA@Example.com"}).key


@pytest.mark.parametrize("bounce_id", [None, 0, "", "0", [], True, 1.5])
def test_bounce_without_an_id_is_known_by_its_content(bounce_id: object) -> None:
    event = split({**BOUNCE, "ID": bounce_id})
    assert event.synthesised
    assert event.key != split({**BOUNCE, "ID": bounce_id, "Email": "eve@example.com"}).key


def test_complaint_and_bounce_with_one_id_are_two() -> None:
    assert split(BOUNCE).key != split({**BOUNCE, "RecordType": "SpamComplaint"}).key


@pytest.mark.parametrize(
    "document", [{}, {"RecordType": "Verification"}, {"RecordType": 7}, {"RecordType": None}]
)
def test_unknown_record_is_a_look_whether_somebody_is_there(document: dict[str, object]) -> None:
    assert read(document).kind is Kind.CONTROL
    assert split(document).key == split(document).key != split({**document, "n": 1}).key


@pytest.mark.parametrize("body", [b"", b"[]", b"7", b"{", b'{"a":1,"a":2}', b"\xff"])
def test_body_that_is_no_object_is_unintelligible(body: bytes) -> None:
    with pytest.raises(Unintelligible):
        PROVIDER.split(proved(delivery(authorized(), body)))


def test_received_mail_is_known_by_its_id_or_its_head() -> None:
    mail = {
        "FromFull": {},
        "MessageID": "m1",
        "OriginalRecipient": "a@example.com",
        "Headers": [{"Name": "Message-ID", "Value": "<x@example.net>"}, 7, {"Name": 1}],
    }
    nameless = {**mail, "MessageID": ""}
    assert split(mail).key == "m1"
    assert split(nameless).synthesised
    for change in ({"OriginalRecipient": "b@example.com"}, {"Headers": None}, {"x": 1}):
        same = split({**nameless, **change}).key == split(nameless).key
        assert same is ("x" in change)


# -- reading -------------------------------------------------------------------------------------

HARD, SOFT, BLOCK = BounceClass.HARD, BounceClass.SOFT, BounceClass.BLOCK
UNDETERMINED = BounceClass.UNDETERMINED


@pytest.mark.parametrize(
    ("word", "kind", "lasting", "reason"),
    [
        ("HardBounce", Kind.BOUNCED, HARD, RejectReason.BOUNCED),
        ("SoftBounce", Kind.BOUNCED, SOFT, RejectReason.BOUNCED),
        ("BadEmailAddress", Kind.REJECTED, HARD, RejectReason.INVALID),
        ("VirusNotification", Kind.BOUNCED, BLOCK, RejectReason.OTHER),
        ("SpamNotification", Kind.BOUNCED, BLOCK, RejectReason.SPAM),
        ("Blocked", Kind.REJECTED, BLOCK, RejectReason.BLOCKED),
        ("DMARCPolicy", Kind.REJECTED, BLOCK, RejectReason.BLOCKED),
        ("ManuallyDeactivated", Kind.REJECTED, BLOCK, RejectReason.BLOCKED),
        ("Unconfirmed", Kind.REJECTED, BLOCK, RejectReason.BLOCKED),
        ("Transient", Kind.DEFERRED, None, None),
        ("DnsError", Kind.DEFERRED, None, None),
        ("OpenRelayTest", Kind.DEFERRED, None, None),
        ("AutoResponder", Kind.AUTORESPONDED, None, None),
        ("AddressChange", Kind.AUTORESPONDED, None, None),
        ("ChallengeVerification", Kind.AUTORESPONDED, None, None),
        ("Unsubscribe", Kind.UNSUBSCRIBED, None, RejectReason.UNSUBSCRIBED),
        ("ManualSuppression", Kind.UNSUBSCRIBED, None, RejectReason.UNSUBSCRIBED),
        ("Subscribe", Kind.SUBSCRIBED, None, None),
        ("SpamComplaint", Kind.COMPLAINED, None, RejectReason.SPAM),
        ("SMTPApiError", Kind.FAILED, None, None),
        ("TemplateRenderingFailed", Kind.FAILED, None, None),
        ("InboundError", Kind.INBOUND_FAILED, None, None),
        ("Unknown", Kind.BOUNCED, UNDETERMINED, RejectReason.BOUNCED),
        ("SomethingNew", Kind.BOUNCED, UNDETERMINED, RejectReason.BOUNCED),
        (7, Kind.BOUNCED, UNDETERMINED, RejectReason.BOUNCED),
    ],
)
def test_bounce_is_read_by_its_word(
    word: object, kind: Kind, lasting: BounceClass | None, reason: RejectReason | None
) -> None:
    """Its number is another in every table."""
    found = read({**BOUNCE, "Type": word, "TypeCode": 1})
    assert (found.kind, found.bounce_class, found.reject_reason) == (kind, lasting, reason)
    assert found.suppress is (
        (kind, lasting) == (Kind.BOUNCED, HARD) or kind in (Kind.UNSUBSCRIBED, Kind.COMPLAINED)
    )


@pytest.mark.parametrize("word", ["SoftBounce", "Blocked", "ManuallyDeactivated", "Transient"])
def test_deactivated_address_is_suppressed_whatever_the_bounce_was(word: str) -> None:
    assert read({**BOUNCE, "Type": word, "Inactive": True}).suppress
    for inactive in (False, None, "true", 1):
        assert not read({**BOUNCE, "Type": word, "Inactive": inactive}).suppress


@pytest.mark.parametrize(
    ("suppressing", "reason", "kind", "suppress"),
    [
        (True, "HardBounce", Kind.BOUNCED, True),
        (True, "SpamComplaint", Kind.COMPLAINED, True),
        (True, "ManualSuppression", Kind.UNSUBSCRIBED, True),
        (True, "SomethingNew", Kind.UNSUBSCRIBED, True),
        (True, None, Kind.UNSUBSCRIBED, True),
        (False, None, Kind.SUBSCRIBED, False),
        (False, "HardBounce", Kind.SUBSCRIBED, False),
        (None, "HardBounce", Kind.UNKNOWN, False),
        ("false", None, Kind.UNKNOWN, False),
        (0, None, Kind.UNKNOWN, False),
    ],
)
def test_subscription_change_is_read_in_both_directions(
    suppressing: object, reason: object, kind: Kind, suppress: bool
) -> None:
    change = {
        "RecordType": "SubscriptionChange",
        "Recipient": "ana@example.com",
        "ChangedAt": "2026-03-14T09:38:33Z",
        "SuppressSending": suppressing,
        "SuppressionReason": reason,
    }
    found = read(change)
    assert (found.kind, found.suppress) == (kind, suppress)
    assert found.extras.get("reactivated", False) is (suppressing is False)


@pytest.mark.parametrize(
    ("time", "occurred_at"),
    [
        ("2023-11-14T22:13:20.9070259Z", 1_700_000_000_907),
        ("2023-11-14T17:13:20.9070259-05:00", 1_700_000_000_907),
        ("2023-11-14T22:13:20", 1_700_000_000_000),
        ("soon", None),
        (None, None),
        (7, 7000),
        ([], None),
    ],
)
def test_time_is_cut_to_milliseconds_or_none(time: object, occurred_at: int | None) -> None:
    assert read({**BOUNCE, "BouncedAt": time}).occurred_at == occurred_at


def test_bounce_without_address_is_about_nobody() -> None:
    """Postmark sends such, rarely."""
    nameless = {name: value for name, value in BOUNCE.items() if name != "Email"}
    found = read(nameless)
    assert (found.recipient, found.kind, found.meaning) == (None, Kind.BOUNCED, None)


# -- simulation ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", PROVIDER.kinds)
def test_simulated_event_reads_back_as_itself(kind: Kind) -> None:
    assert PROVIDER.simulate
    made = PROVIDER.simulate(
        Simulation(kind=kind, to="Ana@example.com", secret=SECRET, id="sim_0a1b", now=NOW)
    )
    received = delivery(made.headers, made.body)
    verified = PROVIDER.verify(received, trust(PROVIDER, SECRET), NOW)
    (event,) = events(PROVIDER.split(verified))
    assert event.key == made.key
    (found,) = PROVIDER.normalize(stored(PROVIDER, verified, event))
    assert found.kind is kind
    assert found.recipient == (None if kind is Kind.CONTROL else "Ana@example.com")
