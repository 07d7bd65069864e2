"""Durations and sizes as text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookbox.errors import ConfigError
from hookbox.settings import duration, duration_text, size, size_text
from hookbox.settings.units import DURATION_MAX_S, SIZE_MAX_BYTES

DURATIONS = [
    ("1s", 1),
    ("300s", 300),
    ("15m", 900),
    ("9h", 32_400),
    ("30d", 2_592_000),
    ("2w", 1_209_600),
    ("1h30m", 5_400),
    ("1d 2h 3m 4s", 93_784),
    (" 15 m ", 900),
    ("3650d", DURATION_MAX_S),
]
NO_DURATIONS = [300, 1.5, True, None, "", " ", "300", "s", "-1s", "+1s", "1.5h", "1M", "1H"]
NO_DURATIONS += ["30m1h", "1h1h", "1 month", "1h,30m", "\u0661s", "1" * 13 + "s", ["1s"]]


@pytest.mark.parametrize(("text", "seconds"), DURATIONS)
def test_duration_is_read(text: str, seconds: int) -> None:
    assert duration(text) == seconds


@pytest.mark.parametrize("value", NO_DURATIONS)
def test_what_is_no_duration_is_refused_with_examples(value: object) -> None:
    with pytest.raises(ConfigError) as refusal:
        duration(value)
    assert "is not a duration" in refusal.value.message
    assert '"1h30m"' in refusal.value.mend


@pytest.mark.parametrize("text", ["0s", "0d0h", "3651d", "999999999999w"])
def test_duration_out_of_range_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="out of range"):
        duration(text)


@given(st.integers(1, DURATION_MAX_S))
def test_duration_survives_being_shown_and_read_back(seconds: int) -> None:
    assert duration(duration_text(seconds)) == seconds


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0s"), (90, "1m30s"), (5_400, "1h30m"), (2_592_000, "30d")]
)
def test_duration_is_shown_short(seconds: int, text: str) -> None:
    assert duration_text(seconds) == text


SIZES = [
    (1, 1),
    (65_536, 65_536),
    ("4096", 4_096),
    ("1 B", 1),
    ("256 KB", 256_000),
    ("256KiB", 262_144),
    ("1 MiB", 1_048_576),
    ("1mib", 1_048_576),
    (" 2  GB ", 2 * 10**9),
    ("1024 GiB", SIZE_MAX_BYTES),
]
NO_SIZES = [
    True,
    None,
    1.5,
    -1,
    "",
    "MiB",
    "1.5 MiB",
    "-1 KB",
    "1 K",
    "1 TiB",
    "1 MiB/s",
    "\u0661 KB",
]


@pytest.mark.parametrize(("value", "count"), SIZES)
def test_size_is_read(value: object, count: int) -> None:
    assert size(value) == count


@pytest.mark.parametrize("value", NO_SIZES)
def test_what_is_no_size_is_refused_with_examples(value: object) -> None:
    with pytest.raises(ConfigError) as refusal:
        size(value)
    assert "is not a size" in refusal.value.message
    assert '"1 MiB"' in refusal.value.mend


@pytest.mark.parametrize("value", [0, "0 MiB", "1025 GiB", "999999999999999 GiB"])
def test_size_out_of_range_is_refused(value: object) -> None:
    with pytest.raises(ConfigError, match="out of range"):
        size(value)


@given(st.integers(1, SIZE_MAX_BYTES))
def test_size_survives_being_shown_and_read_back(count: int) -> None:
    assert size(size_text(count)) == count


@pytest.mark.parametrize(
    ("count", "text"), [(1_048_576, "1 MiB"), (300_000, "300 KB"), (262_144, "256 KiB"), (7, "7 B")]
)
def test_size_is_shown_in_the_largest_exact_unit(count: int, text: str) -> None:
    assert size_text(count) == text
