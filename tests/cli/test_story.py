"""The README's stories are typed as they stand, and say what stands there."""

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

from tests.cli.shell import Shell

README = (Path(__file__).parents[2] / "README.md").read_text()
HOOKBOX = f'#!/bin/sh\nexec {sys.executable} -m hookbox "$@"\n'


def story(title: str) -> list[tuple[str, str]]:
    """What is typed in a section, and what it prints."""
    [section] = re.findall(rf"^## {title}$.*?(?=^## )", README, re.MULTILINE | re.DOTALL)
    blocks = re.findall(r"(?:^    .*\n)+", section, re.MULTILINE)
    typed = "".join(block for block in blocks if block.startswith("    $ "))
    lines = re.sub(r"^    ", "", typed, flags=re.MULTILINE).replace("Killed\n", "")
    return re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", lines, re.MULTILINE)


def test_redelivering_an_event_never_sends_the_mail_again(stopped: Shell, tmp_path: Path) -> None:
    program = tmp_path / "hookbox"
    program.write_text(HOOKBOX)
    program.chmod(0o755)
    env = {
        **os.environ,
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "HOOKBOX_CONFIG": str(stopped.config),
        "HOOKBOX_STATE": str(stopped.state),
    }
    told = story("Effects that happen once")
    assert len(told) == 9
    for typed, expected in told:
        done = subprocess.run(
            ["/bin/sh", "-c", typed], cwd=tmp_path, env=env, capture_output=True, text=True
        )
        said = (done.stdout + done.stderr).replace("Killed\n", "")  # as some shells say
        matches = doctest.OutputChecker().check_output(expected, said, doctest.ELLIPSIS)
        assert matches, f"$ {typed}\n{said}"
