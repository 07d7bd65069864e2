"""What Mailgun posts as a form: received mail from routes, and the webhooks of before 2018."""

from collections.abc import Mapping

from hookbox.model import Kind, Notification, TimeSource
from hookbox.providers.mailgun_events import VERDICTS, number
from hookbox.providers.mailgun_failures import Failure, verdict
from hookbox.providers.notices import (
    UNKNOWN,
    Extras,
    Verdict,
    message_id_of,
    present,
    reply_extras,
    tag_list,
    without_brackets,
)
from hookbox.rules.digest import Unreadable, read_value
from hookbox.rules.reading import addresses, bare, instant, plain_text
from hookbox.rules.replies import Reply, reply

# Both are final. Why it was dropped is in another word than today's.
FAILURES: Mapping[str, str] = {"bounced": "bounce", "dropped": ""}
DROPS: Mapping[str, str] = {"hardfail": "bounce", "old": "old"}

Fields = Mapping[str, object]


def read_fields(fields: Fields) -> tuple[Notification, ...]:
    """Received mail names no event."""
    return _inbound(fields) if "event" not in fields else (_webhook(fields),)


def _inbound(fields: Fields) -> tuple[Notification, ...]:
    """One notification for each address that the mail was for."""
    occurred_at = instant(fields.get("timestamp"))
    extras = present(
        **{"from": plain_text(fields.get("from"))},
        subject=plain_text(fields.get("subject")),
        rfc_message_id=without_brackets(
            _header(fields, "message-id") or message_id_of(fields.get("body-mime"))
        ),
        storage_url=plain_text(fields.get("message-url")),
    )
    return tuple(
        Notification(
            kind=Kind.INBOUND,
            recipient=recipient,
            occurred_at=occurred_at,
            time_source=TimeSource.RECEIVED if occurred_at is None else TimeSource.EVENT,
            extras=extras,
        )
        for recipient in addresses(fields.get("recipient")) or (None,)
    )


def _webhook(fields: Fields) -> Notification:
    word = plain_text(fields.get("event")) or ""
    told = _reply(fields)
    found = _verdict(word, fields, told)
    occurred_at = instant(fields.get("timestamp"))
    return Notification(
        kind=found.kind,
        recipient=bare(fields.get("recipient")),
        bounce_class=found.bounce_class,
        reject_reason=found.reason,
        occurred_at=occurred_at,
        time_source=TimeSource.RECEIVED if occurred_at is None else TimeSource.EVENT,
        message_id=without_brackets(fields.get("Message-Id") or _header(fields, "message-id")),
        suppress=found.suppress,
        extras=_extras(fields, told),
    )


def _verdict(word: str, fields: Fields, told: Reply) -> Verdict:
    if word not in FAILURES:
        return VERDICTS.get(word, UNKNOWN)
    dropped = (plain_text(fields.get("reason"), 200) or "").lower()
    reason = FAILURES[word] or DROPS.get(dropped, dropped)
    return verdict(Failure(temporary=False, reason=reason, told=told))


def _reply(fields: Fields) -> Reply:
    text = reply(_diagnostic(fields))
    return Reply(number(fields.get("code")) or text.code, text.enhanced)


def _diagnostic(fields: Fields) -> object:
    return fields.get("error") or fields.get("description") or fields.get("notification")


def _extras(fields: Fields, told: Reply) -> Extras:
    tag = fields.get("X-Mailgun-Tag") or fields.get("tag")
    return {
        **reply_extras(_diagnostic(fields), told),
        **present(
            reason=plain_text(fields.get("reason"), 200),
            url=plain_text(fields.get("url")),
            ip=plain_text(fields.get("ip"), 100),
            user_agent=plain_text(fields.get("user-agent")),
            tags=tag_list(tag),
        ),
    }


def _header(fields: Fields, wanted: str) -> str | None:
    """A header of the mail, out of the JSON list of pairs that the form holds."""
    told = fields.get("message-headers")
    try:
        pairs = read_value(told.encode()) if isinstance(told, str) else None
    except (Unreadable, UnicodeEncodeError):
        return None
    for pair in pairs if isinstance(pairs, list) else ():
        match pair:
            case [str(name), str(value)] if name.lower() == wanted:
                return value
    return None
