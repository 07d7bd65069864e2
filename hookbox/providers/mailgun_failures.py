"""What Mailgun means when it failed to deliver.

`temporary` is a deferral, until the reason is `old`: then Mailgun gave up after eight hours, calls
it temporary all the same, and it is a soft bounce. `permanent` covers addresses that were never
tried, because of an earlier bounce, complaint or unsubscribe: those are rejections. For the others
rules/replies.py classes the codes; where these say nothing, Mailgun's own `bounce-type` counts, and
at last the reason `bounce`, under which it keeps the address on its list of bounces.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from hookbox.model import BounceClass, Kind, RejectReason
from hookbox.providers.notices import Verdict
from hookbox.rules.replies import Reply, bounce_class

# Codes of its own, for what it never tried, and how the reasons of these begin.
NEVER_TRIED: Mapping[int, RejectReason] = {
    605: RejectReason.BOUNCED,
    606: RejectReason.UNSUBSCRIBED,
    607: RejectReason.SPAM,
    625: RejectReason.OTHER,
}
SUPPRESSED = "suppress-"
SUPPRESSIONS: Mapping[str, RejectReason] = {
    "suppress-bounce": RejectReason.BOUNCED,
    "suppress-unsubscribe": RejectReason.UNSUBSCRIBED,
    "suppress-complaint": RejectReason.SPAM,
}
BOUNCE_TYPES: Mapping[str, BounceClass] = {"hard": BounceClass.HARD, "soft": BounceClass.SOFT}


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """What is told of a failure; labels in lower case."""

    temporary: bool
    reason: str
    told: Reply
    bounce_type: str = ""


def verdict(failure: Failure) -> Verdict:
    if failure.reason == "old":
        return Verdict(Kind.BOUNCED, BounceClass.SOFT, RejectReason.TIMED_OUT)
    if failure.temporary:
        return Verdict(Kind.DEFERRED)
    refused = SUPPRESSIONS.get(failure.reason) or NEVER_TRIED.get(failure.told.code or 0)
    if refused or failure.reason.startswith(SUPPRESSED):
        return Verdict(Kind.REJECTED, reason=refused or RejectReason.OTHER)
    lasting = _lasting(failure)
    blocked = lasting is BounceClass.BLOCK
    return Verdict(Kind.BOUNCED, lasting, RejectReason.BLOCKED if blocked else RejectReason.BOUNCED)


def _lasting(failure: Failure) -> BounceClass:
    if failure.reason == "espblock":
        return BounceClass.BLOCK
    by_codes = bounce_class(failure.told)
    if by_codes is not BounceClass.UNDETERMINED:
        return by_codes
    by_type = BOUNCE_TYPES.get(failure.bounce_type)
    if by_type is None and failure.told.enhanced is None and failure.reason == "bounce":
        return BounceClass.HARD
    return by_type or by_codes
