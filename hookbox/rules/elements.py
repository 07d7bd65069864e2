"""Taking a JSON array apart without taking it out of the body.

Batches are stored as slices of the bytes received, so each element comes with its place in the
body. One element that nobody should read (a doubled name, NaN, a huge integer) does not spoil the
others; text that is no JSON spoils the whole body, since nobody knows where an element ends.
"""

import json
from dataclasses import dataclass, replace

from hookbox.rules.digest import Content, Reader, Unreadable, blank, text_of
from hookbox.rules.reading import Pointer

# Finds where a value ends, whatever it holds: no integer is converted, no name compared.
_skip = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str).raw_decode


@dataclass(frozen=True, slots=True)
class Element:
    """One element: what it says or why it cannot be read, and its place, `body[start:end]`."""

    content: Content | None
    fault: str
    start: int
    end: int


def read_elements(body: bytes, pointer: Pointer = ()) -> list[Element]:
    """The elements of the array that the body is, or that its objects hold at `pointer`."""
    text = text_of(body)
    begin, end = blank(text, 0), -1
    for name in pointer:
        begin, after = _member(text, begin, name)
        end = after if end < 0 else end
    found, after = _elements(text, begin)
    if blank(text, after if end < 0 else end) != len(text):
        raise Unreadable("not JSON: something follows the value")
    return found if text.isascii() else _in_bytes(text, found)


def read_inside(body: bytes, pointer: Pointer) -> tuple[Content, int, int]:
    """The value that the object which the body is holds at `pointer`, and its place in the body."""
    text = text_of(body)
    begin = blank(text, 0)
    for name in pointer:
        begin, _ = _member(text, begin, name)
    content, end = Reader().read(text, begin)
    if text.isascii():
        return content, begin, end
    return content, len(text[:begin].encode()), len(text[:end].encode())


def _elements(text: str, begin: int) -> tuple[list[Element], int]:
    """The elements of the array that begins at `begin`, with their places in the text; its end."""
    if text[begin : begin + 1] != "[":
        raise Unreadable("there is no array where the events should be")
    found: list[Element] = []
    reader = Reader()
    at = blank(text, begin + 1)
    while text[at : at + 1] != "]" or found:
        found.append(_element(reader, text, at))
        at = blank(text, found[-1].end)
        if text[at : at + 1] == "]":
            break
        at = _after(text, at, ",")
    return found, at + 1


def _element(reader: Reader, text: str, start: int) -> Element:
    try:
        content, end = reader.read(text, start)
    except Unreadable as error:
        return Element(None, str(error), start, _skipped(text, start)[1])
    return Element(content, "", start, end)


def _member(text: str, begin: int, wanted: str) -> tuple[int, int]:
    """Where the member's value begins, in the object that begins at `begin`; the object's end."""
    places: list[tuple[object, int]] = []
    at = _after(text, begin, "{")
    while text[at : at + 1] != "}" or places:
        if text[at : at + 1] != '"':
            raise Unreadable(f"not JSON: no name at character {at}")
        name, at = _skipped(text, at)
        at = _after(text, blank(text, at), ":")
        places.append((name, at))
        at = blank(text, _skipped(text, at)[1])
        if text[at : at + 1] == "}":
            break
        at = _after(text, at, ",")
    found = [place for name, place in places if name == wanted]
    if len(found) != 1:
        raise Unreadable(f"there is not exactly one member `{wanted}`")
    return found[0], at + 1


def _after(text: str, at: int, mark: str) -> int:
    """Where the next token begins, behind a mark that must be here."""
    if text[at : at + 1] != mark:
        raise Unreadable(f"not JSON: no `{mark}` at character {at}")
    return blank(text, at + 1)


def _skipped(text: str, at: int) -> tuple[object, int]:
    """A value that nobody will read, and the index after it."""
    try:
        return _skip(text, at)
    except RecursionError as error:
        raise Unreadable("nested too deeply") from error
    except ValueError as error:
        raise Unreadable(f"not JSON at character {at}") from error


def _in_bytes(text: str, found: list[Element]) -> list[Element]:
    """The same elements with their places counted in bytes of UTF-8."""
    placed, character, byte = [], 0, 0
    for element in found:
        byte += len(text[character : element.start].encode())
        length = len(text[element.start : element.end].encode())
        placed.append(replace(element, start=byte, end=byte + length))
        character, byte = element.end, byte + length
    return placed
