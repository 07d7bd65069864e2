"""Reading what receiving mail servers reply: the SMTP code and the enhanced code of RFC 3463.

Senders hand these on inside prose (`smtp;550 5.1.1 The email account does not exist`). The class
is the box's own rule for when a sender gives none.
"""

import re
from dataclasses import dataclass

from hookbox.model import BounceClass

REPLY = re.compile(
    r"\s*(?:smtp\s*;\s*)?"
    r"(?:([245][0-9]{2})(?![0-9.])[ -]?\s*)?"
    r"(?:#?([245]\.[0-9]{1,3}\.[0-9]{1,3})(?![0-9.]))?",
    re.IGNORECASE,
)
ENHANCED = re.compile(r"[245]\.[0-9]{1,3}\.[0-9]{1,3}")

# 5.1.x is about the recipient's address, but for these three, which are about the sender's.
ABOUT_THE_SENDER = ("5.1.7", "5.1.8", "5.1.9")


@dataclass(frozen=True, slots=True)
class Reply:
    """The two codes of a reply, each None where it is not there."""

    code: int | None = None
    enhanced: str | None = None


def reply(text: object) -> Reply:
    """The codes that a reply begins with."""
    if not isinstance(text, str):
        return Reply()
    found = REPLY.match(text, 0, 200)
    if found is None:  # never: every part is optional
        return Reply()
    return Reply(int(found[1]) if found[1] else None, found[2])


def enhanced_code(value: object) -> str | None:
    """The value itself where it is an enhanced code and nothing else."""
    return value if isinstance(value, str) and ENHANCED.fullmatch(value) else None


def bounce_class(found: Reply) -> BounceClass:
    """How lasting a final refusal is, by its codes alone.

    5.1.x is a wrong address and hard; 5.7.x is policy and a block, as is trouble with the sender's
    own address; anything that begins with 4 is soft. The rest (a full mailbox, a broken server, a
    message too large) says nothing about tomorrow: undetermined.
    """
    enhanced = found.enhanced or ""
    if enhanced.startswith("5.7.") or enhanced in ABOUT_THE_SENDER:
        return BounceClass.BLOCK
    if enhanced.startswith("5.1."):
        return BounceClass.HARD
    if enhanced.startswith("4.") or (not enhanced and 400 <= (found.code or 0) < 500):
        return BounceClass.SOFT
    return BounceClass.UNDETERMINED
