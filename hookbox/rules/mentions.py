"""Finding an address in text of any kind: plain, or as JSON, URLs and forms write it.

What only ends or begins like it is another address and left alone, where that can be told.
"""

import hmac
import json
import re
from collections.abc import Iterable, Sequence
from urllib.parse import quote

PREFIX = "erased:"  # no address begins so: a colon cannot stand there
DIGITS = 32  # 128 bits of the hash: two addresses never share them

# An escape that ends in letters or digits may stand before an address; nothing else of the kind.
BEFORE = rb"(?:(?<![\w.%+-])|(?<=\\[nrtbf])|(?<=\\u[0-9a-f]{4})|(?<=%[0-9a-f]{2}))"
AFTER = rb"(?![\w-]|\.\w)"


def pseudonym(key: bytes, folded: str) -> str:
    """The name of an address that is itself forgotten; nobody without the key finds out whose."""
    return PREFIX + hmac.digest(key, folded.encode(), "sha256").hex()[:DIGITS]


def written(spellings: Iterable[str]) -> list[str]:
    """How addresses that are spelt so may be written, aside from the case of plain letters."""
    found: dict[str, None] = {}
    for spelling in spellings:
        cases = (spelling,) if spelling.isascii() else (spelling, spelling.upper())
        for text in cases:
            found |= dict.fromkeys(_forms(text))
    return list(found)


def _forms(text: str) -> Iterable[str]:
    """Plain, and as JSON, URLs, HTML and mail write it."""
    escaped = json.dumps(text)[1:-1]
    yield text
    yield escaped
    yield escaped.replace("@", "\\u0040")
    yield escaped.replace("@", "\\u0040").replace("+", "\\u002b")
    yield quote(text, safe="")
    yield quote(text, safe="@")
    yield text.replace("@", "&#64;")
    yield text.replace("@", "=40")


def needle(folded: str) -> str:
    """What every form contains: the longest row of plain letters and digits, of the local part
    where it has one.
    """
    local, _, domain = folded.rpartition("@")
    rows = re.findall("[a-z0-9]+", local) or re.findall("[a-z0-9]+", domain)
    return max(rows, key=len, default="@")


def pattern(forms: Sequence[str]) -> re.Pattern[bytes]:
    """Finds these forms in bytes; JSON inside JSON has its backslashes doubled."""
    longest_first = sorted(forms, key=len, reverse=True)
    either = b"|".join(re.escape(form.encode()).replace(rb"\\", rb"\\+") for form in longest_first)
    return re.compile(BEFORE + rb"(?:" + either + rb")" + AFTER, re.IGNORECASE)
