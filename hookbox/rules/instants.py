"""Reading the times that senders write: one function for all their shapes.

What cannot be read is None and never an error; a time of day without a zone is taken as UTC.
Whether a time is plausible is for others to judge.
"""

import re
from datetime import UTC, date, datetime, timedelta
from email.utils import parsedate_to_datetime

# RFC 3339 as people really write it: `T`, `t` or a blank; any number of digits in the fraction
# (.NET writes seven, Go nine); `Z`, `+01:00`, `+0100`, `+01`, ` UTC` or nothing for the zone.
RFC3339 = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt ]([0-9]{2}):([0-9]{2})"
    r"(?::([0-9]{2})(?:[.,]([0-9]{1,18}))?)?"
    r" ?(?:([Zz]|UTC|GMT)|([+-])([0-9]{2}):?([0-9]{2})?)?"
)
NUMBER = re.compile(r"[0-9]{1,19}(?:\.[0-9]{1,18})?")
# `Tue, 14 Nov 2023 22:13:20 +0000`; the day's name is optional.
RFC2822 = re.compile(
    r"(?:[A-Za-z]{3},? )?[0-9]{1,2} [A-Za-z]{3} [0-9]{4} [0-9]{2}:[0-9]{2}[ -~]{0,20}"
)

# Which unit a bare number has shows in its size: 10^11 s is the year 5138, 10^11 ms is 1973.
UNITS = ((1e11, 1000.0), (1e14, 1.0), (1e17, 1e-3), (1e19, 1e-6))

LAST_AT = 253_402_300_799_999  # the end of the year 9999
DAYS_BEFORE_1970 = date(1970, 1, 1).toordinal()
DAY_MINUTES = 24 * 60


def instant(value: object) -> int | None:
    """Milliseconds since 1970 for a number (s, ms, µs or ns), a numeric text, or a written date."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return _of_number(value)
    if not isinstance(value, str) or len(value) > 64:
        return None
    text = value.strip()
    if NUMBER.fullmatch(text):
        return _of_number(float(text) if "." in text else int(text))
    if RFC2822.fullmatch(text):
        return _of_rfc2822(text)
    return rfc3339(text)


def rfc3339(text: str) -> int | None:
    """Milliseconds since 1970 for a written date, in any of the shapes of RFC3339 above."""
    found = RFC3339.fullmatch(text)
    return _of_rfc3339(found) if found else None


def written(at: int) -> str:
    """The instant as RFC 3339 text in UTC, to the millisecond."""
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=at)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _of_number(number: int | float) -> int | None:
    for limit, factor in UNITS:
        if 0 <= number < limit:  # False for NaN too
            # Cut off, but not the .9999 that a double makes of .0.
            at = int(number * factor + 0.001)
            return at if at <= LAST_AT else None
    return None


def _of_rfc3339(found: re.Match[str]) -> int | None:
    year, month, day, hour, minute, second, fraction, _, sign, ahead_h, ahead_m = found.groups()
    try:
        days = date(int(year), int(month), int(day)).toordinal() - DAYS_BEFORE_1970
    except ValueError:
        return None
    hours, minutes, seconds = int(hour), int(minute), int(second or 0)
    ahead = int(ahead_h or 0) * 60 + int(ahead_m or 0)
    if hours > 23 or minutes > 59 or seconds > 60 or ahead >= DAY_MINUTES:  # 60 is a leap second
        return None
    minutes += hours * 60 + (ahead if sign == "-" else -ahead)
    milliseconds = int((fraction or "").ljust(3, "0")[:3])
    at = ((days * DAY_MINUTES + minutes) * 60 + seconds) * 1000 + milliseconds
    return at if 0 <= at <= LAST_AT else None


def _of_rfc2822(text: str) -> int | None:
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return _milliseconds(moment if moment.tzinfo else moment.replace(tzinfo=UTC))


def _milliseconds(moment: datetime) -> int | None:
    at = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    return at if 0 <= at <= LAST_AT else None
