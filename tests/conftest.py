"""What every test starts from: an environment without the machine's own hookbox in it."""

import os
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

# No deadline: a busy machine is not a fault.
hypothesis.settings.register_profile("hookbox", deadline=None)
hypothesis.settings.load_profile("hookbox")


@pytest.fixture(scope="session", autouse=True)
def _own_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """No test reads or writes the person's own configuration, state or credentials."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith(("HOOKBOX_", "XDG_", "LISTEN_")) or name == "CREDENTIALS_DIRECTORY":
                patch.delenv(name)
        patch.setenv("HOME", str(home))
        yield home
