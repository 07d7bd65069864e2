"""What SES's reports mean, for whom, and which two of them are one fact."""

import json
from collections.abc import Mapping

import pytest

from hookbox.model import BounceClass, Kind, Notification, RejectReason, StoredEvent, TimeSource
from hookbox.rules.suppression import cause_of
from tests.providers.samples import samples
from tests.providers.topics import NOTIFICATION, NOW_S, posted, source

AT = "2026-03-14T09:26:53.101Z"
A, B, C = "a@example.com", "b@example.com", "c@example.com"

Report = Mapping[str, object]


def read(word: str, own: Report, *sent_to: str, dialect: str = "eventType") -> list[Notification]:
    """What the report says; `own` is the member named after it."""
    member = {
        "Bounce": "bounce",
        "Complaint": "complaint",
        "DeliveryDelay": "deliveryDelay",
        "Delivery": "delivery",
        "Rendering Failure": "failure",
        "Subscription": "subscription",
        "Received": "receipt",
    }.get(word, word.lower())
    mail = {"messageId": "mail-1", "timestamp": AT, "destination": list(sent_to or (A,))}
    return of({dialect: word, "mail": mail, member: {"timestamp": AT, **own}})


def of(message: object) -> list[Notification]:
    text = message if isinstance(message, str) else json.dumps(message)
    event = StoredEvent(
        id=1,
        source="test",
        key="k",
        raw_kind="",
        content=posted({**NOTIFICATION, "Message": text}).body,
        headers={},
        received_at=NOW_S * 1000,
    )
    return list(source().normalize(event))


def bounce(kind: object, sub_kind: object, *whom: str, **own: object) -> list[Notification]:
    listed = [{"emailAddress": each} for each in whom or (A,)]
    told = {"bounceType": kind, "bounceSubType": sub_kind, "bouncedRecipients": listed, **own}
    return read("Bounce", told, A, B, C)


# -- bounces -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "sub_kind", "lasting", "reason"),
    [
        ("Permanent", "General", BounceClass.HARD, RejectReason.BOUNCED),
        ("Permanent", "NoEmail", BounceClass.HARD, RejectReason.INVALID),
        ("Permanent", "SomethingNew", BounceClass.HARD, RejectReason.BOUNCED),
        ("Transient", "General", BounceClass.SOFT, RejectReason.BOUNCED),
        ("Transient", "MailboxFull", BounceClass.SOFT, RejectReason.BOUNCED),
        ("Transient", "MessageTooLarge", BounceClass.SOFT, RejectReason.BOUNCED),
        ("Transient", "SomethingNew", BounceClass.SOFT, RejectReason.BOUNCED),
        ("Transient", "ContentRejected", BounceClass.BLOCK, RejectReason.BLOCKED),
        ("Transient", "AttachmentRejected", BounceClass.BLOCK, RejectReason.BLOCKED),
        ("Undetermined", "Undetermined", BounceClass.UNDETERMINED, RejectReason.BOUNCED),
        ("SomethingNew", "General", BounceClass.UNDETERMINED, RejectReason.BOUNCED),
        ("permanent", "General", BounceClass.UNDETERMINED, RejectReason.BOUNCED),
        (None, None, BounceClass.UNDETERMINED, RejectReason.BOUNCED),
        (["Permanent"], {"a": 1}, BounceClass.UNDETERMINED, RejectReason.BOUNCED),
    ],
)
def test_bounce_lasts_as_its_type_says_and_a_new_type_is_never_permanent(
    kind: object, sub_kind: object, lasting: BounceClass, reason: RejectReason
) -> None:
    (found,) = bounce(kind, sub_kind)
    assert (found.kind, found.bounce_class, found.reject_reason) == (Kind.BOUNCED, lasting, reason)
    assert (cause_of(found) is not None) is (lasting is BounceClass.HARD)


@pytest.mark.parametrize("sub_kind", ["Suppressed", "OnAccountSuppressionList"])
def test_bounce_from_the_suppression_list_was_never_sent(sub_kind: str) -> None:
    (found,) = bounce("Permanent", sub_kind)
    assert (found.kind, found.bounce_class) == (Kind.REJECTED, None)
    assert (found.reject_reason, found.suppress) == (RejectReason.BOUNCED, True)


def test_only_who_bounced_is_concerned_and_not_everybody_addressed() -> None:
    (found,) = bounce("Permanent", "General", B)
    assert (found.recipient, found.ambiguous, found.candidates) == (B, False, ())


def test_everybody_who_bounced_is_concerned_once() -> None:
    """With what was said of each; case does not make a second person."""
    listed = [
        {"emailAddress": A, "status": "5.1.1", "diagnosticCode": "smtp; 550 5.1.1 unknown"},
        {"emailAddress": f"Bob <{B}>", "diagnosticCode": "smtp; 552 5.2.2 full"},
        {"emailAddress": A.upper(), "status": "5.9.9"},
        {"emailAddress": "no address"},
        "text",
    ]
    told = bounce("Permanent", "General", bouncedRecipients=listed)
    assert [(each.recipient, each.extras["enhanced_code"]) for each in told] == [
        (A, "5.1.1"),
        (B, "5.2.2"),
    ]
    assert [each.extras["smtp_code"] for each in told] == [550, 552]


@pytest.mark.parametrize("listed", [[], None, "text", 5, [{}], [{"emailAddress": "nobody"}], {}])
def test_bounce_of_nobody_in_particular_suppresses_nobody(listed: object) -> None:
    (found,) = bounce("Permanent", "General", bouncedRecipients=listed)
    assert (found.recipient, found.ambiguous, found.candidates) == (None, True, (A, B, C))
    assert (found.suppress, cause_of(found)) == (False, None)


# -- complaints ----------------------------------------------------------------------------------


def complaint(*whom: str, **own: object) -> list[Notification]:
    listed = [{"emailAddress": each} for each in whom]
    return read("Complaint", {"complainedRecipients": listed, "feedbackId": "f", **own})


@pytest.mark.parametrize("feedback", ["abuse", "auth-failure", "fraud", "other", "virus", None, 5])
def test_complaint_is_one_whatever_the_report_calls_it(feedback: object) -> None:
    (found,) = complaint(A, complaintFeedbackType=feedback)
    assert (found.kind, found.reject_reason) == (Kind.COMPLAINED, RejectReason.SPAM)
    assert found.suppress


@pytest.mark.parametrize("sub_kind", [None, "OnAccountSuppressionList"])
def test_not_spam_is_the_opposite_of_a_complaint(sub_kind: str | None) -> None:
    (found,) = complaint(A, complaintFeedbackType="not-spam", complaintSubType=sub_kind)
    assert (found.kind, found.suppress, cause_of(found)) == (Kind.UNKNOWN, False, None)


def test_complaint_from_the_suppression_list_is_not_a_new_one() -> None:
    (found,) = complaint(A, complaintSubType="OnAccountSuppressionList")
    assert (found.kind, found.reject_reason) == (Kind.REJECTED, RejectReason.SPAM)
    assert found.suppress


def test_complaint_of_one_among_several_suppresses_none_of_them() -> None:
    """SES lists everybody at the domain of whoever complained."""
    told = complaint(A, B)
    assert [(each.recipient, each.ambiguous, each.suppress) for each in told] == [
        (A, True, False),
        (B, True, False),
    ]
    assert [cause_of(each) for each in told] == [None, None]
    assert all(cause_of(each, suppress_ambiguous=True) for each in told)


# -- the rest ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "own", "kind", "reason"),
    [
        ("Send", {}, Kind.SENT, None),
        ("Delivery", {"recipients": [A, B]}, Kind.DELIVERED, None),
        ("Reject", {"reason": "Bad content"}, Kind.REJECTED, RejectReason.BLOCKED),
        ("Rendering Failure", {"errorMessage": "x"}, Kind.FAILED, None),
        (
            "DeliveryDelay",
            {"delayedRecipients": [{"emailAddress": A}, {"emailAddress": B}]},
            Kind.DEFERRED,
            None,
        ),
        ("Received", {"recipients": [A, B]}, Kind.INBOUND, None),
    ],
)
@pytest.mark.parametrize("dialect", ["eventType", "notificationType"])
def test_event_concerns_each_recipient(
    word: str, own: Report, kind: Kind, reason: RejectReason | None, dialect: str
) -> None:
    told = read(word, own, A, B, dialect=dialect)
    assert [each.recipient for each in told] == [A, B]
    assert {(each.kind, each.reject_reason, each.suppress) for each in told} == {
        (kind, reason, False)
    }
    assert {each.message_id for each in told} == {"mail-1"}


@pytest.mark.parametrize(("word", "kind"), [("Open", Kind.OPENED), ("Click", Kind.CLICKED)])
def test_engagement_names_a_recipient_only_where_there_is_but_one(word: str, kind: Kind) -> None:
    (sure,) = read(word, {}, A)
    assert (sure.kind, sure.recipient, sure.ambiguous) == (kind, A, False)
    (unsure,) = read(word, {}, A, B)
    assert (unsure.kind, unsure.recipient) == (kind, None)
    assert (unsure.ambiguous, unsure.candidates) == (True, (A, B))


@pytest.mark.parametrize("word", ["", "SomethingNew", "bounce", "Bounces"])
def test_new_type_is_unknown_and_kept(word: str) -> None:
    (found,) = read(word, {"bouncedRecipients": [{"emailAddress": A}]})
    assert (found.kind, found.recipient, found.message_id) == (Kind.UNKNOWN, None, "mail-1")


@pytest.mark.parametrize("message", [{}, {"mail": 5}, {"eventType": 5}, {"eventType": "Bounce"}])
def test_report_without_its_parts_is_read(message: object) -> None:
    (found,) = of(message)
    assert (found.recipient, found.message_id, found.meaning) == (None, None, None)


# -- subscriptions -------------------------------------------------------------------------------


def subscription(before: object, after: object) -> list[Notification]:
    own = {"contactList": "News", "oldTopicPreferences": before, "newTopicPreferences": after}
    return read("Subscription", own, A, B)


def topics(everything: bool, **stands: str) -> Report:
    listed = [{"topicName": name, "subscriptionStatus": how} for name, how in stands.items()]
    return {"unsubscribeAll": everything, "topicSubscriptionStatus": listed}


def test_unsubscribed_from_everything_is_global() -> None:
    (found,) = subscription(topics(False, offers="OptIn"), topics(True, offers="OptOut"))
    assert (found.kind, found.recipient, found.scope) == (Kind.UNSUBSCRIBED, A, "")
    assert found.suppress
    assert cause_of(found)


def test_topics_left_are_scoped_and_suppress_nobody() -> None:
    before = topics(False, offers="OptIn", tips="OptIn", jobs="OptOut")
    told = subscription(before, topics(False, offers="OptOut", tips="OptOut", jobs="OptOut"))
    assert [(each.kind, each.scope) for each in told] == [
        (Kind.UNSUBSCRIBED, "News/offers"),
        (Kind.UNSUBSCRIBED, "News/tips"),
    ]
    assert [(each.suppress, cause_of(each)) for each in told] == [(False, None)] * 2
    assert len({each.meaning for each in told}) == 2


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (topics(True, offers="OptOut"), topics(False, offers="OptOut")),
        (topics(False, offers="OptOut"), topics(False, offers="OptIn")),
        (topics(False), topics(False)),
        (None, None),
        (5, {"unsubscribeAll": "true", "topicSubscriptionStatus": "x"}),
    ],
)
def test_other_changes_subscribe(before: object, after: object) -> None:
    (found,) = subscription(before, after)
    assert (found.kind, found.scope, found.reject_reason) == (Kind.SUBSCRIBED, "", None)


# -- times ---------------------------------------------------------------------------------------


def test_time_is_the_events_own() -> None:
    (found,) = bounce("Permanent", "General", timestamp="2026-03-14T10:26:53.101+01:00")
    assert (found.occurred_at, found.time_source) == (1_773_480_413_101, TimeSource.EVENT)


@pytest.mark.parametrize("time", [None, "", "yesterday", {}, 10**30])
def test_publication_stands_for_a_time_that_cannot_be_read(time: object) -> None:
    (found,) = bounce("Permanent", "General", timestamp=time)
    assert (found.occurred_at, found.time_source) == (NOW_S * 1000, TimeSource.RECEIVED)


@pytest.mark.parametrize("text", ["Successfully validated SNS topic for Amazon SES.", '{"a": 1'])
def test_plain_text_is_no_report(text: str) -> None:
    (found,) = of(text)
    control = text.startswith("Success")
    assert found.kind is (Kind.CONTROL if control else Kind.UNKNOWN)


# -- one fact, told twice ------------------------------------------------------------------------


def test_both_dialects_tell_one_fact() -> None:
    own = {"bouncedRecipients": [{"emailAddress": A}], "feedbackId": "f-1"}
    told = [read("Bounce", own, dialect=each) for each in ("eventType", "notificationType")]
    assert [each.meaning for (each,) in told] == [f"f-1#{A}"] * 2


def test_samples_of_both_dialects_have_the_same_meanings() -> None:
    cases = {sample.case: sample for sample in samples() if sample.provider == "ses"}
    meanings = [
        [event["meaning"] for event in cases[f"bounce-permanent-{case}"].events]
        for case in ("two-recipients", "duplicate-dialect")
    ]
    assert meanings[0] == meanings[1]
    keys = {event["key"] for case in cases.values() for event in case.events}
    assert len(keys) == len(cases)


def test_different_facts_have_different_meanings() -> None:
    told = [
        *read("Send", {}, A, B),
        *read("Delivery", {"recipients": [A]}),
        *read("Delivery", {"recipients": [A], "timestamp": "2026-03-14T09:26:54Z"}),
        *read("Open", {}, A),
        *read("Click", {"link": "https://example.com/1"}, A),
        *read("Click", {"link": "https://example.com/2"}, A),
        *bounce("Permanent", "General", A, feedbackId="f-1"),
        *bounce("Permanent", "General", A, feedbackId="f-2"),
        *bounce("Permanent", "General", B, feedbackId="f-2"),
    ]
    assert None not in {each.meaning for each in told}
    assert len({each.meaning for each in told}) == len(told)


def test_case_of_an_address_makes_no_second_fact() -> None:
    (lower,), (upper,) = (read("Delivery", {"recipients": [each]}) for each in (A, A.upper()))
    assert lower.meaning == upper.meaning
    assert (lower.recipient, upper.recipient) == (A, A.upper())


@pytest.mark.parametrize("word", ["Rendering Failure", "Received"])
def test_what_only_one_dialect_tells_is_known_by_its_event(word: str) -> None:
    found = of({"eventType": word, "mail": {"messageId": "m", "destination": [A]}})
    assert [each.meaning for each in found] == [None]


# -- what is said besides ------------------------------------------------------------------------


def test_tags_of_the_sender_are_kept_and_those_of_ses_are_not() -> None:
    mail = {
        "messageId": "m",
        "destination": [A],
        "tags": {"ses:operation": ["SendEmail"], "campaign": ["spring", "2026"], "odd": 5},
        "commonHeaders": {"messageId": "<id@example.org>", "subject": "private"},
    }
    (found,) = of({"eventType": "Send", "mail": mail, "send": {}})
    assert found.extras == {
        "metadata": {"campaign": "spring, 2026"},
        "rfc_message_id": "id@example.org",
    }


def test_mail_that_lies_in_a_bucket_is_pointed_to() -> None:
    action = {"type": "S3", "bucketName": "mails", "objectKey": "in/1"}
    (found,) = read("Received", {"recipients": [A], "action": action})
    assert (found.extras["bucket"], found.extras["object_key"]) == ("mails", "in/1")
