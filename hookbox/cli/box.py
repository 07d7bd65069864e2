"""The box that a command is about: where its files are, what it is set to, and how to serve it."""

import shlex
import shutil
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import click

from hookbox.clock import Clock, SystemClock
from hookbox.errors import OperatorError
from hookbox.settings import DestinationSettings, Settings, SourceSettings, load
from hookbox.store import views
from hookbox.store.connections import Transaction

# Serves until stopped and returns the exit code. The second argument reads the settings anew.
Serve = Callable[[Settings, Callable[[], Settings]], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """Handed to every command. `options`: those that named the files, for hints to repeat."""

    config: Path
    state: Path
    serve: Serve
    options: tuple[str, ...] = ()
    clock: Clock = field(default_factory=SystemClock)

    def settings(self) -> Settings:
        """What the configuration says right now. Raises ConfigError."""
        return load(self.config, self.state)

    def hint(self, command: str) -> str:
        """A command of ours as it has to be typed here, about this same box."""
        return f"{shlex.join([_program(), *self.options])} {command}"

    def pause(self, seconds: float) -> None:
        """Wait, with nothing else going on meanwhile."""
        import asyncio  # 24 ms that hardly any command pays for

        asyncio.run(self.clock.sleep(seconds))


pass_box = click.make_pass_decorator(Box)


def chosen(settings: Settings, name: str) -> SourceSettings:
    """The configured source of that name. Raises OperatorError."""
    for source in settings.sources:
        if source.name == name:
            return source
    raise _unknown_source(name, [source.name for source in settings.sources])


def chosen_destination(settings: Settings, name: str) -> DestinationSettings:
    """The configured destination of that name. Raises OperatorError."""
    for destination in settings.destinations:
        if destination.name == name:
            return destination
    names = ", ".join(sorted(destination.name for destination in settings.destinations))
    there = f"there are: {names}" if names else f"there is none in {settings.config_path}"
    raise OperatorError(f"no destination is called {name!r}; {there}")


def check_source(transaction: Transaction, name: str | None) -> None:
    """Raises OperatorError for the name of a source that was never served: a list of nothing would
    look like good news.
    """
    if name is not None and name not in (known := views.sources(transaction)):
        raise _unknown_source(name, known)


def _unknown_source(name: str, known: Iterable[str]) -> OperatorError:
    """No source is called so, and these are there."""
    names = ", ".join(sorted(known))
    return OperatorError(
        f"no source is called {name!r}; "
        + (
            f"there are: {names}"
            if names
            else "there is none yet: hookbox source add NAME PROVIDER"
        )
    )


def _program() -> str:
    """`hookbox` where the shell finds this very program by that name, else as it was called."""
    called = sys.argv[0]
    found = shutil.which("hookbox")
    if Path(called).name != "hookbox":
        return "hookbox"
    return "hookbox" if found and Path(found).samefile(called) else called
