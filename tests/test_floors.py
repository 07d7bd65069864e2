"""The shape of the house: imports go down only, rooms and doors stay apart, libraries have gates.

The checker reads the source as a tree and runs nothing. It is tried on planted faults below, so
that a clean result means something.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "hookbox"
FILES = sorted(str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py"))

FLOORS = {
    "": 0,  # hookbox itself: the version
    "model": 0,
    "errors": 0,
    "clock": 0,
    "settings": 0,
    "rules": 1,
    "providers": 2,
    "destinations": 2,
    "store": 2,
    "net": 2,
    "flows": 3,
    "alone": 4,
    "assembly": 4,
    "bounds": 4,
    "onward": 4,
    "polled": 4,
    "runtime": 4,
    "control": 4,
    "web": 5,
    "cli": 5,
    "__main__": 6,  # the program, which hands one door to the other
}
APART = {2, 5}  # units of these floors never import each other: rooms, and doors

# Who may import a library. A library that is not listed has no gate and is refused everywhere.
GATES = {
    "aiosqlite": ("store/",),
    "sqlite3": ("store/",),
    "click": ("cli/",),
    "cryptography": ("rules/signatures.py", "rules/certificates.py", "store/secrets.py"),
    "h11": ("web/",),
    "httptools": ("web/",),
    "httpx": ("net.py",),
    "idna": ("rules/folding.py",),
    "jinja2": ("web/",),
    "litestar": ("web/",),
    "platformdirs": ("settings",),
    "tomlkit": ("settings",),
    "uvicorn": ("web/",),
    "uvloop": ("web/",),
    # Everybody else is given values.
    "hookbox.settings": (
        "settings",
        "alone.py",
        "assembly.py",
        "bounds.py",
        "onward.py",
        "polled.py",
        "runtime.py",
        "cli/",
        "web/effects.py",  # only how durations are written
        "web/serve.py",
        "__main__.py",
    ),
}
IMPURE = {
    "asyncio",
    "http",
    "logging",
    "os",
    "pathlib",
    "random",
    "socket",
    "subprocess",
    "urllib.request",
}
NETWORK = {"http", "socket", "ssl", "urllib.request"}
KEPT_OUT = {"rules/": IMPURE, "providers/": NETWORK}

CLOCKS = {
    *(f"time.{name}" for name in ("time", "monotonic", "perf_counter", "clock_gettime")),
    *(f"time.{name}_ns" for name in ("time", "monotonic", "perf_counter", "clock_gettime")),
    *(f"time.{name}" for name in ("sleep", "localtime", "ctime")),
    *(f"datetime.datetime.{name}" for name in ("now", "utcnow", "today")),
    "datetime.date.today",
    "asyncio.sleep",
    "asyncio.get_running_loop().time",
    "asyncio.get_event_loop().time",
}

LINES_MAX = 300
LONGER: dict[str, str] = {}  # file: why it is one straight story or one flat table


def unit(file: str) -> str:
    """The part of the house a file belongs to: `store/writer.py` to `store`, `net.py` to `net`."""
    return "" if file == "__init__.py" else file.split("/")[0].removesuffix(".py")


def imported(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Every module that is imported, anywhere in the file, by statement or by name."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, alias.name) for alias in names)
            case ast.ImportFrom(module=str(module), names=names):
                yield from ((node.lineno, f"{module}.{alias.name}") for alias in names)
            case ast.Call(
                func=ast.Attribute(attr="import_module"), args=[ast.Constant(value=str(name)), *_]
            ):
                yield node.lineno, name


def bindings(tree: ast.AST) -> dict[str, str]:
    """What each imported name stands for."""
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                root = alias.name.split(".")[0]
                names[alias.asname or root] = alias.name if alias.asname else root
        elif isinstance(node, ast.ImportFrom):
            names |= {
                alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names
            }
    return names


def dotted(node: ast.AST, names: dict[str, str]) -> str:
    """The full name an expression refers to, or nothing when it starts from a local name."""
    match node:
        case ast.Name(id=name):
            return names.get(name, "")
        case ast.Attribute(value=value, attr=attr):
            base = dotted(value, names)
            return f"{base}.{attr}" if base else ""
        case ast.Call(func=func):
            base = dotted(func, names)
            return f"{base}()" if base else ""
    return ""


def within(module: str, library: str) -> bool:
    return module == library or module.startswith(library + ".")


def climbs(file: str, module: str) -> str:
    """Why a file must not import a module of ours; empty when it may."""
    mine, other = unit(file), module.removeprefix("hookbox").lstrip(".").split(".")[0]
    if other not in FLOORS:
        other = ""  # `from hookbox import __version__`
    if mine not in FLOORS:
        return f"{mine} stands on no floor: give it one in FLOORS"
    if mine == other:
        return ""
    if FLOORS[other] > FLOORS[mine]:
        return f"imports upwards: {module}"
    if FLOORS[other] == FLOORS[mine] and FLOORS[mine] in APART:
        return f"imports its neighbour: {module}"
    return ""


def passes_no_gate(file: str, module: str) -> str:
    """Why a file must not import a library; empty when it may."""
    for library, files in GATES.items():
        if within(module, library):
            return "" if file.startswith(files) else f"{library} belongs to {', '.join(files)}"
    for place, names in KEPT_OUT.items():
        if file.startswith(place) and any(within(module, name) for name in names):
            return f"{place} stays away from {module}"
    root = module.split(".")[0]
    known = root in sys.stdlib_module_names or root == "hookbox"
    return "" if known else f"{root} has no gate: give it one in GATES"


def clocks(file: str, tree: ast.AST) -> Iterator[str]:
    """Each mention of a clock or a wait outside clock.py, called or merely passed on."""
    if file == "clock.py":
        return
    names = bindings(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Name):
            name = dotted(node, names)
            local_loop = isinstance(node, ast.Attribute) and ast.unparse(node).endswith("loop.time")
            if name in CLOCKS or local_loop:
                yield f"line {node.lineno}: asks a clock: {name or ast.unparse(node)}"


def vouchers(file: str, tree: ast.AST) -> Iterator[str]:
    """Each place that declares a delivery verified without being a provider or the store."""
    if file.startswith(("providers/", "store/")):
        return
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and ast.unparse(node.func).split(".")[-1] == "VerifiedDelivery"
        ):
            yield f"line {node.lineno}: makes a VerifiedDelivery; only a provider's verify may"


def faults(file: str, source: str) -> list[str]:
    """All that is wrong with one file of the package, in words."""
    tree = ast.parse(source)
    found = []
    for line, module in imported(tree):
        ours = within(module, "hookbox")
        why = (climbs(file, module) if ours else "") or passes_no_gate(file, module)
        found += [f"line {line}: {why}"] if why else []
    found += clocks(file, tree)
    found += vouchers(file, tree)
    lines = source.count("\n")
    if lines >= LINES_MAX and file not in LONGER:
        found.append(f"{lines} lines, {LINES_MAX} are too many: take it apart")
    return found


@pytest.mark.parametrize("file", FILES)
def test_file_keeps_to_its_floor(file: str) -> None:
    assert faults(file, (PACKAGE / file).read_text()) == []


def test_every_longer_file_is_still_long() -> None:
    assert [file for file in LONGER if (PACKAGE / file).read_text().count("\n") < LINES_MAX] == []


PLANTED = [
    ("rules/backoff.py", "from hookbox.store.jobs import claim", "imports upwards"),
    ("rules/backoff.py", "def f():\n    import hookbox.flows.work", "imports upwards"),
    ("flows/work.py", "from hookbox import runtime", "imports upwards"),
    (
        "flows/work.py",
        "import importlib\nimportlib.import_module('hookbox.web.hooks')",
        "imports upwards",
    ),
    ("store/jobs.py", "from hookbox.providers import PROVIDERS", "its neighbour"),
    ("net.py", "from hookbox.store import writer", "its neighbour"),
    ("cli/serve.py", "from hookbox.web import app", "its neighbour"),
    ("web/serve.py", "from hookbox import __main__", "imports upwards"),
    ("web/hooks.py", "import hookbox.cli", "its neighbour"),
    ("flows/receive.py", "from hookbox.settings import load", "hookbox.settings belongs to"),
    ("cli/main.py", "from litestar import Litestar", "litestar belongs to"),
    ("runtime.py", "import click", "click belongs to"),
    ("flows/apply.py", "import sqlite3", "sqlite3 belongs to"),
    ("flows/poll.py", "from httpx import AsyncClient", "httpx belongs to"),
    ("providers/ses.py", "from cryptography.x509 import Certificate", "cryptography belongs to"),
    ("store/writer.py", "from cryptography import fernet", "cryptography belongs to"),
    ("cli/init.py", "import tomlkit", "tomlkit belongs to"),
    ("net.py", "import requests", "requests has no gate"),
    ("rules/digest.py", "import logging", "rules/ stays away from"),
    ("providers/ses.py", "from urllib.request import urlopen", "providers/ stays away from"),
    ("attic.py", "from hookbox.model import Kind", "stands on no floor"),
    ("flows/work.py", "import time\ntime.sleep(1)", "asks a clock: time.sleep"),
    ("flows/work.py", "import time as t\nnow = t.time_ns", "asks a clock: time.time_ns"),
    ("flows/work.py", "from time import monotonic as m\nm()", "asks a clock: time.monotonic"),
    ("flows/work.py", "from asyncio import sleep\nsleep(0)", "asks a clock: asyncio.sleep"),
    ("flows/work.py", "import datetime\ndatetime.datetime.now(None)", "asks a clock: datetime"),
    ("flows/work.py", "from datetime import date\ndate.today()", "asks a clock: datetime.date"),
    ("flows/work.py", "import asyncio\nasyncio.get_running_loop().time()", "asks a clock: asyncio"),
    ("flows/work.py", "def f(loop):\n    return loop.time()", "asks a clock: loop.time"),
    ("flows/receive.py", "contract.VerifiedDelivery(delivery=d)", "makes a VerifiedDelivery"),
    ("web/hooks.py", "VerifiedDelivery(delivery=d)", "makes a VerifiedDelivery"),
    ("model.py", "\n" * LINES_MAX, "take it apart"),
]


@pytest.mark.parametrize(("file", "source", "expected"), PLANTED)
def test_planted_fault_is_found(file: str, source: str, expected: str) -> None:
    found = faults(file, source)
    assert any(expected in fault for fault in found), found


SOUND = [
    ("flows/work.py", "from hookbox import __version__\nfrom hookbox.store.jobs import claim"),
    ("store/jobs.py", "import aiosqlite\nfrom hookbox.store.writer import Writer"),
    ("settings/units.py", "import tomlkit\nfrom hookbox.errors import ConfigError"),
    ("__main__.py", "from hookbox import cli\nfrom hookbox.web.serve import serve"),
    ("clock.py", "import time\ntime.sleep(1)"),
    ("flows/work.py", "from datetime import datetime\ndatetime.fromtimestamp(0, tz=None).time()"),
    ("providers/ses.py", "VerifiedDelivery(delivery=d)"),
    ("store/admissions.py", "VerifiedDelivery(delivery=d)"),
]


@pytest.mark.parametrize(("file", "source"), SOUND)
def test_sound_source_is_left_alone(file: str, source: str) -> None:
    assert faults(file, source) == []
