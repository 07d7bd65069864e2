"""What each event of Amazon SES says besides whom and when: how lasting a bounce is, what a
complaint means, which topics somebody left.

A reader takes a notification and refines it: `detail` is the event's own member, `entry` what is
said of this recipient alone.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from hookbox.model import BounceClass, Kind, Notification, RejectReason
from hookbox.providers.notices import Extras, present, reply_extras
from hookbox.rules.reading import at, plain_text
from hookbox.rules.replies import Reply, enhanced_code, reply

Object = Mapping[str, object]
NOTHING: Object = {}


def members(value: object) -> Object:
    """The members of an object; none where there is something else."""
    return value if isinstance(value, Mapping) else NOTHING


def as_it_is(found: Notification, detail: Object, entry: Object) -> Iterator[Notification]:
    yield found


def _told(found: Notification, extras: Extras) -> Notification:
    return replace(found, extras={**found.extras, **extras})


def _bounce(found: Notification, detail: Object, entry: Object) -> Iterator[Notification]:
    """A transient bounce is final, too: SES has given up by then. What it may mean (a full mailbox,
    an absence note) is for the budget to weigh; an unknown type is never taken for permanent."""
    kind, sub_kind = detail.get("bounceType"), detail.get("bounceSubType")
    found = _told(found, {**_reply(entry), **present(sub_kind=plain_text(sub_kind, 200))})
    if sub_kind in ("Suppressed", "OnAccountSuppressionList"):  # nothing was attempted
        yield replace(found, kind=Kind.REJECTED, reject_reason=RejectReason.BOUNCED)
    elif kind == "Permanent":
        reason = RejectReason.INVALID if sub_kind == "NoEmail" else RejectReason.BOUNCED
        yield replace(found, bounce_class=BounceClass.HARD, reject_reason=reason)
    elif sub_kind in ("ContentRejected", "AttachmentRejected"):
        yield replace(found, bounce_class=BounceClass.BLOCK, reject_reason=RejectReason.BLOCKED)
    else:
        lasts = BounceClass.SOFT if kind == "Transient" else BounceClass.UNDETERMINED
        yield replace(found, bounce_class=lasts, reject_reason=RejectReason.BOUNCED)


def _complaint(found: Notification, detail: Object, entry: Object) -> Iterator[Notification]:
    """`not-spam` is the opposite of a complaint, and SES refusing to send is not a new one."""
    feedback = detail.get("complaintFeedbackType")
    extras = present(
        feedback=plain_text(feedback, 200),
        sub_kind=plain_text(detail.get("complaintSubType"), 200),
        user_agent=plain_text(detail.get("userAgent"), 500),
    )
    found = _told(found, extras)
    if feedback == "not-spam":
        yield replace(found, kind=Kind.UNKNOWN)
    elif detail.get("complaintSubType") == "OnAccountSuppressionList":
        yield replace(found, kind=Kind.REJECTED, reject_reason=RejectReason.SPAM)
    else:
        yield replace(found, reject_reason=RejectReason.SPAM)


def _reject(found: Notification, detail: Object, entry: Object) -> Iterator[Notification]:
    found = _told(found, present(diagnostic=plain_text(detail.get("reason"))))
    yield replace(found, reject_reason=RejectReason.BLOCKED)


def _failure(found: Notification, detail: Object, entry: Object) -> Iterator[Notification]:
    yield _told(
        found,
        present(
            diagnostic=plain_text(detail.get("errorMessage")),
            template=plain_text(detail.get("templateName"), 200),
        ),
    )


def _delivery(found: Notification, detail: Object, entry: Object) -> Iterator[Notification]:
    answer = detail.get("smtpResponse")
    yield _told(found, reply_extras(answer, reply(answer)))


def _delay(found: Notification, detail: Object, entry: Object) -> Iterator[Notification]:
    extras = present(
        delay=plain_text(detail.get("delayType"), 200),
        until=plain_text(detail.get("expirationTime"), 100),
    )
    yield _told(found, {**_reply(entry), **extras})


def _engagement(found: Notification, detail: Object, entry: Object) -> Iterator[Notification]:
    yield _told(
        found,
        present(
            ip=plain_text(detail.get("ipAddress"), 100),
            user_agent=plain_text(detail.get("userAgent"), 500),
            url=plain_text(detail.get("link")),
        ),
    )


def _subscription(found: Notification, detail: Object, entry: Object) -> Iterator[Notification]:
    """Unsubscribed from everything, or from the topics that were left just now."""
    before, after = (
        members(detail.get(name)) for name in ("oldTopicPreferences", "newTopicPreferences")
    )
    gone = replace(found, kind=Kind.UNSUBSCRIBED, reject_reason=RejectReason.UNSUBSCRIBED)
    left = [name for name in _left(after) if name not in _left(before)]
    if after.get("unsubscribeAll") is True:
        yield gone
    elif left:
        contacts = plain_text(detail.get("contactList"), 200) or ""
        yield from (replace(gone, scope=f"{contacts}/{name}") for name in left)
    else:
        yield found


def _left(preferences: Object) -> list[str]:
    """The topics that these preferences opt out of."""
    topics = preferences.get("topicSubscriptionStatus")
    found = [members(each) for each in topics] if isinstance(topics, list) else []
    out = [each.get("topicName") for each in found if each.get("subscriptionStatus") == "OptOut"]
    return [name for name in (plain_text(each, 200) for each in out) if name]


def _received(found: Notification, detail: Object, entry: Object) -> Iterator[Notification]:
    """A mail that came in. Larger ones are left in a bucket, which this box has no key to."""
    checks = ("spam", "virus", "spf", "dkim", "dmarc")
    verdicts = {name: plain_text(at(detail, (f"{name}Verdict", "status")), 40) for name in checks}
    action = members(detail.get("action"))
    yield _told(
        found,
        present(
            verdicts=present(**verdicts),
            bucket=plain_text(action.get("bucketName"), 200),
            object_key=plain_text(action.get("objectKey"), 1000),
        ),
    )


Reader = Callable[[Notification, Object, Object], Iterator[Notification]]
READERS: Mapping[str, Reader] = {
    "Bounce": _bounce,
    "Complaint": _complaint,
    "Reject": _reject,
    "Rendering Failure": _failure,
    "Delivery": _delivery,
    "DeliveryDelay": _delay,
    "Open": _engagement,
    "Click": _engagement,
    "Subscription": _subscription,
    "Received": _received,
}


def _reply(entry: Object) -> Extras:
    """What the receiving server said about one recipient."""
    said = entry.get("diagnosticCode")
    found = reply(said)
    return reply_extras(
        said, Reply(found.code, enhanced_code(entry.get("status")) or found.enhanced)
    )
