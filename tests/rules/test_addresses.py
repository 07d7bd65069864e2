"""Bare addresses come out of what senders write, whole or not at all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookbox.rules.addresses import addresses, bare


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("ana@example.com", "ana@example.com"),
        ("Ana@Example.COM", "Ana@Example.COM"),
        (" ana@example.com\n", "ana@example.com"),
        ("<ana@example.com>", "ana@example.com"),
        ("Ana <ana@example.com>", "ana@example.com"),
        ("Ana \ud83d <ana@example.com>", "ana@example.com"),
        ('"Doe, Ana" < ana@example.com >', "ana@example.com"),
        ("bob@example.net <ana@example.com>", "ana@example.com"),
        ("a+news@example.com", "a+news@example.com"),
        ("o'brien@example.com", "o'brien@example.com"),
        ('"x@y, z"@example.com', '"x@y, z"@example.com'),
        ('"quo\\"ted"@example.com', '"quo\\"ted"@example.com'),
        ("ana@[192.0.2.1]", "ana@[192.0.2.1]"),
        ("ana@[IPv6:2001:db8::1]", "ana@[IPv6:2001:db8::1]"),
        ("jos\xe9@b\xfccher.example", "jos\xe9@b\xfccher.example"),
        ("ana@localhost", "ana@localhost"),
    ],
)
def test_one_address(text: str, address: str) -> None:
    assert bare(text) == address


@pytest.mark.parametrize(
    "text",
    [
        *("", "ana", "@", "ana@", "@example.com", "ana@@example.com", "a@b@c", "ana@exam ple.com"),
        *("ana example@example.com", "a@example.com, b@example.com", "a@example.com;b@example.com"),
        *("ana@example.com\0", "ana\n@example.com", "ana@example.com\x7f", "ana\ud83d@example.com"),
        *(
            "ana\u200b@example.com",
            "ana\u202e@example.com",
            "<ana@example.com",
            "ana@example.com>x",
        ),
        *("ana@[192.0.2.1", "a" * 320 + "@example.com", None, 7, [], {}, b"ana@example.com"),
    ],
    ids=lambda value: str(value)[:30].encode("ascii", "backslashreplace").decode(),
)
def test_no_single_plain_address(text: object) -> None:
    assert bare(text) is None


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("ana@example.com", ["ana@example.com"]),
        (["ana@example.com", "Bob <bob@example.com>"], ["ana@example.com", "bob@example.com"]),
        ("Ana <ana@example.com>, bob@example.com", ["ana@example.com", "bob@example.com"]),
        ('"Doe, Ana" <ana@example.com>; bob@example.com', ["ana@example.com", "bob@example.com"]),
        ('"x@y, z"@example.com, bob@example.com', ['"x@y, z"@example.com', "bob@example.com"]),
        (["ana@example.com", "ANA@example.com"], ["ana@example.com"]),
        ({"email": "ana@example.com", "name": "Ana"}, ["ana@example.com"]),
        ([{"address": "ana@example.com"}, {"name": "x"}], ["ana@example.com"]),
        (["nobody", "", None, 7, ["x@example.com"]], []),
        (None, []),
        ("", []),
    ],
)
def test_all_addresses_each_once_in_order(value: object, found: list[str]) -> None:
    assert list(addresses(value)) == found


@given(st.text())
def test_what_comes_out_is_printable_and_stable(text: str) -> None:
    for address in addresses(text):
        assert address.isprintable()
        assert bare(address) == address
        address.encode()


@pytest.mark.parametrize("junk", ['"', "<", '"\\', ",", "a<", '"@', "(", "@"])
def test_long_junk_is_read_in_one_go(junk: str) -> None:
    """No pattern tries again from every character: this would take minutes."""
    assert addresses(junk * 100_000) == ()
    assert bare(junk * 100_000) is None
