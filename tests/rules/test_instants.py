"""One function reads every shape of time that senders write."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookbox.rules.instants import instant, written

SECOND = 1_700_000_000_000  # 2023-11-14T22:13:20Z


@pytest.mark.parametrize(
    ("value", "milliseconds"),
    [
        (1_700_000_000, 0),
        ("1700000000", 0),
        (1_700_000_000_123, 123),
        ("1700000000123", 123),
        (1_700_000_000_123_456, 123),
        (1_700_000_000_123_456_789, 123),
        (1_700_000_000.512, 512),
        ("1700000000.512", 512),
        (1_700_000_000.9999, 999),
        ("2023-11-14T22:13:20Z", 0),
        ("2023-11-14t22:13:20z", 0),
        ("2023-11-14 22:13:20", 0),
        ("2023-11-14T22:13:20", 0),
        ("2023-11-14 22:13:20 UTC", 0),
        ("2023-11-14T22:13:20+00:00", 0),
        ("2023-11-14T23:13:20+01:00", 0),
        ("2023-11-14T17:13:20-0500", 0),
        ("2023-11-15T00:13:20 +02", 0),
        ("2023-11-14T22:13:20.9Z", 900),
        ("2023-11-14T22:13:20.907Z", 907),
        ("2023-11-14T22:13:20.9070259Z", 907),
        ("2023-11-14T22:13:20.907025912Z", 907),
        ("2023-11-14T22:13:20,907Z", 907),
        ("2023-11-14T17:13:20.9070259-05:00", 907),
        (" 2023-11-14T22:13:20Z\n", 0),
        ("Tue, 14 Nov 2023 22:13:20 +0000", 0),
        ("Tue, 14 Nov 2023 22:13:20 GMT", 0),
        ("14 Nov 2023 17:13:20 -0500", 0),
    ],
)
def test_every_shape_is_the_same_instant(value: object, milliseconds: int) -> None:
    assert instant(value) == SECOND + milliseconds


def test_edges_of_the_calendar() -> None:
    assert instant("1970-01-01T00:00:00Z") == 0
    assert instant(0) == 0
    assert instant("2023-11-14T22:13Z") == SECOND - 20_000
    assert instant("2016-12-31T23:59:60Z") == instant("2017-01-01T00:00:00Z")
    assert instant("9999-12-31T23:59:59.999Z") == 253_402_300_799_999


@pytest.mark.parametrize(
    "value",
    [
        *(None, True, False, "", " ", "soon", "the day after tomorrow", [], {}, b"1700000000"),
        *(float("nan"), float("inf"), -1, -1.5, "-1700000000", "+1700000000", "1_700_000_000"),
        *(99999999999999999999, 10**19, 10**400, 1e300, "9" * 5000, "9" * 20, "1e9", "0x10"),
        *("2023-13-01T00:00:00Z", "2023-02-30T00:00:00Z", "2023-11-14T24:00:00Z"),
        *("2023-11-14T22:60:00Z", "2023-11-14T22:13:61Z", "2023-11-14", "22:13:20"),
        *("0000-01-01T00:00:00Z", "0001-01-01T00:00:00+23:59", "1969-12-31T23:59:59Z"),
        *("2023-11-14T22:13:20+99:00", "2023-11-14T22:13:20Zjunk", "2023-11-14T22:13:20+1"),
        *("\u0662\u0660\u0662\u0663-11-14T22:13:20Z", "\uff11700000000", "\u00b2"),
        *("Tue, 99 Nov 2023 22:13:20 +0000", "Tue, 14 Foo 2023 22:13:20 +0000"),
        *("9999-12-31T23:59:59-23:59", "2023-11-14T22:13:20" + "0" * 60),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_cannot_be_read_is_none(value: object) -> None:
    assert instant(value) is None


@given(st.one_of(st.text(max_size=40), st.integers(), st.floats(), st.binary(max_size=10)))
def test_never_raises(value: object) -> None:
    found = instant(value)
    assert found is None or 0 <= found <= 253_402_300_799_999


@given(st.from_regex(r"\A[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}.{0,8}\Z"))
def test_nearly_a_date_never_raises(text: str) -> None:
    instant(text)


@given(st.integers(min_value=0, max_value=253_402_300_799_999))
def test_what_is_written_is_read_back(at: int) -> None:
    assert instant(written(at)) == at
