"""What is shipped: the locks, the wheel and the README's account of the dependencies."""

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
LOCKS = sorted(ROOT.glob("requirements*.txt"))


def locked(lock: Path) -> set[str]:
    """The packages that a lock names."""
    return {found[1] for found in re.finditer(r"^([a-z0-9-]+)==", lock.read_text(), re.MULTILINE)}


def needed() -> list[str]:
    return [re.split(r"[^a-z0-9-]", line)[0] for line in PROJECT["project"]["dependencies"]]


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_lock_names_no_host_and_hashes_every_package(lock: Path) -> None:
    text = lock.read_text()
    assert "//" not in text
    assert "index" not in text
    entries = re.split(r"^(?=[a-z])", text, flags=re.MULTILINE)[1:]
    assert all("--hash=sha256:" in entry for entry in entries)


def test_running_lock_holds_the_dependencies_and_none_that_only_slow_the_start() -> None:
    running = locked(ROOT / "requirements.txt")
    assert set(needed()) <= running
    assert not running & {"pydantic", "pygments", "rich", "rich-click", "polyfactory", "faker"}


def test_testing_lock_contains_the_other_two() -> None:
    testing = locked(ROOT / "requirements-test.txt")
    assert locked(ROOT / "requirements.txt") | locked(ROOT / "requirements-build.txt") <= testing


@pytest.mark.parametrize("name", needed())
def test_readme_says_why_each_dependency_is_there(name: str) -> None:
    assert re.search(rf"^\| .*\b{name}\b", (ROOT / "README.md").read_text(), re.MULTILINE)


BLOCKED = """
import sys
for name in {names!r}:
    sys.modules[name] = None  # importing it fails, as where it is not installed
from litestar import Litestar, get
import litestar.testing

@get("/", sync_to_thread=False)
def front() -> dict[str, int]:
    return {{"open": 1}}

with litestar.testing.TestClient(Litestar([front], openapi_config=None)) as client:
    print(client.get("/").text)
"""


def test_litestar_serves_without_what_the_lock_leaves_out() -> None:
    """The lock drops three of its declared dependencies; only its command line wants them."""
    left_out = PROJECT["tool"]["uv"]["exclude-dependencies"]
    program = BLOCKED.format(names=[name.replace("-", "_") for name in left_out])
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == '{"open":1}', done.stderr


def test_wheel_carries_every_file_of_the_package(tmp_path: Path) -> None:
    """Migrations, templates and py.typed are read at run time and easily forgotten."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    [wheel] = tmp_path.glob("*.whl")
    shipped = set(zipfile.ZipFile(wheel).namelist())
    source = {path for path in (ROOT / "hookbox").rglob("*") if path.is_file()}
    kept = {path for path in source if "__pycache__" not in path.parts and path.suffix != ".pyc"}
    assert {str(path.relative_to(ROOT)) for path in kept} <= shipped
