"""Batches are taken apart at their places in the body."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookbox.rules.digest import Unreadable, read_json
from hookbox.rules.elements import read_elements
from tests.rules.test_digest import JSON

BLANKS = st.text(" \t\r\n", max_size=3)


@given(st.lists(JSON, max_size=5), BLANKS, st.booleans(), st.booleans())
def test_each_slice_is_the_element(
    values: list[object], blank: str, ascii_only: bool, marked: bool
) -> None:
    """Whatever stands between them, and in any characters."""
    texts = [json.dumps(value, ensure_ascii=ascii_only) for value in values]
    text = blank + "[" + f"{blank},{blank}".join(f"{blank}{each}{blank}" for each in texts) + "]"
    body = ("\ufeff" * marked + text + blank).encode("utf-8", "surrogatepass")
    try:
        found = read_elements(body)
    except Unreadable:
        assert any("\ud800" <= character <= "\udfff" for character in text)
        return
    assert [json.loads(body[each.start : each.end]) for each in found] == values
    for each, own in zip(found, texts, strict=True):
        assert each.content is not None
        assert each.content.digest == read_json(own.encode()).digest


@pytest.mark.parametrize("pointer", [("events",), ("a", "events"), ("\xe9", "")])
def test_array_inside_objects(pointer: tuple[str, ...]) -> None:
    inner = '[{"id":"\xe9"} , 2]'
    text = inner
    for name in reversed(pointer):
        text = f'{{"before":[1,{{"events":0}}], {json.dumps(name)} :{text} ,"after":"\xfc"}}'
    body = f" {text}\r\n".encode()
    found = read_elements(body, pointer)
    assert [body[each.start : each.end].decode() for each in found] == ['{"id":"\xe9"}', "2"]


def test_one_bad_element_does_not_spoil_the_others() -> None:
    bad = ['{"a":NaN}', '{"a":1,"a":2}', "9" * 5000, '{"b":[{"c":-Infinity}]}']
    body = ("[1," + ", ".join(bad) + ', "last"]').encode()
    found = read_elements(body)
    assert [each.content.value for each in found if each.content] == [1, "last"]
    broken = [each for each in found if not each.content]
    assert [body[each.start : each.end].decode() for each in broken] == bad
    assert all(each.fault for each in broken)


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b" ", b"[", b"[1", b"[1,", b"[1,]", b"[,]", b"[,1]", b"[1 2]", b"[1]]", b"[1],"),
        *(b"{}", b"7", b'"[]"', b"null", b"[1] [2]", b"\xff", b"[\xff]", b"[1}", b"]"),
        *(
            b"[" * 200_000,
            b'[{"a":' * 50_000,
            b"[1\0]",
            b"\0",
            b"[" + b"[" * 5000 + b"]" * 5000 + b"]",
        ),
    ],
    ids=lambda body: repr(body)[:20],
)
def test_body_that_is_no_array_is_unreadable(body: bytes) -> None:
    with pytest.raises(Unreadable):
        read_elements(body)


@pytest.mark.parametrize(
    "body",
    [
        *(b"[]", b"{}", b'{"events":{}}', b'{"events":null}', b'{"a":{"events":[]}}', b"7", b""),
        *(b'{"events":[1]', b'{"events":[1],}', b'{"events":[1]} x', b'{"events" [1]}'),
        *(b'{"events":[1],"events":[1]}', b'{"events":[1],"a":tru}', b'{"a":tru,"events":[1]}'),
        *(b"{events:[1]}", b'{7:1,"events":[1]}', b'{"events":[1],"a":\xff}', b'{,"events":[1]}'),
    ],
)
def test_array_that_is_not_where_it_should_be(body: bytes) -> None:
    with pytest.raises(Unreadable):
        read_elements(body, ("events",))


@given(st.binary(max_size=100))
@pytest.mark.parametrize("pointer", [(), ("a",)])
def test_any_bytes_are_taken_apart_or_unreadable(pointer: tuple[str, ...], body: bytes) -> None:
    for sent in (body, b"[" + body + b"]", b'{"a":[' + body + b"]}"):
        try:
            read_elements(sent, pointer)
        except Unreadable:
            continue
