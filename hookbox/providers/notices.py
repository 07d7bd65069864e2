"""What the mail senders' readers share: when a fact advises suppression, and how extras look."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from hookbox.model import BounceClass, Kind, RejectReason
from hookbox.rules.reading import plain_text
from hookbox.rules.replies import Reply

# A sender that refuses to try because of what it knows of the address.
KNOWN_BAD = frozenset({RejectReason.BOUNCED, RejectReason.SPAM, RejectReason.UNSUBSCRIBED})

Extras = Mapping[str, object]

# The head of a received mail: what comes before its first empty line, within reason.
HEAD_MAX = 65_536
HEAD_END = re.compile(r"\r?\n\r?\n")
MESSAGE_ID = re.compile(r"^message-id:\s*(<[^<>\s]{1,500}>)", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a message, how lasting that is, and why."""

    kind: Kind
    bounce_class: BounceClass | None = None
    reason: RejectReason | None = None

    @property
    def suppress(self) -> bool:
        return advises_suppression(self.kind, self.bounce_class, self.reason)


UNKNOWN = Verdict(Kind.UNKNOWN)


def advises_suppression(
    kind: Kind,
    bounce_class: BounceClass | None = None,
    reason: RejectReason | None = None,
    scope: str = "",
) -> bool:
    """Whether nobody should mail this address again.

    A hard bounce, a complaint, an unsubscribe from everything, and a refusal because of one of
    these. Never a block, a soft bounce, or anything that is about one list only.
    """
    if scope:
        return False
    if kind is Kind.BOUNCED:
        return bounce_class is BounceClass.HARD
    if kind is Kind.REJECTED:
        return reason in KNOWN_BAD
    return kind in (Kind.COMPLAINED, Kind.UNSUBSCRIBED)


def present(**found: object) -> Extras:
    """The extras that there are: nothing absent, nothing empty, nothing that is not so."""
    return {
        name: value
        for name, value in found.items()
        if value is not None and value is not False and value not in ("", [], {})
    }


def reply_extras(diagnostic: object, found: Reply) -> Extras:
    """What a receiving server answered."""
    return present(
        diagnostic=plain_text(diagnostic), smtp_code=found.code, enhanced_code=found.enhanced
    )


def tag_list(value: object) -> list[str]:
    """Tags, of which senders write one as a text and several as a list."""
    found = value if isinstance(value, list) else [value]
    return [tag for tag in map(plain_text, found) if tag]


def scalars(value: object) -> dict[str, str | bool]:
    """The texts, numbers and truth values of an object, which is what people put into metadata.

    Numbers as they are written, since nobody but their author knows what they mean.
    """
    if not isinstance(value, Mapping):
        return {}
    found = ((plain_text(name, 200), _scalar(each)) for name, each in value.items())
    return {name: each for name, each in found if name and each is not None}


def _scalar(value: object) -> str | bool | None:
    return value if isinstance(value, bool) else plain_text(value)


def without_brackets(message_id: object) -> str | None:
    """An RFC 5322 Message-ID without its angle brackets."""
    text = plain_text(message_id, 500)
    return text.strip().removeprefix("<").removesuffix(">") or None if text else None


def message_id_of(mail: object) -> str | None:
    """The Message-ID, with its brackets, of a mail or of the head of one."""
    if not isinstance(mail, str):
        return None
    found = MESSAGE_ID.search(HEAD_END.split(mail[:HEAD_MAX], maxsplit=1)[0])
    return found[1] if found else None
