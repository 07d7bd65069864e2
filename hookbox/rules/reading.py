"""Reading facts out of decoded JSON: pointers, and text that is safe to store and to show."""

from hookbox.rules.addresses import addresses, bare
from hookbox.rules.instants import instant

__all__ = ["addresses", "at", "bare", "instant", "key_text", "parsed_pointer", "plain_text"]

# Longest key that is taken; the senders' own are under 100, two of them joined stay under it.
KEY_MAX = 512
TEXT_MAX = 2000

# A parsed JSON pointer: the names on the way down.
Pointer = tuple[str, ...]


def parsed_pointer(text: str) -> Pointer:
    """RFC 6901: `/data/to/0`; `~1` is a slash, `~0` a tilde. ValueError for anything else."""
    if text and not text.startswith("/"):
        raise ValueError(f"`{text}` is not a JSON pointer: it begins with `/`, as in `/data/email`")
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:])


def at(document: object, pointer: Pointer) -> object:
    """What the pointer points at; None where there is nothing, as for JSON's null."""
    for name in pointer:
        if isinstance(document, dict):
            document = document.get(name)
        elif isinstance(document, list) and name.isascii() and name.isdigit():
            document = document[int(name)] if len(name) < 10 and int(name) < len(document) else None
        else:
            return None
    return document


def placed(document: object, pointer: Pointer, value: object) -> object:
    """The document with a value where the pointer points; objects and lists are made on the way."""
    if not pointer:
        return value
    name, rest = pointer[0], pointer[1:]
    if isinstance(document, list) or (document is None and name == "0"):
        return [placed(None, rest, value)]
    members = dict(document) if isinstance(document, dict) else {}
    members[name] = placed(members.get(name), rest, value)
    return members


def key_text(value: object) -> str | None:
    """An identity exactly as sent: a printable text, or a whole number as decimal digits.

    It is never mended, since mending could make two identities one.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, str) and 0 < len(value) <= KEY_MAX and value.isprintable():
        return value
    return None


def plain_text(value: object, limit: int = TEXT_MAX) -> str | None:
    """A text or number, readable by everybody: control characters and lone surrogates replaced."""
    if not isinstance(value, str):
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        value = str(value)
    text = value[:limit]
    if text.isprintable():
        return text or None
    return "".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in text)
