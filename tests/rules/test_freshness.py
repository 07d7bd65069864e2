"""Signed times are read strictly, and the window has two sides."""

from collections.abc import Callable

import pytest

from hookbox.errors import Reason, Refused
from hookbox.rules.freshness import milliseconds_at, rfc3339_at, seconds_at, skew

Read = Callable[[bytes], int]
NOW = 1_700_000_000_000


@pytest.mark.parametrize("text", [b"1700000000", b"001700000000"])
def test_seconds(text: bytes) -> None:
    assert seconds_at(text) == NOW


def test_milliseconds_and_written_times() -> None:
    assert milliseconds_at(b"1700000000123") == NOW + 123
    assert rfc3339_at(b"2023-11-14T22:13:20.1239Z") == NOW + 123
    assert rfc3339_at(b"2023-11-14T23:13:20+01:00") == NOW


TRAPS = [
    *(b"1700000000000", b"1_700_000_000", b" 1700000000", b"1700000000\n", b"+1700000000"),
    *(b"-1700000000", b"1700000000.0", b"1.7e9", b"NaN", b"inf", b"0x65540000", b"123abc"),
    *("\u0661\u0667".encode(), "\uff11\uff17".encode(), "\u00b2".encode(), b"9" * 5000),
]


@pytest.mark.parametrize("text", TRAPS)
@pytest.mark.parametrize("read", [seconds_at, rfc3339_at])
def test_what_int_would_take_is_refused(read: Read, text: bytes) -> None:
    with pytest.raises(Refused) as refused:
        read(text)
    assert refused.value.reason is Reason.TIMESTAMP_MALFORMED


@pytest.mark.parametrize(
    "text", [b"2023-11-14T22:13:20", b"2023-11-14", b"Z", b"2023-13-01T00:00Z"]
)
def test_signed_date_without_zone_or_sense_is_refused(text: bytes) -> None:
    """Without a zone, `20.5Z` after it could be the end of the time or the begin of the body."""
    with pytest.raises(Refused):
        rfc3339_at(text)


@pytest.mark.parametrize("read", [seconds_at, milliseconds_at, rfc3339_at])
def test_empty_is_missing(read: Read) -> None:
    with pytest.raises(Refused) as refused:
        read(b"")
    assert refused.value.reason is Reason.TIMESTAMP_MISSING


@pytest.mark.parametrize("skew_s", [-300, -299.999, 0, 0.001, 300])
def test_inside_the_window(skew_s: float) -> None:
    assert skew(NOW, NOW + round(skew_s * 1000), 300) == skew_s


@pytest.mark.parametrize(
    ("skew_s", "reason"),
    [
        (300.001, Reason.STALE),
        (301, Reason.STALE),
        (-300.001, Reason.FUTURE),
        (-1e9, Reason.FUTURE),
    ],
)
def test_outside_the_window_is_authentic_and_the_skew_is_told(
    skew_s: float, reason: Reason
) -> None:
    with pytest.raises(Refused) as refused:
        skew(NOW, NOW + round(skew_s * 1000), 300)
    assert (refused.value.reason, refused.value.authentic) == (reason, True)
    assert refused.value.skew_s == skew_s


def test_no_tolerance_refuses_nothing() -> None:
    assert skew(NOW, NOW + 10**12, None) == 1e9
