"""The exec destination: commands that hang, flood, fork and die do so alone."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from hookbox.destinations import DESTINATIONS
from hookbox.destinations.contract import EXCERPT_MAX
from hookbox.errors import ConfigError
from hookbox.model import Attempt, Verdict
from tests.destinations.parcels import RECIPIENT, parcel
from tests.destinations.rigs import one_line, opened, runs, script

PATIENCE_S = 20.0


async def attempt_of(*command: str, **options: object) -> Attempt:
    async with asyncio.timeout(PATIENCE_S):
        return await opened("exec", command=command, **options).deliver(parcel())


def entries(folder: Path) -> int:
    return sum(1 for _ in folder.iterdir())


def in_shell(text: str) -> tuple[str, ...]:
    return ("sh", "-c", text)


async def test_facts_are_in_the_environment(tmp_path: Path) -> None:
    sent = replace(parcel(replay=2, attempt=3), message_id=None)
    command = script(tmp_path, "env >env")
    assert (await opened("exec", command=command).deliver(sent)).verdict is Verdict.DONE
    told = dict(line.split("=", 1) for line in (tmp_path / "env").read_text().splitlines())
    assert {key: value for key, value in told.items() if key.startswith("HOOKBOX_")} == {
        "HOOKBOX_EVENT_ID": "7",
        "HOOKBOX_IDEMPOTENCY_KEY": "7:r2",
        "HOOKBOX_REPLAY": "2",
        "HOOKBOX_ATTEMPT": "3",
        "HOOKBOX_SOURCE": "shop",
        "HOOKBOX_KIND": "bounced",
        "HOOKBOX_RECIPIENT": RECIPIENT,
        "HOOKBOX_MESSAGE_ID": "",
    }


async def test_only_what_is_needed_or_named_is_passed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "telling")
    monkeypatch.setenv("HOOKBOX_CONFIG", "/box.toml")
    monkeypatch.setenv("WANTED", "yes")
    monkeypatch.setenv("TZ", "UTC")
    command = script(tmp_path, "env >env")
    await opened("exec", command=command, env=("WANTED", "NOT_SET")).deliver(parcel())
    names = {line.split("=")[0] for line in (tmp_path / "env").read_text().splitlines()}
    own = {name for name in names if name.startswith("HOOKBOX_")}
    shells = {"PWD", "OLDPWD", "SHLVL", "_"}
    assert names - own - shells <= {"PATH", "HOME", "LANG", "LC_ALL", "TZ", "WANTED"}
    assert {"TZ", "WANTED", "PATH"} <= names
    assert "HOOKBOX_CONFIG" not in own


async def test_no_shell_reads_what_an_event_says(tmp_path: Path) -> None:
    evil = f"$(touch {tmp_path}/touched) `touch {tmp_path}/touched`; touch {tmp_path}/touched"
    sent = replace(parcel(), recipient=evil, message_id=evil)
    command = ("printenv", "HOOKBOX_RECIPIENT")
    attempt = await opened("exec", command=command).deliver(sent)
    assert attempt.excerpt.endswith("/touched")
    assert entries(tmp_path) == 0


@pytest.mark.parametrize("text", ["a\0b", "\ud800", "ü\U0001f600", "x" * 10_000])
async def test_any_text_can_be_handed_over(text: str) -> None:
    sent = replace(parcel(), recipient=text, message_id=text)
    attempt = await opened("exec", command=("true",)).deliver(sent)
    assert attempt.verdict is Verdict.DONE


@pytest.mark.parametrize(
    ("ends", "verdict", "outcome", "blames"),
    [
        ("exit 0", Verdict.DONE, "exit status 0", True),
        ("exit 75", Verdict.LATER, "exit status 75", False),
        ("exit 1", Verdict.LATER, "exit status 1", True),
        ("exit 127", Verdict.LATER, "exit status 127", True),
        ("kill -KILL $$", Verdict.LATER, "killed by SIGKILL", True),
        ("kill -SEGV $$", Verdict.LATER, "killed by SIGSEGV", True),
        ("kill -40 $$", Verdict.LATER, "killed by signal 40", True),
    ],
)
async def test_how_a_command_ends_is_how_the_attempt_went(
    ends: str, verdict: Verdict, outcome: str, blames: bool
) -> None:
    attempt = await attempt_of(*in_shell(ends))
    assert (attempt.verdict, attempt.outcome) == (verdict, outcome)
    assert attempt.blames_target is blames


async def test_excerpt_is_the_end_of_what_was_said() -> None:
    attempt = await attempt_of(*in_shell("seq 1 10000; echo why >&2; printf '\\033[31m'; exit 1"))
    assert "9999 10000 why" in attempt.excerpt
    assert attempt.excerpt.isprintable()
    assert len(attempt.excerpt) <= EXCERPT_MAX


async def test_command_that_does_not_read_holds_nobody_up() -> None:
    sent = parcel(filler="x" * 5_000_000)
    attempt = await opened("exec", command=("true",)).deliver(sent)
    assert attempt.verdict is Verdict.DONE


async def test_large_event_is_read_whole() -> None:
    sent = parcel(filler="x" * 5_000_000)
    attempt = await opened("exec", command=("wc", "-c")).deliver(sent)
    assert attempt.excerpt == str(len(sent.body))


async def test_flood_of_output_goes_by() -> None:
    attempt = await attempt_of(*in_shell("head -c 50000000 /dev/zero | tr '\\0' x; echo; echo end"))
    assert attempt.verdict is Verdict.DONE
    assert attempt.excerpt.endswith("xxx end")


async def test_flood_without_end_is_ended_at_the_deadline() -> None:
    attempt = await attempt_of("yes", timeout=0.3)
    assert attempt.outcome == "not ended within 0.3 s"
    assert attempt.excerpt.endswith("y y y")


async def test_command_that_minds_is_asked_first(tmp_path: Path) -> None:
    text = "trap 'echo bye >asked; exit 0' TERM; sleep 600 & wait"
    attempt = await attempt_of(*script(tmp_path, text), timeout=0.3)
    assert attempt.outcome == "not ended within 0.3 s"
    assert one_line(tmp_path / "asked") == "bye"


async def test_silent_command_is_given_the_same_time(tmp_path: Path) -> None:
    """Though there is no output left that would tell of its end."""
    text = "exec >/dev/null 2>&1; trap 'sleep 0.2; echo bye >asked; exit 0' TERM; sleep 600 & wait"
    await attempt_of(*script(tmp_path, text), timeout=0.5)
    assert one_line(tmp_path / "asked") == "bye"


LEFT_BEHIND = {
    "quiet": "sleep 600 >/dev/null 2>&1 & echo $! >pid; exit 0",
    "talking": "sleep 600 & echo $! >pid; exit 0",
    "deaf": "(trap '' TERM; echo started >deaf; sleep 600) & echo $! >pid; "
    "while ! [ -s deaf ]; do :; done",
}


@pytest.mark.parametrize("text", LEFT_BEHIND.values(), ids=LEFT_BEHIND)
async def test_what_a_command_leaves_behind_is_ended(tmp_path: Path, text: str) -> None:
    attempt = await attempt_of(*script(tmp_path, text))
    assert attempt.verdict is Verdict.DONE
    assert not runs(one_line(tmp_path / "pid"))


async def test_nothing_is_left_open() -> None:
    before = entries(Path("/proc/self/fd"))
    for command in (("true",), in_shell("exit 1"), ("/nowhere",), in_shell("sleep 600 &")):
        await attempt_of(*command)
    await attempt_of("sleep", "600", timeout=0.1)
    await asyncio.sleep(0)
    assert entries(Path("/proc/self/fd")) == before


@pytest.mark.parametrize(
    ("mode", "text", "why"),
    [
        (None, "", "No such file or directory"),
        (0o644, "#!/bin/sh\n", "Permission denied"),
        (0o755, "no program", "Exec format error"),
        (0o755, "#!/nowhere\n", "No such file or directory"),
    ],
)
async def test_command_that_cannot_be_started_says_why(
    tmp_path: Path, mode: int | None, text: str, why: str
) -> None:
    program = tmp_path / "program"
    if mode is not None:
        program.write_text(text)
        program.chmod(mode)
    attempt = await attempt_of(str(program))
    assert (attempt.verdict, attempt.outcome) == (Verdict.LATER, "cannot be started")
    assert attempt.excerpt == f"{program}: {why}"


def test_missing_command_is_told_beforehand(tmp_path: Path) -> None:
    doubts = DESTINATIONS["exec"].doubts
    assert doubts({"command": ("sh", "-c", "x")}) == ()
    [told] = doubts({"command": (str(tmp_path / "nowhere"),)})
    assert "nowhere is not there" in told


def test_nul_in_a_command_is_refused() -> None:
    with pytest.raises(ConfigError) as caught:
        opened("exec", command=("sh", "\0"))
    assert caught.value.where == "command"


async def test_body_is_json_on_stdin() -> None:
    attempt = await attempt_of("head", "-c", "100")
    assert json.loads(parcel().body)["id"] == 7
    assert attempt.excerpt.startswith('{"id": 7')
