"""How a command fails: one sentence on stderr and an exit code that a script can tell apart.

0 done, 1 failed or not found, 2 wrong usage (click's own); 75 and 78 are sysexits.h's EX_TEMPFAIL
and EX_CONFIG.
"""

import contextlib
from collections.abc import Iterator
from typing import IO, Any

import click

from hookbox.cli.terminal import escaped
from hookbox.errors import ConfigError, HookboxError, Overloaded, StoreBusy


class Failure(click.ClickException):
    """It could not be done, or was not there."""

    exit_code = 1

    def __init__(self, message: object) -> None:
        super().__init__(escaped(str(message), keep="\n"))

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(f"hookbox: {self.message}", err=True)


class TryAgain(Failure):
    """Somebody else is at it right now."""

    exit_code = 75


class Unusable(Failure):
    """The configuration must be mended first."""

    exit_code = 78


FAILURES = {ConfigError: Unusable, StoreBusy: TryAgain, Overloaded: TryAgain}


@contextlib.contextmanager
def told() -> Iterator[None]:
    """Expected errors become failures; anything else is our mistake and keeps its traceback."""
    try:
        yield
    except HookboxError as error:
        raise FAILURES.get(type(error), Failure)(error) from error
    except BrokenPipeError:
        raise  # whoever read along has seen enough; click ends quietly
    except PermissionError as error:
        raise Failure(
            f"{error.filename or 'the box'}: no permission; run it as hookbox's own user"
        ) from error
    except OSError as error:
        raise Failure(f"{error.filename or 'the system'}: {error.strerror or error}") from error
