"""`multipart/form-data`, read by the body's own boundary."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookbox.rules.digest import Unreadable
from hookbox.rules.multipart import PARTS_MAX, form_object, parts


def form(*pieces: tuple[str, bytes], boundary: str = "b0", end: str = "--\r\n") -> bytes:
    made = b"".join(
        f"--{boundary}\r\n{head}\r\n\r\n".encode() + content + b"\r\n" for head, content in pieces
    )
    return made + f"--{boundary}{end}".encode()


def field(name: str) -> str:
    return f'Content-Disposition: form-data; name="{name}"'


def test_fields_and_files_are_told_apart() -> None:
    head = f'{field("file")}; filename="caf\u00e9 \\"x\\".bin"\r\nContent-Type: image/png'
    found = parts(form((field("a"), b"1"), (head, b"\0\r\n--b\r\n")))
    assert [(part.name, part.filename, part.content) for part in found] == [
        (b"a", None, b"1"),
        (b"file", 'caf\u00e9 "x".bin'.encode(), b"\0\r\n--b\r\n"),
    ]
    assert found[1].content_type == b"image/png"


def test_object_holds_texts_and_knows_files_by_digest() -> None:
    found = form_object(form((field("a"), b"\xff"), (f'{field("f")}; filename="x"', b"12345")))
    assert found["a"] == "\udcff"
    assert isinstance(found["f"], dict)
    assert found["f"]["size"] == 5
    assert len(found["f"]["sha256"]) == 64


def test_last_of_two_fields_with_one_name_counts() -> None:
    assert form_object(form((field("a"), b"1"), (field("a"), b"2"))) == {"a": "2"}


@pytest.mark.parametrize(
    "head",
    [
        'content-disposition: form-data; name="a"',
        'CONTENT-DISPOSITION:form-data;name="a"',
        "Content-Disposition: form-data; name=a",
        'Content-Type: text/plain\r\nContent-Disposition: form-data; name="a"',
        'Content-Disposition: form-data; name="a"; name="b"',
    ],
)
def test_name_is_found_however_the_head_is_written(head: str) -> None:
    assert form_object(form((head, b"1"))) == {"a": "1"}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"--",
        b"--\r\n",
        b"--b0",
        b"--b0\r\n",
        b"x--b0--",
        form((field("a"), b"1"))[:-4],
        form((field("a"), b"1"), end="--trailing"),
        form((field("a"), b"1"), end=""),
        form(("X: y", b"1")),
        form(("", b"1")),
        form((field("a"), b"1\r\n--b0x\r\n2")),
        form((field("a") + "\r\nX: " + "y" * 9000, b"1")),
        form(*[(field("a"), b"1")] * (PARTS_MAX + 1)),
        b"--" + b"b" * 71 + b"\r\n",
        b"--b\xff0\r\n",
    ],
    ids=range(16),
)
def test_body_whose_parts_are_uncertain_is_unreadable(body: bytes) -> None:
    with pytest.raises(Unreadable):
        parts(body)


@given(st.binary(max_size=200).map(lambda tail: b"--b0\r\n" + tail))
def test_noise_is_read_or_unreadable(body: bytes) -> None:
    with contextlib.suppress(Unreadable):
        form_object(body)


@given(st.dictionaries(st.sampled_from("abcd"), st.text(max_size=30)))
def test_what_is_written_is_read(fields: dict[str, str]) -> None:
    body = form(*((field(name), text.encode()) for name, text in fields.items()))
    if fields and not any("\r\n--b0" in text for text in fields.values()):
        assert form_object(body) == fields
