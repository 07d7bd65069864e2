"""Answers say in a header when to come back, and not all of them as the standard has it."""

import pytest

from hookbox.rules.retry_after import RETRY_AFTER_MAX_S, retry_after_s


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("7", 7.0),
        (" 120 ", 120.0),
        ("1.5", 1.5),
        ("0", 0.0),
        ("99999999999999999999", RETRY_AFTER_MAX_S),
        ("9" * 5_000, RETRY_AFTER_MAX_S),
        ("Tue, 14 Nov 2023 22:13:50 GMT", 30.0),
        ("Tue, 14 Nov 2023 22:00:00 GMT", 0.0),
        ("Tue, 14 Nov 2045 22:00:00 GMT", RETRY_AFTER_MAX_S),
        ("soon", None),
        ("-5", None),
        ("٣", None),
        ("", None),
    ],
)
def test_pause_is_read(text: str, seconds: float | None) -> None:
    assert retry_after_s(text, 1_700_000_000_000) == seconds
