"""An address is found however it is written, and nobody else is taken for it."""

import json
from urllib.parse import quote

import pytest

from hookbox.rules.folding import folded, spellings
from hookbox.rules.mentions import PREFIX, needle, pattern, pseudonym, written

ADDRESSES = [
    "ann@example.com",
    "ann+shop@example.com",
    "o'neil.x@example.co.uk",
    "müller@bücher.example",
    "ünal@example.com",
    "_@x.org",
]


def found(address: str, text: str) -> bool:
    key = folded(address)
    raw = text.encode()
    hit = pattern(written(spellings(key))).search(raw) is not None
    return hit and needle(key) in text.lower()


@pytest.mark.parametrize("address", ADDRESSES)
def test_address_is_found_however_it_is_written(address: str) -> None:
    local, _, domain = address.partition("@")
    for text in (
        address,
        address.upper() if domain.isascii() else address,
        f"To: {address}\r\nCc: x@y.z",
        f"Ann <{address}>, bob@example.com",
        f"mailto:{address}?subject=x",
        f"end of a sentence: {address}.",
        json.dumps({"to": [address]}),
        json.dumps(json.dumps({"to": f"a\n{address}\n"})),
        json.dumps(address).replace("@", "\\u0040"),
        json.dumps(f"<{address}>").replace("<", "\\u003c").replace(">", "\\u003e"),
        f"email={quote(address, safe='')}&x=1",
        f"to=Ann%20%3C{quote(address, safe='')}%3E",
        f"to={quote(address)}",
        f'"{local}"@{domain}',
        f"{domain}|{address}|1700000000",
        folded(address),
    ):
        assert found(address, text), text


@pytest.mark.parametrize(
    "text",
    [
        "joann@example.com", "mary.ann@example.com", "x-ann@example.com", "ann@example.com.au",
        "ann@example.community", "ann@example.co", "ann@xexample.com", "ann+shop@example.com",
        "ann at example.com", "", "ann", "@example.com",
    ],
)  # fmt: skip
def test_other_addresses_are_left_alone(text: str) -> None:
    assert not found("ann@example.com", text)
    assert not found("ann@example.com", json.dumps([text]))


def test_name_is_the_same_for_the_same_address_and_key_alone() -> None:
    key, other = b"k" * 32, b"o" * 32
    name = pseudonym(key, "ann@example.com")
    assert name == pseudonym(key, "ann@example.com")
    assert len({name, pseudonym(other, "ann@example.com"), pseudonym(key, "bob@example.com")}) == 3
    assert name.startswith(PREFIX)
    assert folded(name) == name, "it is compared as addresses are"
