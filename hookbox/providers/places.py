"""Where something stands in a request, as a source's settings write it.

"/data/email"            a JSON pointer into the body (or "json:/data/email")
"header:X-Event-Id"      a header
"query:token"            a parameter of the request's query
"pair:t"                 a key of the signature header's `key=value` pairs
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from hookbox.errors import ConfigError
from hookbox.rules.reading import Pointer, at, parsed_pointer


class Where(StrEnum):
    JSON = "json"
    HEADER = "header"
    QUERY = "query"
    PAIR = "pair"


@dataclass(frozen=True, slots=True)
class Place:
    """One spot of a request. `name` is a header (lower case), a parameter or a pair's key."""

    where: Where
    name: str = ""
    pointer: Pointer = ()

    def value(self, document: object, header: Callable[[str], object]) -> object:
        """What stands there, for the places that an event keeps: its JSON and its headers."""
        return header(self.name) if self.where is Where.HEADER else at(document, self.pointer)


def parsed_place(setting: str, text: object, allowed: tuple[Where, ...]) -> Place:
    """The place that a setting names; ConfigError where it does not, or not one of the allowed."""
    if not isinstance(text, str) or not text:
        raise ConfigError(
            "a place is a text such as `/data/id`", where=setting, mend=_forms(allowed)
        )
    where, _, name = text.partition(":")
    if text.startswith("/"):
        where, name = Where.JSON, text
    if where not in set(allowed) or not name:
        raise ConfigError(
            f"`{text}` names no place to look at", where=setting, mend=_forms(allowed)
        )
    if where != Where.JSON:
        return Place(Where(where), name.lower() if where == Where.HEADER else name)
    try:
        return Place(Where.JSON, pointer=parsed_pointer(name))
    except ValueError as error:
        raise ConfigError(str(error), where=setting, mend=_forms(allowed)) from error


def _forms(allowed: tuple[Where, ...]) -> str:
    forms = {
        Where.JSON: "`/pointer`",
        Where.HEADER: "`header:NAME`",
        Where.QUERY: "`query:NAME`",
        Where.PAIR: "`pair:KEY`",
    }
    return "write " + " or ".join(forms[each] for each in allowed)
