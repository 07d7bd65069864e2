"""The timer and its service: systemd takes them, and hookbox takes their command."""

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.shell import Shell, delivery
from tests.store.boxes import names
from tests.witness.client import SECRET

UNITS = Path(__file__).parents[1] / "systemd"
SERVICE = UNITS / "hookbox-backup.service"
TIMER = UNITS / "hookbox-backup.timer"
EXPOSURE_MAX = 2.0

needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze"
)


def value(unit: Path, name: str) -> str:
    """The value of the only setting of that name."""
    lines = unit.read_text().splitlines()
    [found] = [line.partition("=")[2] for line in lines if line.startswith(f"{name}=")]
    return found


def analyzed(*words: str) -> str:
    done = subprocess.run(["systemd-analyze", *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """The units as they would lie on a machine, with a program that is there."""
    for unit in (SERVICE, TIMER):
        text = unit.read_text().replace("/usr/bin/hookbox", sys.executable)
        (tmp_path / unit.name).write_text(text)
    return tmp_path


@needs_systemd
def test_units_are_understood(installed: Path) -> None:
    units = [str(installed / unit.name) for unit in (SERVICE, TIMER)]
    assert analyzed("verify", "--man=no", *units) == ""


@needs_systemd
def test_service_may_do_hardly_anything(installed: Path) -> None:
    """No network, no devices, no privileges."""
    limit = str(round(EXPOSURE_MAX * 10))
    analyzed("security", "--offline=yes", f"--threshold={limit}", str(installed / SERVICE.name))


@needs_systemd
def test_timer_comes_every_day() -> None:
    assert "Next elapse" in analyzed("calendar", value(TIMER, "OnCalendar"))


def test_command_of_the_service_is_one_that_hookbox_takes(shell: Shell, tmp_path: Path) -> None:
    shell.receive(delivery("a"))
    _, *words = shlex.split(value(SERVICE, "ExecStart"))
    place = words[1]
    assert Path(place).name in value(SERVICE, "StateDirectory").split()
    result = shell(*(str(tmp_path) if word == place else word for word in words))
    assert result.exit_code == 0, result.output
    assert any(name.startswith("hookbox-2") for name in names(tmp_path))


@pytest.fixture(autouse=True)
def _secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the configuration refers to."""
    monkeypatch.setenv("STD_SECRET", SECRET)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    config = tmp_path / "hookbox.toml"
    config.write_text('[source.std]\nprovider = "standardwebhooks"\nsecret = "env:STD_SECRET"\n')
    return Shell(config=config, state=tmp_path / "state")
