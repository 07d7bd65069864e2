"""Form fields come through as bytes, in order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookbox.rules.digest import Unreadable
from hookbox.rules.forms import FIELDS_MAX, fields, flat_object


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (b"a=1&b=2&a=3", [(b"a", b"1"), (b"b", b"2"), (b"a", b"3")]),
        (b"a=x+y%2Bz&b=", [(b"a", b"x y+z"), (b"b", b"")]),
        (b"a=%E9%00&%C3%A9=1", [(b"a", b"\xe9\0"), (b"\xc3\xa9", b"1")]),
        (b"a=\xe9&b", [(b"a", b"\xe9"), (b"b", b"")]),
        (b"a=1;b=2", [(b"a", b"1;b=2")]),
        (b"", []),
    ],
)
def test_fields(text: bytes, found: list[tuple[bytes, bytes]]) -> None:
    assert fields(text) == found


def test_flat_object_is_of_texts_and_names_are_single() -> None:
    assert flat_object(b"a=%C3%A9&b=1") == {"a": "\xe9", "b": "1"}
    for bad in (b"a=1&a=1", b"a=%E9", b"&".join([b"a=1"] * (FIELDS_MAX + 1))):
        with pytest.raises(Unreadable):
            flat_object(bad)


@given(st.binary(max_size=100))
def test_any_bytes_are_fields_or_unreadable(text: bytes) -> None:
    for read in (fields, flat_object):
        try:
            read(text)
        except Unreadable:
            continue
