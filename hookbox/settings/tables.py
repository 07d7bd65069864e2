"""Reading one table: what is taken is known, and what is left over at the end is a mistake.

Readers are functions from a TOML value to what is wanted; they say what is wrong, and the table
adds the name and the line.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TypeVar

from hookbox.errors import ConfigError
from hookbox.settings.reference import Reference
from hookbox.settings.toml_lines import KeyPath, line_of

CREDENTIAL_KEYS = frozenset({"password", "secret", "token"})

T = TypeVar("T")
D = TypeVar("D")


@dataclass(slots=True, kw_only=True)
class Table:
    """A TOML table that is being read, and the keys that were asked for."""

    values: dict[str, object]
    path: KeyPath
    text: str = field(repr=False)
    _known: list[str] = field(default_factory=list)

    @property
    def line(self) -> int:
        return line_of(self.text, self.path) or 0

    def take(self, key: str, read: Callable[[object], T], default: D) -> T | D:
        """The value of an optional key."""
        self._known.append(key)
        found = self.look(key, read, default)
        self.values.pop(key, None)
        return found

    def look(self, key: str, read: Callable[[object], T], default: D) -> T | D:
        """The value of a key that is left for somebody else to take."""
        if key not in self.values:
            return default
        try:
            return read(self.values[key])
        except ConfigError as error:
            raise self.error(error.message, key, mend=error.mend) from None

    def need(self, key: str, read: Callable[[object], T], *, mend: str) -> T:
        """The value of a key that must be there."""
        found = self.take(key, read, None)
        if found is None:
            raise self.error(f"`{key}` is missing", mend=mend)
        return found

    def table(self, key: str) -> "Table":
        """A table inside this one; empty when it is not written."""
        found = self.take(key, mapping, {})
        return Table(values=dict(found), path=(*self.path, key), text=self.text)

    def done(self) -> None:
        """Refuse what nobody asked for."""
        for key in self.values:
            raise self.error("there is no such setting", key, mend=suggestion(key, self._known))

    def error(self, message: str, *keys: str, mend: str = "") -> ConfigError:
        path = (*self.path, *keys)
        return ConfigError(message, where=".".join(path), mend=mend, line=line_of(self.text, path))


def placed(error: ConfigError, text: str, table: KeyPath, line: int) -> ConfigError:
    """An error about a setting inside a table, with its full name and the line it stands on; where
    it stands on none, with the table's.
    """
    path = (*table, *(error.where.split(".") if error.where else ()))
    found = error.line or line_of(text, path) or line
    return ConfigError(error.message, where=".".join(path), mend=error.mend, line=found or None)


def refuse_literals(table: Table) -> None:
    """Credentials that others will read must be references too."""
    for key in CREDENTIAL_KEYS:
        table.look(key, Reference.parse, None)


def suggestion(key: str, known: Iterable[str]) -> str:
    """What a misspelt key was probably meant to be."""
    choices = list(known)
    close = get_close_matches(key, choices, n=1)
    return f"did you mean `{close[0]}`?" if close else f"known here: {', '.join(choices)}"


def mapping(value: object) -> Mapping[str, object]:
    if not isinstance(value, dict):  # not repeated: it may be a secret that strayed one level up
        raise ConfigError("is a single value where a table belongs", mend="write it as a [table]")
    return value


def words(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ConfigError(f"{value!r} is not a text", mend='write text in quotes, like "name"')
    return value


def flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ConfigError(
            f"{value!r} is neither true nor false", mend="write true or false, without quotes"
        )
    return value


def count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ConfigError(
            f"{value!r} is not a whole number above zero", mend="write a number like 5"
        )
    return value


def one_of(choices: Iterable[T], what: str) -> Callable[[object], T]:
    """A reader of one of a few words."""
    known = {str(choice): choice for choice in choices}

    def read(value: object) -> T:
        word = words(value)
        if word not in known:
            raise ConfigError(f"{word!r} is not {what}", mend=suggestion(word, known))
        return known[word]

    return read


def one_or_many(read: Callable[[object], T]) -> Callable[[object], tuple[T, ...]]:
    """A reader of one value or a list of them."""

    def read_all(value: object) -> tuple[T, ...]:
        found = tuple(read(element) for element in (value if isinstance(value, list) else [value]))
        if not found:
            raise ConfigError("is an empty list", mend="name at least one, or remove the line")
        return found

    return read_all
