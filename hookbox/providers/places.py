"""Where something stands in a request, as a source's settings write it.

"/data/email"            a JSON pointer into the body (or "json:/data/email")
"header:X-Event-Id"      a header
"query:token"            a parameter of the request's query
"pair:t"                 a key of the signature's `key=value` pairs
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from hookbox.errors import ConfigError
from hookbox.rules.reading import Pointer, at, parsed_pointer


class Where(StrEnum):
    """The parts of a request that are looked at."""

    JSON = "json"
    HEADER = "header"
    QUERY = "query"
    PAIR = "pair"


FORMS = {
    Where.JSON: "`/pointer`",
    Where.HEADER: "`header:NAME`",
    Where.QUERY: "`query:NAME`",
    Where.PAIR: "`pair:KEY`",
}
ANYWHERE = (Where.JSON, Where.HEADER, Where.QUERY)
KEPT = (Where.JSON, Where.HEADER)  # what is still there when an event is read later


@dataclass(frozen=True, slots=True)
class Place:
    """One spot of a request. `name` is a header (lower case), a parameter or a pair's key."""

    where: Where
    name: str = ""
    pointer: Pointer = ()

    def value(self, document: object, header: Callable[[str], object]) -> object:
        """What stands there, for the places that an event keeps: its JSON and its headers."""
        return header(self.name) if self.where is Where.HEADER else at(document, self.pointer)


def parsed_place(setting: str, text: object, allowed: tuple[Where, ...] = ANYWHERE) -> Place:
    """The place that a setting names; ConfigError for what names none, or none of the allowed."""
    mend = "write " + " or ".join(FORMS[each] for each in allowed)
    if not isinstance(text, str):
        raise ConfigError("this must be a text", where=setting, mend=mend)
    where, _, name = (Where.JSON, "", text) if text.startswith("/") else text.partition(":")
    if where not in set(allowed) or not name.isascii() or not name:
        raise ConfigError(f"`{text}` is no place that can be looked at", where=setting, mend=mend)
    if where != Where.JSON:
        return Place(Where(where), name.lower() if where == Where.HEADER else name)
    try:
        return Place(Where.JSON, pointer=parsed_pointer(name))
    except ValueError as error:
        raise ConfigError(str(error), where=setting, mend=mend) from error
