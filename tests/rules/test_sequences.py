"""What is missing between the numbers that were seen."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookbox.rules.sequences import missing


@pytest.mark.parametrize(
    ("first", "last", "seen", "expected"),
    [
        (1, 5, [1, 2, 3, 4, 5], []),
        (1, 5, [], [(1, 5)]),
        (1, 5, [3], [(1, 2), (4, 5)]),
        (1, 5, [1, 5], [(2, 4)]),
        (3, 5, [1, 2, 9], [(3, 5)]),
        (6, 5, [1], []),
        (1, 10**15, [10**15], [(1, 10**15 - 1)]),
    ],
)
def test_missing_numbers_are_found(
    first: int, last: int, seen: list[int], expected: list[tuple[int, int]]
) -> None:
    assert missing(first, last, seen) == expected


@given(st.integers(0, 30), st.integers(0, 30), st.sets(st.integers(-5, 35)))
def test_every_number_is_seen_or_missing(first: int, last: int, seen: set[int]) -> None:
    found = missing(first, last, seen)
    absent = {number for begin, end in found for number in range(begin, end + 1)}
    assert absent == set(range(first, last + 1)) - seen
    assert found == sorted(found)
