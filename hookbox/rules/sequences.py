"""Sequences: what is missing between the numbers that were seen."""

from collections.abc import Iterable

# The first and the last of a run of numbers, both in it.
Range = tuple[int, int]


def missing(first: int, last: int, seen: Iterable[int]) -> list[Range]:
    """The runs of numbers from `first` to `last` that were not seen. Costs nothing for their
    length.
    """
    found: list[Range] = []
    for number in sorted({each for each in seen if first <= each <= last}):
        if number > first:
            found.append((first, number - 1))
        first = number + 1
    if first <= last:
        found.append((first, last))
    return found
