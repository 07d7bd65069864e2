"""Sockets come from the setting or the service manager, and nobody else's is taken."""

import os
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from hookbox.errors import ConfigError, HookboxError
from hookbox.web.sockets import bind, inherited_sockets


@pytest.mark.parametrize(
    ("listen", "family", "host"),
    [
        ("127.0.0.1:0", socket.AF_INET, "127.0.0.1"),
        ("localhost:0", None, None),
        ("[::1]:0", socket.AF_INET6, "::1"),
    ],
)
def test_host_and_port(listen: str, family: int | None, host: str | None) -> None:
    with closing(bind(listen)) as listening:
        assert family in (None, listening.family)
        assert host in (None, listening.getsockname()[0])
        assert listening.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
        assert not listening.get_inheritable()


@pytest.mark.parametrize(
    "listen", ["", "8080", ":8080", "127.0.0.1", "127.0.0.1:", "a:b", "a:65536", "a:٨", "a:-1"]
)
def test_unreadable_listen_is_a_setting_to_mend(listen: str) -> None:
    with pytest.raises(ConfigError, match=r"127\.0\.0\.1:8080"):
        bind(listen)


def test_taken_port_is_named() -> None:
    with closing(bind("127.0.0.1:0")) as first:
        port = first.getsockname()[1]
        with pytest.raises(HookboxError, match=rf"127\.0\.0\.1:{port}: another program listens"):
            bind(f"127.0.0.1:{port}")


@pytest.mark.parametrize("listen", ["192.0.2.1:0", "nowhere.invalid:0"])
def test_foreign_address_is_named(listen: str) -> None:
    with pytest.raises(HookboxError, match="cannot listen on"):
        bind(listen)


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    """Where a socket may be; the usual mask is the most careless one."""
    mask = os.umask(0)
    yield tmp_path / "hooks.sock"
    os.umask(mask)


def test_unix_socket_is_for_its_owner_alone(path: Path) -> None:
    with closing(bind(f"unix:{path}")):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert os.umask(0) == 0


def test_socket_left_behind_is_replaced(path: Path) -> None:
    bind(f"unix:{path}").close()
    assert path.exists()
    with closing(bind(f"unix:{path}")), socket.socket(socket.AF_UNIX) as caller:
        caller.connect(str(path))


def test_socket_in_use_is_left_alone(path: Path) -> None:
    with closing(bind(f"unix:{path}")) as first:
        with pytest.raises(HookboxError, match="another program listens"):
            bind(f"unix:{path}")
        with socket.socket(socket.AF_UNIX) as caller:
            caller.connect(str(path))
            first.accept()[0].close()


@pytest.mark.parametrize("kind", ["file", "directory", "link"])
def test_what_is_no_socket_is_left_alone(path: Path, kind: str) -> None:
    other = path.with_name("precious")
    other.write_text("kept")
    if kind == "file":
        path.write_text("kept")
    elif kind == "directory":
        path.mkdir()
    else:
        path.symlink_to(other)
    with pytest.raises(HookboxError, match="no socket"):
        bind(f"unix:{path}")
    assert path.exists()
    assert other.read_text() == "kept"


def test_missing_directory_is_named(path: Path) -> None:
    with pytest.raises(HookboxError, match="directory does not exist"):
        bind(f"unix:{path.parent}/missing/hooks.sock")


ANNOUNCES = """
import os, socket
from hookbox.web.sockets import inherited_sockets
sockets = inherited_sockets()
left = [name for name in os.environ if name.startswith("LISTEN_")]
print([(s.getsockname(), s.get_inheritable()) for s in sockets], left)
"""


HANDS_OVER = """
import os, sys
pid, program, *numbers = sys.argv[1:]
for place, number in enumerate(numbers):
    os.dup2(int(number), 3 + place)
os.environ |= {"LISTEN_PID": pid or str(os.getpid()), "LISTEN_FDS": str(len(numbers))}
os.environ["LISTEN_FDNAMES"] = "hooks"
os.execv(sys.executable, [sys.executable, "-c", program])
"""


def heard(listening: list[socket.socket], pid: str = "") -> str:
    """What a program says that is given these sockets as a service manager gives them."""
    numbers = [each.fileno() for each in listening]
    child = subprocess.run(
        [sys.executable, "-c", HANDS_OVER, pid, ANNOUNCES, *map(str, numbers)],
        pass_fds=numbers,
        capture_output=True,
        text=True,
        check=True,
    )
    return child.stdout.strip()


def test_sockets_of_the_service_manager_are_taken_over() -> None:
    with closing(bind("127.0.0.1:0")) as first, closing(bind("[::1]:0")) as second:
        expected = [(first.getsockname(), False), (second.getsockname(), False)]
        assert heard([first, second]) == f"{expected} []"


def test_sockets_meant_for_another_process_are_not() -> None:
    with closing(bind("127.0.0.1:0")) as first:
        assert heard([first], "1") == "[] []"


def test_nothing_announced_is_nothing_inherited() -> None:
    assert inherited_sockets({"LISTEN_FDS": "", "LISTEN_PID": str(os.getpid())}) == []
    assert inherited_sockets({}) == []
