"""An effect happens once: whoever dies when, however many ask, with the server or without."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.witness.server import MakeServer, Server

pytestmark = pytest.mark.witness

ONCE = (sys.executable, "-m", "hookbox", "once", "--lease", "1s")
STANDIN = (sys.executable, str(Path(__file__).with_name("standin_once.py")))
LIVES = 15
LIFE_MAX_S = 0.6  # a whole call takes about 0.4
CROWD, ROUNDS = 16, 3
PATIENT = ("--lease", "1m")  # where many run at once, and the one that lives may be slow
ENDED_MAX_S = 60.0

# What kills `once` (its parent), seen from the command: each leaves another trace.
MOMENTS = {
    "before the effect": "kill -9 $PPID",
    "before an effect that happens all the same": "kill -9 $PPID; sleep 0.3; echo x >> {place}",
    "after the effect": "echo x >> {place}; kill -9 $PPID",
    "between renewals": "sleep 0.5; echo x >> {place}; sleep 0.5; kill -9 $PPID",
}


class Effect:
    """A line in a file, brought about through `once`."""

    def __init__(self, server: Server, key: str, *options: str) -> None:
        self.server, self.key = server, key
        self.place = server.state.parent / f"effect-{key}"
        self._once = (*ONCE, *options, key, "--", "sh", "-c")
        self.honest = f"echo x >> {self.place}; echo message 7"

    @property
    def lines(self) -> int:
        return self.place.read_text().count("\n") if self.place.exists() else 0

    def begin(self, script: str) -> subprocess.Popen[str]:
        """One call, in a process group of its own."""
        return subprocess.Popen(
            (*self._once, script),
            env=self.server.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def settle(self) -> None:
        """What a person does who looks: the file tells."""
        verdict = "done" if self.lines else "undone"
        command = (*ONCE[:4], "--settle", verdict, self.key, "--reason", "looked")
        subprocess.run(command, env=self.server.environment(), capture_output=True)

    def bring_to_an_end(self) -> None:
        """Call, wait and settle, until it is done: what a diligent caller does after a crash."""
        deadline = time.monotonic() + ENDED_MAX_S
        while True:
            call = self.begin(self.honest)
            _, errors = call.communicate()
            if call.returncode == 0:
                return
            assert call.returncode in (1, 75), errors
            assert time.monotonic() < deadline, errors
            if call.returncode == 75:
                time.sleep(0.1)
            else:
                self.settle()


@pytest.fixture(params=["stopped", "running"])
def box(request: pytest.FixtureRequest, server: MakeServer) -> Server:
    """A box whose server runs, or ran."""
    made = server()
    made.start()
    if request.param == "stopped":
        made.terminate()
    return made


@pytest.mark.parametrize("moment", MOMENTS)
def test_effect_happens_once_whenever_its_holder_is_killed(box: Server, moment: str) -> None:
    effect = Effect(box, "killed")
    with effect.begin(MOMENTS[moment].format(place=effect.place)) as killed:
        pass  # its command may live on
    assert killed.returncode == -signal.SIGKILL
    effect.bring_to_an_end()
    assert effect.lines == 1


def test_witness_sees_the_second_effect_of_a_retry(box: Server) -> None:
    """What `--if-unknown retry` is for; here it is the fault to be seen."""
    effect = Effect(box, "retried", "--if-unknown", "retry")
    effect.begin(MOMENTS["after the effect"].format(place=effect.place)).communicate()
    effect.bring_to_an_end()
    assert effect.lines == 2


def test_effect_happens_once_in_many_short_lives(box: Server) -> None:
    """Holder and command die together at any moment; the server dies, stops and comes back."""
    for number in range(LIVES):
        effect = Effect(box, f"life{number}")
        short = effect.begin(f"sleep 0.05; {effect.honest}; sleep 0.05")
        time.sleep(random.uniform(0, LIFE_MAX_S))
        if number % 3 == 0 and box.exit_code is None:
            box.kill()
            box.start()
        os.killpg(short.pid, signal.SIGKILL)
        short.communicate()
        effect.bring_to_an_end()
        assert effect.lines == 1, number


def crowd(calls: Sequence[subprocess.Popen[str]]) -> list[int]:
    """The exit codes of calls that were begun together."""
    for call in calls:
        call.communicate()
    return [call.returncode for call in calls]


def test_of_16_at_once_one_makes_it_happen(box: Server) -> None:
    for number in range(ROUNDS):
        effect = Effect(box, f"crowd{number}", *PATIENT)
        codes = crowd([effect.begin(effect.honest) for _ in range(CROWD)])
        assert set(codes) <= {0, 75}, codes
        assert 0 in codes
        assert effect.lines == 1


def test_different_effects_do_not_get_in_each_others_way(box: Server) -> None:
    """Without a server they are after one lock, each for a moment."""
    effects = [Effect(box, f"apart{number}", *PATIENT) for number in range(CROWD)]
    assert set(crowd([each.begin(each.honest) for each in effects])) == {0}
    assert [each.lines for each in effects] == [1] * CROWD


def test_witness_sees_what_look_up_run_insert_does_twice(tmp_path: Path) -> None:
    place = tmp_path / "effect"
    command = (*STANDIN, str(tmp_path), "key", "sh", "-c", f"echo x >> {place}")
    calls = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(CROWD)]
    crowd(calls)
    assert place.read_text().count("\n") > 1
