"""What Mailgun's events say: the `event-data` of a webhook, and the items of its events API."""

from collections.abc import Mapping

from hookbox.model import Kind, Notification, RejectReason, TimeSource
from hookbox.providers.mailgun_failures import Failure, verdict
from hookbox.providers.notices import (
    UNKNOWN,
    Extras,
    Verdict,
    present,
    reply_extras,
    scalars,
    tag_list,
    without_brackets,
)
from hookbox.rules.reading import addresses, at, bare, instant, plain_text
from hookbox.rules.replies import Reply, enhanced_code, reply

VERDICTS: Mapping[str, Verdict] = {
    "accepted": Verdict(Kind.QUEUED),
    "rejected": Verdict(Kind.REJECTED, reason=RejectReason.OTHER),
    "delivered": Verdict(Kind.DELIVERED),
    "opened": Verdict(Kind.OPENED),
    "clicked": Verdict(Kind.CLICKED),
    "unsubscribed": Verdict(Kind.UNSUBSCRIBED, reason=RejectReason.UNSUBSCRIBED),
    "complained": Verdict(Kind.COMPLAINED, reason=RejectReason.SPAM),
    "stored": Verdict(Kind.INBOUND),
    "list_member_uploaded": Verdict(Kind.ACCOUNT),
    "list_member_upload_error": Verdict(Kind.ACCOUNT),
    "list_uploaded": Verdict(Kind.ACCOUNT),
    "email_validation": Verdict(Kind.ACCOUNT),
    "trapped": Verdict(Kind.ACCOUNT),
}
FAILED = "failed"

Event = Mapping[str, object]


def read(event: Event) -> Notification:
    """The one notification of an event; any member may be missing, or null, or something else."""
    word = plain_text(event.get("event")) or ""
    told = _reply(event)
    found = verdict(_failure(event, told)) if word == FAILED else VERDICTS.get(word, UNKNOWN)
    named = _recipients(event)
    occurred_at = instant(event.get("timestamp"))
    several = len(named) > 1
    return Notification(
        kind=found.kind,
        recipient=named[0] if len(named) == 1 else None,
        ambiguous=several,
        candidates=named if several else (),
        bounce_class=found.bounce_class,
        reject_reason=found.reason,
        occurred_at=occurred_at,
        time_source=TimeSource.RECEIVED if occurred_at is None else TimeSource.EVENT,
        message_id=without_brackets(at(event, ("message", "headers", "message-id"))),
        suppress=found.suppress and not several,
        extras=_extras(event, told),
    )


def _recipients(event: Event) -> tuple[str, ...]:
    """The recipient; where none is named, the only one that the message was to, or several of
    whom nobody says which."""
    recipient = bare(event.get("recipient"))
    if recipient is not None or "recipient" in event:
        return (recipient,) if recipient else ()
    return addresses(at(event, ("message", "headers", "to")))


def _failure(event: Event, told: Reply) -> Failure:
    return Failure(
        temporary=event.get("severity") != "permanent",
        reason=(plain_text(event.get("reason"), 200) or "").lower(),
        told=told,
        bounce_type=(plain_text(_status(event, "bounce-type"), 200) or "").lower(),
    )


def _status(event: Event, name: str) -> object:
    """A member of `delivery-status`, which may be null."""
    return at(event, ("delivery-status", name))


def _reply(event: Event) -> Reply:
    code, text = _status(event, "code"), reply(_status(event, "message"))
    own = [enhanced_code(_status(event, name)) for name in ("enhanced-code", "bounce-code")]
    return Reply(number(code) or text.code, own[0] or own[1] or text.enhanced)


def number(code: object) -> int | None:
    """A code of three digits, as number or as text."""
    text = plain_text(code, 10) or ""
    return int(text) if len(text) == 3 and text.isascii() and text.isdigit() else None


def _extras(event: Event, told: Reply) -> Extras:
    diagnostic = (
        _status(event, "message")
        or _status(event, "description")
        or at(event, ("reject", "reason"))
        or at(event, ("reject", "description"))
    )
    return {
        **reply_extras(diagnostic, told),
        **present(
            reason=plain_text(event.get("reason"), 200),
            attempt=plain_text(_status(event, "attempt-no"), 20),
            retry_s=plain_text(_status(event, "retry-seconds"), 20),
            url=plain_text(event.get("url")),
            ip=plain_text(event.get("ip"), 100),
            user_agent=plain_text(at(event, ("client-info", "user-agent"))),
            is_machine=bool(plain_text(at(event, ("client-info", "bot")))),
            storage_url=plain_text(at(event, ("storage", "url"))),
            tags=tag_list(event.get("tags")),
            metadata=scalars(event.get("user-variables")),
        ),
    }
