"""How far a signed time may be from ours.

Asked only after the signature was found right, so that a wrong clock can be told from a forger.
The window has two sides: a time from the future would stay usable longer than anybody meant.
"""

import re

from hookbox.errors import Reason, Refused
from hookbox.rules.instants import rfc3339

# Ten digits today. Twelve last until the year 33658 and leave no room for milliseconds, which
# have thirteen. Nothing but ASCII digits: int() would also take blanks, underscores, a sign and
# other scripts' digits.
SECONDS = re.compile(rb"[0-9]{1,12}")
MILLISECONDS = re.compile(rb"[0-9]{1,15}")
ZONED = re.compile(rb"[ -~]{1,40}(?:[Zz]|[+-][0-9]{2}:[0-9]{2})")


def seconds_at(text: bytes) -> int:
    """The instant that a signed time in whole seconds names."""
    return int(_written(text, SECONDS)) * 1000


def milliseconds_at(text: bytes) -> int:
    return int(_written(text, MILLISECONDS))


def rfc3339_at(text: bytes) -> int:
    found = rfc3339(_written(text, ZONED).decode("ascii"))
    if found is None:
        raise Refused(Reason.TIMESTAMP_MALFORMED)
    return found


def _written(text: bytes, form: re.Pattern[bytes]) -> bytes:
    if not text:
        raise Refused(Reason.TIMESTAMP_MISSING)
    if not form.fullmatch(text):
        raise Refused(Reason.TIMESTAMP_MALFORMED)
    return text


def skew(signed_at: int, now: int, tolerance_s: int | None) -> float:
    """Our time minus the signed time, in seconds. Refuses what is outside the window; None
    refuses nothing."""
    skew_s = (now - signed_at) / 1000
    if tolerance_s is not None and abs(skew_s) > tolerance_s:
        reason = Reason.STALE if skew_s > 0 else Reason.FUTURE
        raise Refused(reason, skew_s=skew_s, authentic=True)
    return skew_s
