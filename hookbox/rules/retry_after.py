"""`Retry-After`: when to come back, as an answer's header says it (RFC 9110, 10.2.3)."""

import re

from hookbox.rules.instants import instant

RETRY_AFTER_MAX_S = 86_400.0  # whoever asks for more is asked again after a day
# Some servers write fractions, though the standard has whole seconds.
SECONDS = re.compile(r"[0-9]+(?:\.[0-9]+)?")
DIGITS_MAX = 16  # of a longer number the beginning is more than anybody waits
DATE = re.compile(r"[A-Za-z]{3}, [ -~]{10,40}")


def retry_after_s(text: str, now: int) -> float | None:
    """The wait in seconds that a header's text asks for, written as such or as a date; None for
    what is neither.
    """
    text = text.strip()
    if SECONDS.fullmatch(text):
        return min(float(text[:DIGITS_MAX]), RETRY_AFTER_MAX_S)
    at = instant(text) if DATE.fullmatch(text) else None
    return None if at is None else min(max(0.0, (at - now) / 1000), RETRY_AFTER_MAX_S)
