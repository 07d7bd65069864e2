"""What SendGrid's events say, one object each.

A bounce is classed by its `type`: `bounce` is hard, `blocked` is a block, since there the receiver
refused this mail or this sending address and not the recipient. A `bounce` whose classification is
`technical` or `content` is soft. Without a known type the codes decide, as in rules/replies.py:
5.1.x hard, 5.7.x a block, 4.x soft, all else undetermined.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from hookbox.model import BounceClass, Kind, Notification, RejectReason, TimeSource
from hookbox.providers.notices import (
    Extras,
    advises_suppression,
    present,
    reply_extras,
    scalars,
    tag_list,
    without_brackets,
)
from hookbox.rules.reading import bare, instant, plain_text
from hookbox.rules.replies import Reply, bounce_class, enhanced_code, reply

EVENTS: Mapping[str, Kind] = {
    "processed": Kind.QUEUED,
    "dropped": Kind.REJECTED,
    "delivered": Kind.DELIVERED,
    "deferred": Kind.DEFERRED,
    "bounce": Kind.BOUNCED,
    "open": Kind.OPENED,
    "click": Kind.CLICKED,
    "spamreport": Kind.COMPLAINED,
    "unsubscribe": Kind.UNSUBSCRIBED,
    "group_unsubscribe": Kind.UNSUBSCRIBED,
    "group_resubscribe": Kind.SUBSCRIBED,
    "account_status_change": Kind.ACCOUNT,
}
BOUNCE_TYPES: Mapping[str, BounceClass] = {
    "bounce": BounceClass.HARD,
    "blocked": BounceClass.BLOCK,
}
# Classifications of a `bounce` that is not about the address; an operator can name others.
Classifications = Mapping[str, BounceClass]
CLASSIFICATIONS: Classifications = {
    "technical": BounceClass.SOFT,
    "content": BounceClass.SOFT,
}
# How the reason of a `dropped` begins, in lower case.
DROPS: Mapping[str, RejectReason] = {
    "bounced address": RejectReason.BOUNCED,
    "unsubscribed address": RejectReason.UNSUBSCRIBED,
    "spam reporting address": RejectReason.SPAM,
    "spam content": RejectReason.BLOCKED,
    "invalid smtpapi header": RejectReason.OTHER,
    "recipient list over package quota": RejectReason.OTHER,
    "invalid": RejectReason.INVALID,
}

# Members that are SendGrid's own in every event, and in some. All others are custom arguments.
OWN = frozenset(
    (
        *("email", "timestamp", "event", "category", "sg_event_id", "sg_message_id", "smtp-id"),
        *("asm_group_id", "ip", "tls", "pool", "unique_args", "sg_content_type"),
        *("sg_template_id", "sg_template_name", "marketing_campaign_id", "marketing_campaign_name"),
    )
)
OWN_OF: Mapping[str, frozenset[str]] = {
    "dropped": OWN | {"reason", "status"},
    "delivered": OWN | {"response"},
    "deferred": OWN | {"response", "reason", "attempt"},
    "bounce": OWN | {"reason", "status", "type", "bounce_classification"},
    "open": OWN | {"useragent", "sg_machine_open"},
    "click": OWN | {"useragent", "url", "url_offset"},
    "unsubscribe": OWN | {"useragent", "url"},
    "group_unsubscribe": OWN | {"useragent", "url"},
    "group_resubscribe": OWN | {"useragent", "url"},
    "account_status_change": OWN | {"type"},
}

# Where a message's id ends and the marks of SendGrid's own servers begin.
MARKS = (".filter", ".recv")

Event = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Verdict:
    """How lasting a refusal is, why it came, and the one group it is about, where it is."""

    bounce_class: BounceClass | None = None
    reason: RejectReason | None = None
    scope: str = ""


NOTHING = Verdict()
VERDICTS: Mapping[str, Verdict] = {
    "spamreport": Verdict(reason=RejectReason.SPAM),
    "unsubscribe": Verdict(reason=RejectReason.UNSUBSCRIBED),
}


def read(classifications: Classifications, event: Event) -> Notification:
    """The one notification of an event."""
    word = plain_text(event.get("event")) or ""
    kind = EVENTS.get(word, Kind.UNKNOWN)
    verdict = _verdict(classifications, word, event)
    recipient, message_id = bare(event.get("email")), _message_id(event.get("sg_message_id"))
    occurred_at = instant(event.get("timestamp"))
    meaning = None
    if recipient is not None and occurred_at is not None:  # else no copy can be told from another
        link = event.get("url") if word == "click" else ""
        refused = verdict.bounce_class or verdict.reason or ""
        fact = f"{word}|{recipient.lower()}|{message_id or ''}|{occurred_at}"
        meaning = f"{fact}|{refused}|{verdict.scope}|{plain_text(link, 500) or ''}"
    return Notification(
        kind=kind,
        recipient=recipient,
        bounce_class=verdict.bounce_class,
        reject_reason=verdict.reason,
        occurred_at=occurred_at,
        time_source=TimeSource.RECEIVED if occurred_at is None else TimeSource.EVENT,
        message_id=message_id,
        suppress=advises_suppression(kind, verdict.bounce_class, verdict.reason, verdict.scope),
        scope=verdict.scope,
        meaning=meaning,
        extras=_extras(word, event),
    )


def _verdict(classifications: Classifications, word: str, event: Event) -> Verdict:
    if word == "bounce":
        lasting = _bounce_class(classifications, event)
        blocked = lasting is BounceClass.BLOCK
        return Verdict(lasting, RejectReason.BLOCKED if blocked else RejectReason.BOUNCED)
    if word == "dropped":
        reason = _drop(event)
        # Nobody says whether that was from everything or from the message's group: then the group.
        grouped = reason is RejectReason.UNSUBSCRIBED and "asm_group_id" in event
        return Verdict(reason=reason, scope=_group(event) if grouped else "")
    if word == "group_unsubscribe":
        return Verdict(reason=RejectReason.UNSUBSCRIBED, scope=_group(event))
    if word == "group_resubscribe":
        return Verdict(scope=_group(event))
    return VERDICTS.get(word, NOTHING)


def _bounce_class(classifications: Classifications, event: Event) -> BounceClass:
    typed = BOUNCE_TYPES.get(_lower(event.get("type")))
    if typed is BounceClass.HARD:
        return classifications.get(_lower(event.get("bounce_classification")), typed)
    return typed or bounce_class(_reply(event))


def _drop(event: Event) -> RejectReason:
    told = _lower(event.get("reason"))
    found = (reason for words, reason in DROPS.items() if told.startswith(words))
    return next(found, RejectReason.OTHER)


def _group(event: Event) -> str:
    return f"group:{plain_text(event.get('asm_group_id'), 100) or ''}"


def _reply(event: Event) -> Reply:
    """The codes: those of the text, and `status` where it says more than the first digit."""
    told = reply(event.get("reason") or event.get("response"))
    status = enhanced_code(event.get("status"))
    if status is None or (told.enhanced and status.endswith(".0.0")):
        return told
    return Reply(told.code, status)


def _message_id(value: object) -> str | None:
    """What the sending call answered as X-Message-Id."""
    text = plain_text(value, 500) or ""
    for mark in MARKS:
        text = text.partition(mark)[0]
    return text or None


def _extras(word: str, event: Event) -> Extras:
    own = OWN_OF.get(word, OWN)
    mine = {name: value for name, value in event.items() if name in own}
    custom = {name: value for name, value in event.items() if name not in own}
    return {
        **reply_extras(mine.get("reason") or mine.get("response"), _reply(mine)),
        **present(
            classification=plain_text(mine.get("bounce_classification"), 200),
            attempt=plain_text(mine.get("attempt"), 20),
            url=plain_text(mine.get("url")),
            ip=plain_text(mine.get("ip"), 100),
            user_agent=plain_text(mine.get("useragent")),
            is_machine=mine.get("sg_machine_open") is True,
            rfc_message_id=without_brackets(mine.get("smtp-id")),
            tags=tag_list(mine.get("category")),
            metadata=scalars(custom),
        ),
    }


def _lower(value: object) -> str:
    return (plain_text(value, 200) or "").lower()
