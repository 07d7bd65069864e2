"""Where a setting stands in its file."""

import tomllib
from collections.abc import Iterator

import pytest
import tomlkit
from hypothesis import example, given
from hypothesis import strategies as st

from hookbox.settings import line_of

TEXT = '''\
# a comment with [source.agent] in it
title = "a = [b] # no comment"

[server]
listen = ["127.0.0.1:8080",   # first
          "unix:/run/x"]      # second

[source.agent]
provider = "efa"
'tolerance' = "300s"
poll = { url = "u", token = "env:T",
         deep = { er = 1 } }
note = """
tolerance = "in a text"
[source.ghost]
""\\""""
raw = \'\'\'
skew = 'no' ''\'\'\'
skew = "observe"
map.kind = "/type"
map."odd.key" = "/x"
  [ source . "quoted" ]   # spaces
  provider = "hmac"

[[source.quoted.rules]]
first = 1
[[source.quoted.rules]]
second = 2
'''

PLACES = [
    (("title",), 2),
    (("server",), 4),
    (("server", "listen"), 5),
    (("server", "listen", "0"), 5),
    (("server", "listen", "1"), 6),
    (("source", "agent"), 8),
    (("source", "agent", "provider"), 9),
    (("source", "agent", "tolerance"), 10),
    (("source", "agent", "poll"), 11),
    (("source", "agent", "poll", "token"), 11),
    (("source", "agent", "poll", "deep", "er"), 12),
    (("source", "agent", "note"), 13),
    (("source", "agent", "raw"), 17),
    (("source", "agent", "skew"), 19),
    (("source", "agent", "map", "kind"), 20),
    (("source", "agent", "map", "odd.key"), 21),
    (("source", "quoted"), 22),
    (("source", "quoted", "provider"), 23),
    (("source", "quoted", "rules"), 25),
    (("source", "quoted", "rules", "second"), 28),
]


def test_the_example_is_toml() -> None:
    """And its texts hide what looks like settings."""
    tables = tomllib.loads(TEXT.replace("\n         deep", " deep"))  # TOML 1.0: one line
    assert set(tables["source"]) == {"agent", "quoted"}


@pytest.mark.parametrize(("path", "line"), PLACES)
def test_setting_is_found(path: tuple[str, ...], line: int) -> None:
    assert line_of(TEXT, path) == line


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("source", "agent", "missing"), 8),
        (("source", "agent", "poll", "every"), 11),
        (("source", "ghost"), 8),
        (("server", "listen", "7"), 5),
    ],
)
def test_missing_setting_is_where_its_closest_table_is(path: tuple[str, ...], line: int) -> None:
    assert line_of(TEXT, path) == line


@pytest.mark.parametrize("path", [("retention",), ("retention", "keys"), ()])
def test_what_stands_nowhere_has_no_line(path: tuple[str, ...]) -> None:
    assert line_of(TEXT, path) is None


def test_windows_line_ends_count_once() -> None:
    assert line_of(TEXT.replace("\n", "\r\n"), ("source", "agent", "skew")) == 19


values = st.one_of(
    st.text(max_size=8),
    st.integers(-(2**60), 2**60),
    st.booleans(),
    st.dates(),
    st.lists(st.text(max_size=4), max_size=3),
)
keys = st.text(min_size=1, max_size=6)
tables = st.recursive(
    st.dictionaries(keys, values, max_size=4),
    lambda inner: st.dictionaries(keys, st.one_of(values, inner), max_size=4),
    max_leaves=12,
)


def leaves(table: dict[str, object], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from leaves(value, (*path, key))
        else:
            yield (*path, key)


@given(tables)
def test_every_setting_of_any_file_is_found_on_a_line_that_assigns_it(
    table: dict[str, object],
) -> None:
    """The line is cut out and read alone: the last part of the key must be what it assigns."""
    text = tomlkit.dumps(table)
    lines = text.split("\n")
    for path in leaves(tomllib.loads(text)):
        line = line_of(text, path)
        assert line is not None
        assert path[-1] in tomllib.loads(lines[line - 1])


@example("a=[}")
@example("a={]=1")
@given(st.text(alphabet="ab.=[]{},\"'#\n\\ ", max_size=40))
def test_any_text_comes_to_an_end(text: str) -> None:
    """Broken files are reported by the TOML reader; this one must merely not hang or fail."""
    line_of(text, ("a", "b"))
