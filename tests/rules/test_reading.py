"""Pointers, keys and texts out of decoded JSON."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookbox.rules.reading import KEY_MAX, at, key_text, parsed_pointer, placed, plain_text

# The examples of RFC 6901.
DOCUMENT = {
    "foo": ["bar", "baz"],
    "": 0,
    "a/b": 1,
    "c%d": 2,
    "m~n": 8,
    " ": 7,
    "data": {"to": [{"email": "x"}], "none": None},
}


@pytest.mark.parametrize(
    ("pointer", "value"),
    [
        ("", DOCUMENT),
        ("/foo", ["bar", "baz"]),
        ("/foo/0", "bar"),
        ("/", 0),
        ("/a~1b", 1),
        ("/c%d", 2),
        ("/m~0n", 8),
        ("/ ", 7),
        ("/data/to/0/email", "x"),
        ("/data/none", None),
        ("/absent", None),
        ("/foo/2", None),
        ("/foo/-", None),
        ("/foo/-1", None),
        ("/foo/\u00b2", None),
        ("/foo/" + "9" * 5000, None),
        ("/foo/0/deeper", None),
        ("/data/to/email", None),
    ],
)
def test_pointer(pointer: str, value: object) -> None:
    assert at(DOCUMENT, parsed_pointer(pointer)) == value


@pytest.mark.parametrize("text", ["foo", "#/foo", "data.email", " /foo"])
def test_pointer_begins_with_a_slash(text: str) -> None:
    with pytest.raises(ValueError, match="JSON pointer"):
        parsed_pointer(text)


@given(
    st.lists(st.text(st.characters(codec="utf-8"), min_size=1), min_size=1, max_size=4),
    st.none() | st.just({"kept": 1}),
)
def test_what_is_placed_is_found_there(names: list[str], document: object) -> None:
    pointer = tuple(names)
    made = placed(document, pointer, "value")
    assert at(made, pointer) == "value"
    if document and pointer[0] != "kept":
        assert at(made, ("kept",)) == 1


def test_placing_makes_lists_for_zero() -> None:
    assert placed(None, ("data", "to", "0", "email"), "x") == {"data": {"to": [{"email": "x"}]}}


@pytest.mark.parametrize(
    ("value", "key"),
    [
        ("evt_1", "evt_1"),
        ("with blank", "with blank"),
        ("\xfc\u4e2d", "\xfc\u4e2d"),
        (92356927693813856, "92356927693813856"),
        (0, "0"),
        ("x" * KEY_MAX, "x" * KEY_MAX),
        *((odd, None) for odd in ("", "a\0", "a\n", "\ud83d", "x" * (KEY_MAX + 1), "\u202e")),
        *((odd, None) for odd in (None, True, 1.5, [], {})),
    ],
)
def test_key_is_exactly_what_was_sent_or_none(value: object, key: str | None) -> None:
    assert key_text(value) == key


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain \xfc", "plain \xfc"),
        ("two\nlines\tand", "two\nlines\tand"),
        ("nul \0, esc \x1b, half \ud83d", "nul \ufffd, esc \ufffd, half \ufffd"),
        (7, "7"),
        (1.5, "1.5"),
        ("x" * 3000, "x" * 2000),
        *((odd, None) for odd in ("", None, True, [], {})),
    ],
)
def test_plain_text_is_safe_to_store_and_show(value: object, text: str | None) -> None:
    assert plain_text(value) == text


@given(st.text())
def test_plain_text_always_fits_a_column(value: str) -> None:
    text = plain_text(value)
    assert text is None or "\0" not in text.encode().decode()
