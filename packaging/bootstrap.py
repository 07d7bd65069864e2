"""Make the virtual environment, or bring an existing one up to its lock.

    python3 packaging/bootstrap.py VENV LOCK...

Installs what the locks name, checked against their hashes, then the project itself in editable
form. Where packages come from is left to the machine's own pip settings. pip is taken from the new
environment, or from the machine where Debian's python3-venv is missing.
"""

import importlib.util
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OLDEST = (3, 11)
NO_PIP = """\
Python's `ensurepip` and `pip` are both missing, so nothing can be installed.
On Debian, Ubuntu and Raspberry Pi OS:  apt install python3-venv"""


def runs(*command: str) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def make(home: Path, python: Path) -> None:
    """Create the environment unless there is one whose Python still runs."""
    if runs(str(python), "-c", ""):
        return
    with_pip = importlib.util.find_spec("ensurepip") is not None
    venv.create(home, with_pip=with_pip, symlinks=True, clear=True)


def pip_for(python: Path) -> list[str]:
    """The command that installs into the environment."""
    if runs(str(python), "-m", "pip", "--version"):
        return [str(python), "-m", "pip"]
    if runs(sys.executable, "-m", "pip", "--version"):
        return [sys.executable, "-m", "pip", "--python", str(python)]
    sys.exit(NO_PIP)


def main() -> None:
    if sys.version_info < OLDEST:
        sys.exit("hookbox needs Python 3.11 or newer; name one with `make PYTHON=python3.12 ...`")
    home, locks = Path(sys.argv[1]), sys.argv[2:]
    python = home / "bin" / "python"
    make(home, python)
    install = [*pip_for(python), "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    for lock in locks:
        subprocess.run([*install, "--require-hashes", "--requirement", lock], check=True)
    project = [*install, "--no-build-isolation", "--editable", str(ROOT)]
    subprocess.run(project, check=True)


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)
