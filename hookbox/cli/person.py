"""Who decides: every change of the ledger by hand has a name and a reason."""

import os
import pwd
from collections.abc import Callable
from typing import Any, TypeVar

import click

from hookbox.cli.box import Box
from hookbox.store.decisions import Word

F = TypeVar("F", bound=Callable[..., Any])


def name() -> str:
    """The person at the keyboard, also behind sudo."""
    behind = os.environ.get("SUDO_USER")
    if behind:
        return behind
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a container may run under a number that nobody has
        return f"user {os.getuid()}"


def _said(_: click.Context, __: click.Parameter, text: str) -> str:
    if not text.strip():
        raise click.BadParameter("say why")
    return text


def reason(told: str, default: str | None = None) -> Callable[[F], F]:
    """--reason, which is kept with the decision; required where there is no default."""
    needed: dict[str, Any] = {"required": True} if default is None else {"default": default}
    return click.option("--reason", callback=_said, metavar="TEXT", help=told, **needed)


def word(box: Box, why: str) -> Word:
    """The word of whoever typed the command, given now."""
    return Word(who=name(), reason=why, at=box.clock.now())
