"""A fresh box for each test, and one that serves."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.shell import CONFIG, Shell
from tests.witness.client import SECRET
from tests.witness.server import Server


@pytest.fixture(autouse=True)
def _secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the configuration refers to."""
    monkeypatch.setenv("STD_SECRET", SECRET)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """A box with two sources that was never started."""
    config = tmp_path / "hookbox.toml"
    config.write_text(CONFIG)
    return Shell(config=config, state=tmp_path / "state")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A box that runs: `std` with its secret in the environment, `sealed` without one so far."""
    settings = '[source.sealed]\nprovider = "standardwebhooks"\n'
    with Server(tmp_path / "state", settings=settings) as started:
        yield started


@pytest.fixture
def serving(server: Server) -> Shell:
    """Commands typed at the box that runs."""
    return Shell(config=server.config, state=server.state)


@pytest.fixture
def key(request: pytest.FixtureRequest) -> str:
    """A key of its own for each test; the boxes are shared."""
    return f"reply:{request.node.name}"


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """A box whose server does not run."""
    folder = tmp_path_factory.mktemp("stopped")
    shell = Shell(config=folder / "hookbox.toml", state=folder / "state")
    shell.config.write_text(CONFIG)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STD_SECRET", SECRET)
        shell.receive()
    return shell


@pytest.fixture(scope="module")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server for all tests of a file."""
    with Server(tmp_path_factory.mktemp("running") / "state") as server:
        yield server


@pytest.fixture(scope="module")
def running(shared_server: Server) -> Shell:
    """A box whose server runs."""
    return Shell(config=shared_server.config, state=shared_server.state)


@pytest.fixture(params=["stopped", "running"])
def box(request: pytest.FixtureRequest) -> Shell:
    """Either of them."""
    shell: Shell = request.getfixturevalue(request.param)
    return shell
