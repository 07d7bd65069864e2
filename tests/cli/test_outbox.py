"""`hookbox outbox` and `hookbox events replay`, with the server stopped and running."""

import http.client
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hookbox.cli.door import SocketConnection
from hookbox.store import database
from tests.cli.shell import CONFIG, Shell, delivery
from tests.witness.server import Server

# Takes what is brought, unless a file of the name `down` lies beside it.
SCRIPT = """\
import os, pathlib, sys
here = pathlib.Path(sys.argv[1])
if (here / "down").exists():
    sys.exit(1)
with (here / "taken").open("a") as taken:
    taken.write(os.environ["HOOKBOX_IDEMPOTENCY_KEY"] + "\\n")
"""
DESTINATION = """
[destination.script]
type = "exec"
command = {command}
retry = ["1s"]
{more}
"""


class Taking:
    """What the program behind the destination has been brought."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._program = folder / "program.py"
        self._program.write_text(SCRIPT)

    def settings(self, more: str = "") -> str:
        command = json.dumps([sys.executable, str(self._program), str(self._folder)])
        return DESTINATION.format(command=command, more=more)

    @property
    def keys(self) -> list[str]:
        taken = self._folder / "taken"
        return taken.read_text().split() if taken.exists() else []

    def down(self) -> None:
        (self._folder / "down").touch()

    def up(self) -> None:
        (self._folder / "down").unlink()


@pytest.fixture
def taking(tmp_path: Path) -> Taking:
    return Taking(tmp_path)


@pytest.fixture
def box(shell: Shell, taking: Taking) -> Shell:
    """A box with a destination that is paused, and two events for it."""
    shell.config.write_text(CONFIG + taking.settings())
    shell.receive()
    assert shell("outbox", "pause", "script", "--reason", "not yet").exit_code == 0
    shell.receive(delivery("a", "email.bounced"), delivery("b"))
    return shell


@pytest.fixture
def server(tmp_path: Path, taking: Taking) -> Iterator[Server]:
    with Server(tmp_path / "state", settings=taking.settings()) as running:
        yield running


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 15
    while not true():
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.05)


def states(shell: Shell) -> list[str]:
    return [job["state"] for job in shell.lines("outbox", "list", "--to", "script")]


# --- with the server stopped


def test_jobs_are_listed_as_the_view_has_them(box: Shell) -> None:
    jobs = box.lines("outbox", "list")
    with database.reading(box.state) as transaction:
        assert jobs == [dict(row) for row in transaction.execute("SELECT * FROM outbox")]
    assert [job["target"] for job in jobs if job["state"] == "held"] == ["forward:script"] * 2
    assert [job["event_id"] for job in box.lines("outbox", "list", "--event", "2")] == [2, 2]


def test_list_says_why_a_destination_stands_still_and_how_to_go_on(box: Shell) -> None:
    told = box("outbox").stderr
    assert "script is paused since" in told
    assert "not yet" in told
    assert "outbox resume script" in told


def test_list_of_a_destination_that_is_not_there_is_refused(box: Shell) -> None:
    """A list of nothing would look like good news."""
    told = box("outbox", "--to", "scirpt")
    assert told.exit_code == 1
    assert "there are: script" in told.stderr
    assert {job["target"] for job in box.lines("outbox", "list", "--to", "apply")} == {"apply"}


def test_retry_says_what_it_does_not_do(box: Shell) -> None:
    told = box("outbox", "retry", "--to", "script")
    assert "nothing was given up on at script" in told.stdout
    assert "outbox --to script" in told.stdout
    [first, _] = box.lines("outbox", "list", "--to", "script")
    told = box("outbox", "retry", str(first["id"]))
    assert "1 job will be tried when the destination goes on" in told.stdout
    assert "outbox resume script" in told.stderr


def test_resumed_jobs_are_available(box: Shell) -> None:
    assert "2 jobs released" in box("outbox", "resume", "script").output
    assert states(box) == ["available"] * 2
    again = box("outbox", "resume", "script")
    assert again.exit_code == 1
    assert "is not paused" in again.stderr


def test_cancelled_job_keeps_who_and_why(box: Shell) -> None:
    (job, *_) = box.lines("outbox", "list", "--to", "script")
    assert box("outbox", "cancel", str(job["id"]), "--reason", "no need").exit_code == 0
    (shown,) = box.lines("outbox", "show", str(job["id"]))
    assert shown["state"] == "cancelled"
    assert shown["last_outcome"].endswith(": no need")
    assert box("outbox", "retry", str(job["id"])).exit_code == 1


def test_own_work_is_not_given_up(box: Shell) -> None:
    refused = box("outbox", "cancel", "1", "--reason", "x")
    assert refused.exit_code == 1
    assert "hookbox's own work on event 1" in refused.stderr


@pytest.mark.parametrize(
    ("words", "told", "exit_code"),
    [
        (("outbox", "pause", "elsewhere"), "there are: script", 1),
        (("outbox", "retry"), "name jobs", 2),
        (("outbox", "retry", "1", "--to", "script"), "name jobs", 2),
        (("outbox", "show", "99"), "no job 99", 1),
        (("outbox", "retry", "99"), "no job 99", 1),
        (("events", "replay"), "name events", 2),
        (("events", "replay", "1", "--kind", "bounced"), "name events", 2),
        (("events", "replay", "1", "--to", "elsewhere"), "there are: script", 1),
        (("events", "replay", "99"), "no event 99", 1),
        (("events", "replay", "--source", "other"), "no source is called", 1),
        (("events", "replay", "--recipient", "zoe@example.com"), "no such events", 1),
    ],
)
def test_what_cannot_be_is_said(
    box: Shell, words: tuple[str, ...], told: str, exit_code: int
) -> None:
    result = box(*words)
    assert result.exit_code == exit_code, result.output
    assert told in result.stderr


def test_dry_run_counts_and_changes_nothing(box: Shell) -> None:
    box.receive(delivery("late", "email.delivered", to="ann@example.com"))
    with database.reading(box.state) as transaction:
        before = list(transaction.iterdump())
    (found,) = box.lines("events", "replay", "--since", "1h", "--dry-run")
    assert found["events"] == 3
    assert found["brought"] == {"script": 3}
    assert found["newly_suppressed"] == []
    (alone,) = box.lines("events", "replay", "1", "--to", "script", "--dry-run")
    assert alone["brought"] == {"script": 1}
    (applied,) = box.lines("events", "replay", "1", "--to", "apply", "--dry-run")
    assert applied["brought"] == {}
    with database.reading(box.state) as transaction:
        assert list(transaction.iterdump()) == before


def test_dry_run_tells_which_changes_the_ratchet_would_refuse(box: Shell) -> None:
    """A message that complained does not go back to delivered."""
    body = {"type": "email.complained", "data": {"email": "ann@example.com", "message_id": "m-b"}}
    box.receive(delivery("c", body=json.dumps(body).encode()))
    (found,) = box.lines("events", "replay", "2", "--dry-run")
    assert found["status_refused"] == {"late delivered ignored: already complained": 1}
    shown = box("events", "replay", "2", "--dry-run").stdout
    assert "late delivered ignored: already complained" in shown


# --- with the server running


def send(server: Server, *keys: str) -> None:
    for key in keys:
        made = delivery(key, "email.bounced")
        connection = http.client.HTTPConnection("127.0.0.1", server.port)
        headers = {name.decode(): value.decode() for name, value in made.headers}
        connection.request("POST", "/hooks/std", made.body, headers)
        assert connection.getresponse().status == 200
        connection.close()


def test_failed_job_is_seen_and_retried(server: Server, serving: Shell, taking: Taking) -> None:
    taking.down()
    send(server, "a", "b")
    until(lambda: states(serving) == ["exhausted"] * 2)
    (first, second) = serving.lines("outbox", "list", "--state", "exhausted")
    (shown,) = serving.lines("outbox", "show", str(first["id"]))
    assert [attempt["outcome"] for attempt in shown["tries"]] == ["exit status 1"] * 2
    taking.up()
    assert serving("outbox", "retry", str(first["id"])).exit_code == 0
    until(lambda: len(taking.keys) == 1)
    assert "1 job will be tried now" in serving("outbox", "retry", "--to", "script").output
    until(lambda: states(serving) == ["completed"] * 2)
    assert taking.keys == [str(first["event_id"]), str(second["event_id"])]


def test_paused_destination_waits_also_over_a_restart(
    server: Server, serving: Shell, taking: Taking
) -> None:
    assert serving("outbox", "pause", "script").exit_code == 0
    send(server, "a")
    until(lambda: states(serving) == ["held"])
    server.terminate()
    server.start()
    send(server, "b")
    until(lambda: states(serving) == ["held"] * 2)
    assert taking.keys == []
    assert "2 jobs released" in serving("outbox", "resume", "script").output
    until(lambda: sorted(taking.keys) == ["1", "2"])


def test_replay_reaches_the_destination_under_its_own_key(
    server: Server, serving: Shell, taking: Taking
) -> None:
    send(server, "a")
    until(lambda: taking.keys == ["1"])
    assert "replay 1" in serving("events", "replay", "1").output
    until(lambda: taking.keys == ["1", "1:r1"] and set(states(serving)) == {"completed"})
    assert serving("events", "replay", "--kind", "bounced", "--to", "script").exit_code == 0
    until(lambda: taking.keys == ["1", "1:r1", "1:r2"])


def test_program_can_ask_for_a_replay(server: Server, serving: Shell, taking: Taking) -> None:
    def ask(event_id: int, body: object) -> tuple[int, dict[str, object]]:
        connection = SocketConnection(server.state / "hookbox.sock", 10)
        headers = {"Content-Type": "application/json"}
        connection.request("POST", f"/v1/events/{event_id}/replay", json.dumps(body), headers)
        answer = connection.getresponse()
        told = json.loads(answer.read())
        connection.close()
        return answer.status, told

    send(server, "a")
    until(lambda: states(serving) == ["completed"])
    status, told = ask(1, {"to": ["script"]})
    assert (status, told["refused"]) == (200, [])
    until(lambda: taking.keys == ["1", "1:r1"])
    assert ask(99, {})[0] == 409
    assert ask(2**70, {"to": ["script"]})[0] == 409
    for wrong in ({"to": "script"}, {"dest": ["script"]}, {"reason": 5}, [], "script"):
        assert ask(1, wrong)[0] == 400
    assert ask(1, {"to": ["elsewhere"]})[0] == 409
    connection = http.client.HTTPConnection("127.0.0.1", server.local_port)
    connection.request("POST", "/v1/events/1/replay", "{}", {"Content-Type": "application/json"})
    assert connection.getresponse().status == 401
    connection.close()


def test_destination_that_is_gone_and_comes_back_gets_what_waited(
    server: Server, serving: Shell, taking: Taking
) -> None:
    written = server.config.read_text()
    taking.down()
    send(server, "a")
    until(lambda: states(serving) == ["exhausted"])
    assert serving("outbox", "retry", "--to", "script").exit_code == 0
    server.config.write_text(written.replace(taking.settings(), ""))
    server.terminate()
    server.start()
    until(lambda: states(serving) in (["held"], ["exhausted"]))
    taking.up()
    server.config.write_text(written)
    server.terminate()
    server.start()
    serving("outbox", "retry", "--to", "script")
    until(lambda: taking.keys == ["1"])
