"""Finding bare addresses in what senders write where an address should be.

`Ana <ana@example.com>` names ana@example.com. Case is preserved, and nothing is guessed or mended:
what is no single plain address is None. What leaves this file is printable: no NUL, no newline, no
lone surrogate, no invisible character ever gets through.
"""

import re
from collections.abc import Mapping

# RFC 5321: a local part of 64 and a domain of 255. Whoever sends more means something else.
ADDRESS_MAX = 64 + 1 + 255

# A quoted local part may hold blanks, commas and `@`; any other stops at what separates addresses.
PLAIN = r'[^\s"(),:;<>@\[\\\]]+'
ADDRESS = re.compile(rf'(?:"(?:[^"\\]|\\.)*"|{PLAIN})@(?:{PLAIN}|\[[^\s\[\]]+\])')

# One entry of a list. Quotes and brackets that are never closed run to the end: no second try.
ENTRY = re.compile(r'(?:"(?:[^"\\]|\\.)*"?|<[^<>]*>?|[^,;])+')

# What senders call the address inside an object that names a person.
ADDRESS_MEMBERS = ("email", "address", "emailAddress")


def bare(text: object) -> str | None:
    """The address itself, without display name and angle brackets; None when this is not one."""
    if not isinstance(text, str):
        return None
    found = text.strip()
    if found.endswith(">"):
        found = found[found.rfind("<") + 1 : -1].strip()
    if len(found) > ADDRESS_MAX or not found.isprintable() or not ADDRESS.fullmatch(found):
        return None
    return found


def addresses(value: object) -> tuple[str, ...]:
    """Every address in a text, a list, or an object that names a person; each once, in order."""
    found: dict[str, str] = {}
    for text in _texts(value):
        for entry in ENTRY.findall(text):
            address = bare(entry)
            if address is not None:
                found.setdefault(address.lower(), address)
    return tuple(found.values())


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return [text for each in value if not isinstance(each, list) for text in _texts(each)]
    if isinstance(value, Mapping):
        named = [value[name] for name in ADDRESS_MEMBERS if name in value]
        return [text for text in named if isinstance(text, str)][:1]
    return []
