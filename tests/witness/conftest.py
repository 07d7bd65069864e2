"""What the witnesses share: the compiled recorder, a place in memory, and servers that end."""

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.witness import recorder
from tests.witness.recorder import Recording
from tests.witness.server import HOOKBOX, MakeRecorded, MakeServer, Server


@pytest.fixture(scope="session")
def recorder_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recorder, compiled once a run."""
    if recorder.compiler() is None:
        pytest.skip("no C compiler (cc, gcc or clang) to build the recorder with")
    return recorder.build(tmp_path_factory.mktemp("recorder"))


@pytest.fixture
def memory() -> Iterator[Path]:
    """A directory in memory where there is some; gone with the test, for traces are large.

    What a real disk does is none of these tests' business: the recorder stands in for its faults,
    and its speed would only be noise.
    """
    place = Path(tempfile.mkdtemp(prefix="witness-", dir=recorder.fast_directory()))
    yield place
    shutil.rmtree(place)


@pytest.fixture
def server(memory: Path) -> Iterator[MakeServer]:
    """Makes servers that are not started yet; all are killed when the test ends."""
    made: list[Server] = []

    def make(command: Sequence[str] = HOOKBOX, **options: Any) -> Server:
        made.append(Server(memory / f"state{len(made)}", command=command, **options))
        return made[-1]

    yield make
    for each in made:
        each.kill()


@pytest.fixture
def recorded(server: MakeServer, recorder_library: Path) -> MakeRecorded:
    """Makes servers with a recorder loaded, not started yet."""

    def make(command: Sequence[str] = HOOKBOX) -> tuple[Server, Recording]:
        made = server(command)
        recording = Recording(recorder_library, made.state)
        made.env.update(recording.env)
        return made, recording

    return make
