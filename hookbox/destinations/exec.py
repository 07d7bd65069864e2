"""Run a command of one's own for each event: JSON on stdin, the main facts in its environment.

Exit status 0 is done. 75 (EX_TEMPFAIL of sysexits.h) is "try later, and nothing is wrong with me";
everything else is a failure that is tried again. There is no shell, and nothing of the server's own
environment but what is needed or named: the rest may hold secrets.
"""

import os
import shutil
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hookbox.destinations.contract import Destination, DestinationType, Outfit, Reading
from hookbox.destinations.excerpt import end
from hookbox.destinations.run import Run
from hookbox.errors import ConfigError
from hookbox.model import Attempt, Parcel, Verdict

TIMEOUT_S = 30.0
GRACE_S = 2.0  # from asking a command to end to ending it
STOP_GRACE_S = 0.5  # the same while the box itself stops, which has waited by then

PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "TZ")
TRY_LATER = 75


@dataclass(frozen=True, slots=True, kw_only=True)
class Exec:
    """A command."""

    command: tuple[str, ...]
    passed_on: tuple[str, ...] = ()
    box: Mapping[str, str] = field(default_factory=dict)
    timeout_s: float = TIMEOUT_S

    async def deliver(self, parcel: Parcel) -> Attempt:
        try:
            run = Run(self.command, self._environment(parcel), parcel.body)
        except OSError as error:
            excerpt = f"{self.command[0]}: {error.strerror}"
            return Attempt(verdict=Verdict.LATER, outcome="cannot be started", excerpt=excerpt)
        in_time, grace_s = False, STOP_GRACE_S
        try:
            in_time = await run.ended(self.timeout_s)
            grace_s = GRACE_S
        finally:
            status = await run.stop(grace_s)
        if not in_time:
            outcome = f"not ended within {self.timeout_s:g} s"
            return Attempt(verdict=Verdict.LATER, outcome=outcome, excerpt=end(run.said))
        return judged(status, end(run.said))

    async def close(self) -> None:
        """There is nothing between two runs."""

    def _environment(self, parcel: Parcel) -> dict[str, str | bytes]:
        names = (*PASSED_ON, *self.passed_on)
        kept = {name: os.environ[name] for name in names if name in os.environ}
        return {
            **kept,
            **self.box,
            **{f"HOOKBOX_{name}": _bare(text) for name, text in facts(parcel).items()},
        }


def facts(parcel: Parcel) -> dict[str, str]:
    """What a command may want to know before it reads. What an event does not say is empty."""
    return {
        "EVENT_ID": str(parcel.event_id),
        "IDEMPOTENCY_KEY": parcel.idempotency_key,
        "REPLAY": str(parcel.replay),
        "ATTEMPT": str(parcel.attempt),
        "SOURCE": parcel.source,
        "KIND": parcel.kind or "",
        "RECIPIENT": parcel.recipient or "",
        "MESSAGE_ID": parcel.message_id or "",
    }


def _bare(text: str) -> bytes:
    """As an environment can hold it; stdin has it whole."""
    return text.replace("\0", "").encode("utf-8", "replace")


def judged(status: int | None, said: str) -> Attempt:
    """What the end of a command says about the attempt."""
    if status == 0:
        return Attempt(verdict=Verdict.DONE, outcome="exit status 0", excerpt=said)
    outcome = f"exit status {status}"
    if status is None or status < 0:
        outcome = f"killed by {_name(-(status or -signal.SIGKILL))}"
    return Attempt(
        verdict=Verdict.LATER, outcome=outcome, excerpt=said, blames_target=status != TRY_LATER
    )


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # most of the real-time signals have none
        return f"signal {number}"


def doubts(options: Mapping[str, Any]) -> tuple[str, ...]:
    command = options["command"][0]
    if shutil.which(command):
        return ()
    return (f"{command} is not there, or may not be run; events wait until it is",)


def opened(outfit: Outfit) -> Destination:
    for option in ("command", "env"):
        if any("\0" in text for text in outfit.options.get(option, ())):
            raise ConfigError("holds a NUL character", where=option, mend="remove it")
    return Exec(
        command=outfit.options["command"],
        passed_on=outfit.options.get("env", ()),
        box=outfit.box,
        timeout_s=outfit.options.get("timeout", TIMEOUT_S),
    )


TYPE = DestinationType(
    name="exec",
    title="Run a command, with the event on its stdin",
    options={"command": Reading.TEXTS, "env": Reading.TEXTS, "timeout": Reading.DURATION},
    required=frozenset({"command"}),
    concurrency=4,
    open=opened,
    doubts=doubts,
)
