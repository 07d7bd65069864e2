"""What SendGrid's events say, one object each.

A bounce is classed by its `type`: `bounce` is hard, `blocked` is a block, since there the receiver
refused this mail or this sending address and not the recipient. A `bounce` whose classification is
`technical` or `content` is soft. Without a known type the codes decide, as in rules/replies.py:
5.1.x hard, 5.7.x a block, 4.x soft, all else undetermined.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hookbox.model import BounceClass, Kind, Notification, RejectReason, TimeSource
from hookbox.providers.notices import (
    advises_suppression,
    present,
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

# SendGrid's own members, and as what extra each is shown, where it is. In every event:
Member = tuple[str, Callable[[object], object]] | None
OWN: Mapping[str, Member] = {
    **dict.fromkeys(("email", "timestamp", "event", "sg_event_id", "sg_message_id"), None),
    **dict.fromkeys(("asm_group_id", "tls", "pool", "unique_args", "sg_content_type"), None),
    **dict.fromkeys(("sg_template_id", "sg_template_name"), None),
    **dict.fromkeys(("marketing_campaign_id", "marketing_campaign_name"), None),
    "category": ("tags", tag_list),
    "ip": ("ip", plain_text),
    "smtp-id": ("rfc_message_id", without_brackets),
}
REASON: Member = ("diagnostic", plain_text)
USER_AGENT: Member = ("user_agent", plain_text)
URL: Member = ("url", plain_text)
# And in single ones. All others are custom arguments.
OWN_OF: Mapping[str, Mapping[str, Member]] = {
    "dropped": {**OWN, "reason": REASON, "status": None},
    "delivered": {**OWN, "response": REASON},
    "deferred": {**OWN, "response": REASON, "reason": REASON, "attempt": ("attempt", plain_text)},
    "bounce": {
        **OWN,
        "reason": REASON,
        "status": None,
        "type": None,
        "bounce_classification": ("classification", plain_text),
    },
    "open": {
        **OWN,
        "useragent": USER_AGENT,
        "sg_machine_open": ("is_machine", lambda value: value is True),
    },
    "click": {**OWN, "useragent": USER_AGENT, "url": URL, "url_offset": None},
    "unsubscribe": {**OWN, "useragent": USER_AGENT, "url": URL},
    "group_unsubscribe": {**OWN, "useragent": USER_AGENT, "url": URL},
    "group_resubscribe": {**OWN, "useragent": USER_AGENT, "url": URL},
    "account_status_change": {**OWN, "type": ("change", plain_text)},
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


def _extras(word: str, event: Event) -> dict[str, object]:
    """What else SendGrid says of the event; and as metadata, what its customer added."""
    own = OWN_OF.get(word, OWN)
    extras: dict[str, object] = {}
    custom: dict[str, object] = {}
    for name, value in event.items():
        if name not in own:
            custom[name] = value
        elif (member := own[name]) and (shown := member[1](value)):
            extras[member[0]] = shown
    if "reason" in own or "response" in own:
        found = _reply(event)
        extras |= present(smtp_code=found.code, enhanced_code=found.enhanced)
    if custom and (metadata := scalars(custom)):
        extras["metadata"] = metadata
    return extras


def _lower(value: object) -> str:
    return (plain_text(value, 200) or "").lower()
