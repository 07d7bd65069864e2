"""`hookbox once` typed for real: output and signals go their real ways."""

import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from tests.cli.shell import Shell


def words(shell: Shell, *asked: str) -> Sequence[str]:
    files = ("--config", str(shell.config), "--state", str(shell.state))
    return (sys.executable, "-m", "hookbox", *files, "once", *asked)


def once(shell: Shell, *asked: str, **more: Any) -> subprocess.CompletedProcess[str]:
    """Run to its end."""
    return subprocess.run(words(shell, *asked), capture_output=True, text=True, **more)


def begun(shell: Shell, *asked: str, **more: Any) -> subprocess.Popen[str]:
    """Started, and still under way."""
    return subprocess.Popen(
        words(shell, *asked), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more
    )


def state(shell: Shell, key: str) -> dict[str, Any]:
    """How the effect stands."""
    [line] = shell.lines("once", "--show", key)
    return line
