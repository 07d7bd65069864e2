"""JSON is read in one way only, and its digest is that of what it says."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookbox.rules.digest import (
    Unreadable,
    digest_of,
    digest_of_bytes,
    read_json,
    read_value,
    synthesised_key,
    value_or_none,
)

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


def _digest(text: str | bytes) -> bytes:
    return read_json(text if isinstance(text, bytes) else text.encode()).digest


@pytest.mark.parametrize(
    ("one", "same"),
    [
        ('{"a":1,"b":2}', '{"b":2,"a":1}'),
        ('{"a":{"x":1,"y":[1,2]}}', ' { "a" : { "y" : [ 1 , 2 ] , "x" : 1 } } \r\n'),
        ('{"a":"/"}', '{"a":"\\/"}'),
        ('{"a":"\u00e9"}', '{"a":"\\u00e9"}'),
        ('{"a":"\\ud83d"}', '{"a":"\\uD83D"}'),
        ('{"a":1.5,"b":2.50}', '{"b":2.50,"a":1.5}'),
        ("{}", "\ufeff{}"),
        (f'{{"a":{"7" * 4000}}}', f'{{ "a" : {"7" * 4000} }}'),
    ],
)
def test_spelling_does_not_matter(one: str, same: str) -> None:
    assert _digest(one) == _digest(same)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('{"a":1}', '{"a":1.0}'),
        ('{"a":1.0}', '{"a":1.00}'),
        ('{"a":1e2}', '{"a":100.0}'),
        ('{"a":1.0}', '{"a":"1.0"}'),
        ('{"a":0.1}', '{"a":0.1000000000000000055}'),
        ('{"a":92356927693813856}', '{"a":92356927693813857}'),
        ('{"a":1e999}', '{"a":2e999}'),
        ('{"a":-0.0}', '{"a":0.0}'),
        ('{"a":1}', '{"a":"1"}'),
        ('{"a":1}', '{"a":true}'),
        ('{"a":null}', "{}"),
        ('{"a":[1,2]}', '{"a":[2,1]}'),
        ('{"a":"x"}', '{"a":"X"}'),
        ('{"a":"x"}', '{"a":"x "}'),
        ('{"a":"x\\u0000"}', '{"a":"x"}'),
        ('{"a":"\\ud83d"}', '{"a":"\\ufffd"}'),
        ('{"a":1.5,"b":2}', '{"a":2,"b":1.5}'),
        ('{"a":{"b":1}}', '{"a":{},"b":1}'),
        ("[]", "{}"),
        ('["1"]', "[1]"),
    ],
)
def test_meaning_does(one: str, other: str) -> None:
    assert _digest(one) != _digest(other)


@given(JSON)
def test_digest_is_stable_over_every_way_of_writing(value: object) -> None:
    compact = json.dumps(value, separators=(",", ":"), sort_keys=True)
    wide = json.dumps(value, indent=3, ensure_ascii=False)
    assert (
        read_json(compact.encode()).digest
        == read_json(wide.encode("utf-8", "surrogatepass")).digest
    )


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "not JSON"),
        (b"   ", "not JSON"),
        (b'{"type":"email.delivered","data":', "not JSON"),
        (b"{broken", "not JSON"),
        (b"{} {}", "something follows"),
        (b"{},", "something follows"),
        (b"{}\0", "something follows"),
        (b'{"a":NaN}', "NaN"),
        (b'{"a":[-Infinity]}', "Infinity"),
        (b'{"a":1,"a":1}', "same name"),
        (b'{"data":{"to":"a","to":"b"}}', "same name"),
        (b'{"a":1,"\\u0061":2}', "same name"),
        (b'{"a":"\xff"}', "not UTF-8"),
        (b'{"a":"\xed\xa0\xbd"}', "not UTF-8"),
        ('{"a":1}'.encode("utf-16"), "not UTF-8"),
        (b"\0", "not JSON"),
        (b'{"a":"\n"}', "not JSON"),
        (b"{'a':1}", "not JSON"),
        (b'{"a":1,}', "not JSON"),
        (b'{"a":01}', "not JSON"),
        (b'{"a":' + b"9" * 5000 + b"}", "thousands of digits"),
        (b"[" * 200_000, "nested too deeply"),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "nested too deeply"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_what_two_readers_could_read_in_two_ways_is_unreadable(body: bytes, reason: str) -> None:
    for read in (read_json, read_value):
        with pytest.raises(Unreadable, match=reason):
            read(body)


@pytest.mark.parametrize(
    "body",
    [
        b'"hello"',
        b"[]",
        b"7",
        b"null",
        b"\xef\xbb\xbf{}",
        b'{"a":1e999}',
        b'{"a":"\\ud83d"}',
        b'{"a":"\\u0000"}',
        b'{"a":99999999999999999999}',
        b'{"a":9223372036854775808}',
        b'{"\\u0000":{"":[]}}',
    ],
)
def test_odd_but_plain_json_is_read(body: bytes) -> None:
    assert read_json(body).value == read_value(body)
    assert len(read_json(body).digest) == 32


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b'{"a":1,"a":2}', b"[1] 2"])
def test_what_was_let_through_unreadable_reads_as_nothing(body: bytes) -> None:
    assert value_or_none(body) is None
    assert value_or_none(b'{"a":[1]}') == {"a": [1]}


def test_reason_names_no_content() -> None:
    """Reasons are logged and shown; bodies are not."""
    for body in (b'{"secret-name":1,"secret-name":2}', b'{"secret-name": oops}', b"secret-name"):
        with pytest.raises(Unreadable) as unreadable:
            read_json(body)
        assert "secret" not in str(unreadable.value)


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_unreadable(body: bytes) -> None:
    for read in (read_json, read_value):
        try:
            read(body)
        except Unreadable:
            continue


def test_digest_of_parts_and_bytes() -> None:
    assert digest_of({"b": 1, "a": "\ud83d"}) == digest_of({"a": "\ud83d", "b": 1})
    assert digest_of({"a": 1}) == _digest('{"a": 1}')
    assert digest_of_bytes(b"\xff") != digest_of_bytes(b"\xfe")


def test_synthesised_key_is_hashed_over_joined_parts() -> None:
    assert synthesised_key("1001", "delivered", "2026-03-14T09:26:53Z") == (
        "h:92dbbf10e32ef4f91a94101aad54d08fcd72c2311970ac8891c3792df2a386dd"
    )
    assert synthesised_key("a", "") != synthesised_key("", "a")
    assert synthesised_key("\ud83d").startswith("h:")
