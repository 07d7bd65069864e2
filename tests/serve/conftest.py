"""The whole program on real sockets."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.witness.server import Server


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """`hookbox serve` on a fresh state directory, running."""
    with Server(tmp_path / "state") as running:
        yield running


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One running server for tests that do not mind each other's events."""
    with Server(tmp_path_factory.mktemp("shared") / "state") as running:
        yield running
