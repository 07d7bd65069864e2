"""A second server, and configurations that try to end a running one."""

import socket
from pathlib import Path

import pytest

from hookbox.errors import ConfigError, StoreBusy
from hookbox.settings import load, parse
from hookbox.store.lock import Lock
from hookbox.web.serve import serve


def test_refused_second_server_leaves_the_first_ones_socket(tmp_path: Path) -> None:
    config = tmp_path / "hookbox.toml"
    config.write_text('[server]\nlisten = "127.0.0.1:0"\n[local]\nlisten = "off"\n')
    first = Lock(tmp_path)
    first.acquire()
    place = tmp_path / "hookbox.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
        door.bind(str(place))
        with pytest.raises(StoreBusy):
            serve(load(config, tmp_path), lambda: load(config, tmp_path))
        assert place.exists()
    first.release()


@pytest.mark.parametrize(
    "text",
    ["a = " + "[" * 3000 + "]" * 3000, "[suppression]\ntransient_budget = " + "9" * 5000],
    ids=["nested", "long number"],
)
def test_whatever_the_toml_parser_trips_over_is_a_configuration_error(text: str) -> None:
    """Anything else ends the running server at the next reload."""
    with pytest.raises(ConfigError):
        parse(text, Path("/hookbox.toml"), Path("/state"))
