"""A claim outlasts the server that took it, and the moments of other commands."""

import subprocess
from collections.abc import Callable

import pytest

from hookbox.cli.box import Box
from hookbox.cli.holder import Holder
from hookbox.clock import ManualClock, SystemClock
from hookbox.errors import StoreBusy
from hookbox.rules.effects import Claim
from hookbox.store.lock import Lock
from tests.cli.once import begun, state
from tests.cli.shell import Shell, no_serving
from tests.witness.server import Server

KEY = "reply:7"


class Patience(ManualClock):
    """Does something else where a command would wait."""

    def __init__(self, instead: Callable[[], None]) -> None:
        super().__init__(SystemClock().now())
        self._instead = instead

    async def sleep(self, seconds: float) -> None:
        self.advance(seconds)
        self._instead()


def waiting(shell: Shell, instead: Callable[[], None] = lambda: None) -> Holder:
    box = Box(config=shell.config, state=shell.state, serve=no_serving, clock=Patience(instead))
    return Holder(box=box, claim=Claim(key=KEY, token="t", who="ann", lease_ms=60_000))


def test_moment_of_another_command_is_waited_for(shell: Shell) -> None:
    shell.receive()
    lock = Lock(shell.state)
    lock.acquire()
    assert waiting(shell, lock.release).win()["outcome"] == "won"


def test_ledger_that_somebody_keeps_is_not_waited_for_without_end(shell: Shell) -> None:
    shell.receive()
    lock = Lock(shell.state)
    lock.acquire()
    with pytest.raises(StoreBusy):
        waiting(shell).win()
    lock.release()


def test_answer_that_was_lost_is_asked_for_again(serving: Shell) -> None:
    """The server took the claim and was killed before it said so."""
    assert waiting(serving).win()["outcome"] == "won"
    assert waiting(serving).win()["outcome"] == "won"


def restart(server: Server) -> None:
    server.kill()
    server.start()


@pytest.mark.parametrize("between", [Server.kill, Server.terminate, restart])
def test_server_may_go_between_claim_and_completion(
    server: Server, serving: Shell, between: Callable[[Server], object]
) -> None:
    with begun(serving, KEY, "--", "sh", "-c", "echo ready; read x", stdin=subprocess.PIPE) as held:
        assert held.stdout is not None
        assert held.stdout.readline() == "ready\n"
        between(server)
        held.communicate("\n")
    assert held.returncode == 0
    assert state(serving, KEY)["outcome"] == "done"
