"""Resend: the Svix scheme, and words of its own.

An event lists everybody that the message was to. Where that is more than one, nobody can say whom
it is about: the event is kept with all of them as candidates, and suppresses none.

The time of an event is the envelope's `created_at`; the one inside `data` is the message's.
https://resend.com/docs/webhooks (2026-08)
"""

import json
from collections.abc import Mapping
from dataclasses import replace

from hookbox.errors import OperatorError
from hookbox.model import BounceClass, Kind, Notification, RejectReason, StoredEvent, TimeSource
from hookbox.providers import standardwebhooks, svix
from hookbox.providers.contract import Signed, Simulation, no_options
from hookbox.providers.notices import (
    UNKNOWN,
    Extras,
    Verdict,
    present,
    reply_extras,
    scalars,
    without_brackets,
)
from hookbox.rules.digest import value_or_none
from hookbox.rules.instants import written
from hookbox.rules.reading import addresses, at, instant, plain_text
from hookbox.rules.replies import bounce_class, reply

BOUNCED, SUPPRESSED = "email.bounced", "email.suppressed"
VERDICTS: Mapping[str, Verdict] = {
    "email.sent": Verdict(Kind.SENT),
    "email.scheduled": Verdict(Kind.QUEUED),
    "email.delivered": Verdict(Kind.DELIVERED),
    "email.delivery_delayed": Verdict(Kind.DEFERRED),
    "email.complained": Verdict(Kind.COMPLAINED, reason=RejectReason.SPAM),
    "email.opened": Verdict(Kind.OPENED),
    "email.clicked": Verdict(Kind.CLICKED),
    "email.failed": Verdict(Kind.FAILED),
    "email.received": Verdict(Kind.INBOUND),
}
ABOUT_THE_ACCOUNT = ("contact.", "domain.")

# In lower case. `hard` and `soft` are the words of Resend's own examples.
CLASSES: Mapping[str, BounceClass] = {
    "permanent": BounceClass.HARD,
    "hard": BounceClass.HARD,
    "transient": BounceClass.SOFT,
    "soft": BounceClass.SOFT,
    "undetermined": BounceClass.UNDETERMINED,
}
# Sub-types that say more than the type: never tried, no such mailbox, or not about the address.
NEVER_TRIED = Verdict(Kind.REJECTED, reason=RejectReason.BOUNCED)
BLOCKED = Verdict(Kind.BOUNCED, BounceClass.BLOCK, RejectReason.BLOCKED)
SUB_TYPES: Mapping[str, Verdict] = {
    "suppressed": NEVER_TRIED,
    "onaccountsuppressionlist": NEVER_TRIED,
    "noemail": Verdict(Kind.BOUNCED, BounceClass.HARD, RejectReason.INVALID),
    "contentrejected": BLOCKED,
    "attachmentrejected": BLOCKED,
}
SUPPRESSIONS: Mapping[str, RejectReason] = {
    "previous_bounce": RejectReason.BOUNCED,
    "previous_complaint": RejectReason.SPAM,
}
# Where an event explains itself; only one of these is there.
DETAILS = ("bounce", "suppressed", "failed", "click")


def normalize(event: StoredEvent) -> tuple[Notification, ...]:
    document = value_or_none(event.content)
    word = plain_text(at(document, ("type",))) or ""
    found = _verdict(word, document)
    to = addresses(at(document, ("data", "to")))
    several = len(to) > 1
    occurred_at = instant(at(document, ("data", "click", "timestamp")))
    if occurred_at is None:
        occurred_at = instant(at(document, ("created_at",)))
    return (
        Notification(
            kind=found.kind,
            recipient=to[0] if len(to) == 1 else None,
            ambiguous=several,
            candidates=to if several else (),
            bounce_class=found.bounce_class,
            reject_reason=found.reason,
            occurred_at=occurred_at,
            time_source=TimeSource.RECEIVED if occurred_at is None else TimeSource.EVENT,
            message_id=plain_text(at(document, ("data", "email_id")), 500),
            suppress=not several and (found.suppress or word == SUPPRESSED),
            extras=_extras(document, found.kind),
        ),
    )


def _verdict(word: str, document: object) -> Verdict:
    if word == BOUNCED:
        return _bounce(at(document, ("data", "bounce")))
    if word == SUPPRESSED:  # the address is on Resend's list, for whatever reason
        reason = _lower(at(document, ("data", "suppressed", "reason")))
        return Verdict(Kind.REJECTED, reason=SUPPRESSIONS.get(reason, RejectReason.OTHER))
    if word.startswith(ABOUT_THE_ACCOUNT):
        return Verdict(Kind.ACCOUNT)
    return VERDICTS.get(word, UNKNOWN)


def _bounce(bounce: object) -> Verdict:
    named = CLASSES.get(_lower(at(bounce, ("type",))))
    special = SUB_TYPES.get(_lower(at(bounce, ("subType",))))
    if special:
        return special
    by_codes = bounce_class(reply(_diagnostic_code(bounce)))
    return Verdict(Kind.BOUNCED, named or by_codes, RejectReason.BOUNCED)


def _diagnostic_code(detail: object) -> object:
    """What the receiving server replied, where that is there; it once was all of the message."""
    return at(detail, ("diagnosticCode", "0")) or at(detail, ("message",))


def _lower(value: object) -> str:
    return (plain_text(value, 200) or "").lower()


def _extras(document: object, kind: Kind) -> Extras:
    detail = next(
        (found for name in DETAILS if (found := at(document, ("data", name))) is not None), None
    )
    told = at(detail, ("message",)) or at(detail, ("reason",))
    mail = present(
        **{"from": plain_text(at(document, ("data", "from")))},
        subject=plain_text(at(document, ("data", "subject"))),
    )
    return {
        **reply_extras(_diagnostic_code(detail) or told, reply(_diagnostic_code(detail))),
        **present(
            url=plain_text(at(detail, ("link",))),
            ip=plain_text(at(detail, ("ipAddress",)), 100),
            user_agent=plain_text(at(detail, ("userAgent",))),
            rfc_message_id=without_brackets(at(document, ("data", "message_id"))),
            metadata=_tags(at(document, ("data", "tags"))),
        ),
        **(mail if kind is Kind.INBOUND else {}),
    }


def _tags(tags: object) -> dict[str, str | bool]:
    """Resend's tags are names with values: in an object, or in a list of pairs."""
    if not isinstance(tags, list):
        return scalars(tags)
    pairs = ((at(tag, ("name",)), at(tag, ("value",))) for tag in tags)
    return scalars({name: value for name, value in pairs if isinstance(name, str)})


# -- simulation ----------------------------------------------------------------------------------

EXAMPLES: Mapping[Kind, tuple[str, Mapping[str, object]]] = {
    **{verdict.kind: (word, {}) for word, verdict in VERDICTS.items()},
    Kind.BOUNCED: (
        BOUNCED,
        {
            "bounce": {
                "type": "Permanent",
                "subType": "General",
                "message": "The recipient's mail server refused the message.",
                "diagnosticCode": ["smtp; 550 5.1.1 user unknown"],
            }
        },
    ),
    Kind.REJECTED: (SUPPRESSED, {"suppressed": {"reason": "previous_bounce"}}),
    Kind.CLICKED: ("email.clicked", {"click": {"link": "https://example.com/"}}),
    Kind.FAILED: ("email.failed", {"failed": {"reason": "reached_daily_quota"}}),
    Kind.ACCOUNT: ("domain.updated", {}),
}


def simulate(wanted: Simulation) -> Signed:
    if wanted.kind not in EXAMPLES:
        raise OperatorError(f"this sender has no event for `{wanted.kind}`")
    word, detail = EXAMPLES[wanted.kind]
    about = {} if wanted.kind is Kind.ACCOUNT else {"email_id": wanted.id, "to": [wanted.to]}
    document = {"type": word, "created_at": written(wanted.now), "data": {**about, **detail}}
    body = json.dumps(document).encode()
    headers = standardwebhooks.signed_headers(svix.PREFIXES[0], wanted, body)
    return Signed(headers=headers, body=body, key=wanted.id)


PROVIDER = replace(
    svix.PROVIDER,
    name="resend",
    title="Resend",
    console_steps=(
        "In Webhooks, add a webhook with the address {url}",
        "Select all email events",
        "Open the webhook, and copy its signing secret (whsec_...) into hookbox",
        "Send yourself a message, and look for its events in `hookbox events`",
        "Send to one address at a time: with several in `to`, nobody says who bounced",
    ),
    options=frozenset(),
    kinds=tuple(EXAMPLES),
    normalize=normalize,
    simulate=simulate,
    feed=None,
    configure=no_options,
)
