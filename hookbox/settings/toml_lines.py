"""On which line of a TOML file a setting stands, which the standard library does not tell.

Expects text that is valid TOML, as it only looks for keys and steps over values.
"""

import re
import tomllib

KeyPath = tuple[str, ...]

_TOKEN = re.compile(
    r"""
      (?P<string>  \"{3}(?:\\.|[^\\])*?\"{3,5}(?!\")  # several lines; two quotes more may end it
                 | '{3}.*?'{3,5}(?!')
                 | \"(?:\\.|[^\"\\\n])*\"
                 | '[^'\n]*' )
    | (?P<skipped> \#[^\n]* | [ \t\r]+ )
    | (?P<sign>    [\[\]{}=,.\n] )
    | (?P<bare>    [^\s\[\]{}=,.\#\"']+ )
    """,
    re.VERBOSE | re.DOTALL,
)
_END = ("", 0)


def line_of(text: str, path: KeyPath) -> int | None:
    """The line of a setting, or of the closest table around it; None where there is neither.

    Elements of an array are counted: `("source", "mail", "topics", "0")`.
    """
    lines = _Walk(text).lines
    closest = (path[:length] for length in range(len(path), 0, -1))
    return next((lines[part] for part in closest if part in lines), None)


class _Walk:
    """One pass over the tokens that notes the first line of every key."""

    def __init__(self, text: str) -> None:
        self.lines: dict[KeyPath, int] = {}
        self._tokens = _tokens(text)
        table: KeyPath = ()
        while self._tokens:
            token, _ = self._peek()
            if token == "\n":
                self._take()
            elif token == "[":
                table = self._header()
            else:
                self._setting(table)

    def _peek(self) -> tuple[str, int]:
        return self._tokens[-1] if self._tokens else _END

    def _take(self) -> tuple[str, int]:
        return self._tokens.pop() if self._tokens else _END

    def _header(self) -> KeyPath:
        """`[table]` or `[[array of tables]]`; the latter's elements share the name's first line."""
        while self._peek()[0] == "[":
            self._take()
        return self._keys((), "]")

    def _setting(self, table: KeyPath) -> None:
        """`key = value`, the key perhaps dotted."""
        self._value(self._keys(table, "="))

    def _keys(self, path: KeyPath, end: str) -> KeyPath:
        """A dotted key up to its end sign; every part of it is noted."""
        while (token := self._take())[0] not in (end, ""):
            if token[0] != ".":
                path += (_key(token[0]),)
                self.lines.setdefault(path, token[1])
        while end == "]" and self._peek()[0] == "]":
            self._take()
        return path

    def _value(self, path: KeyPath) -> None:
        opening, _ = self._peek()
        if opening == "{":
            self._take()
            self._inline_table(path)
        elif opening == "[":
            self._take()
            self._array(path)
        else:
            self._take()
            while self._peek()[0] not in ("\n", ",", "]", "}", ""):  # 1.5 and times have several
                self._take()

    def _inline_table(self, path: KeyPath) -> None:
        while (token := self._peek()[0]) not in ("}", ""):
            if token in (",", "\n"):
                self._take()
            else:
                self._setting(path)
        self._take()

    def _array(self, path: KeyPath) -> None:
        count = 0
        while (token := self._peek()[0]) not in ("]", ""):
            if token in (",", "\n"):
                self._take()
            else:
                element = (*path, str(count))
                self.lines.setdefault(element, self._peek()[1])
                self._value(element)
                count += 1
        self._take()


def _tokens(text: str) -> list[tuple[str, int]]:
    """Each token that matters with its line, last one first."""
    found, line = [], 1
    for match in _TOKEN.finditer(text):
        if match.lastgroup != "skipped":
            found.append((match[0], line))
        line += match[0].count("\n")
    return found[::-1]


def _key(token: str) -> str:
    """A key as it is meant: quoted ones may hold dots, spaces and escapes."""
    if token[0] not in "\"'":
        return token
    try:
        return str(tomllib.loads(f"key = {token}")["key"])
    except tomllib.TOMLDecodeError:
        return token
