"""`hookbox once`: a command whose effect must not happen twice, run under a claim of the ledger."""

import contextlib
import os
import shlex
import sys
from typing import Any

import click

from hookbox.cli import door, options, person, terminal
from hookbox.cli.box import Box, pass_box
from hookbox.cli.child import Child, signals_held, write_out
from hookbox.cli.holder import Holder
from hookbox.errors import ConfigError, HookboxError, OperatorError, StoreError
from hookbox.rules.effects import (
    RESULT_BYTES_MAX,
    Claim,
    IfUnknown,
    Outcome,
    Verdict,
    fitting,
)
from hookbox.settings import duration
from hookbox.store import database, effects
from hookbox.store.connections import Transaction

# As shells and `timeout` have it; a command's own codes are handed on as they are.
NOT_EXECUTABLE, NOT_FOUND, BY_SIGNAL = 126, 127, 128
IN_PROGRESS = 75
UNWRITTEN = (HookboxError, OSError)  # the ledger could not be asked
RENEWALS = 3  # in each lease: two may fail


def _lease(_: click.Context, __: click.Parameter, text: str) -> int:
    try:
        return duration(text) * 1000
    except ConfigError as error:
        raise click.BadParameter(f"{error.message}; {error.mend}") from error


@click.command()
@click.option(
    "--lease",
    "lease_ms",
    callback=_lease,
    default="5m",
    show_default=True,
    metavar="TIME",
    help="How long others wait for a word from this command; renewed while it runs.",
)
@click.option(
    "--if-unknown",
    type=click.Choice([policy.value for policy in IfUnknown]),
    default=IfUnknown.STOP.value,
    show_default=True,
    help="What to do when it may have happened: not run, or rather run twice than never.",
)
@click.option("--who", metavar="NAME", help="Whom others see as the holder; you, unless told.")
@click.option("--show", is_flag=True, help="Run nothing; show how KEY stands.")
@click.option(
    "--settle",
    "verdict",
    type=click.Choice([verdict.value for verdict in Verdict]),
    help="Say what became of an unknown one; with --reason.",
)
@click.option("--reason", metavar="TEXT", help="How you found out; kept with your name.")
@options.as_json
@click.argument("key")
@click.argument("words", nargs=-1, metavar="[-- COMMAND...]")
@pass_box
def command(
    box: Box,
    /,
    key: str,
    words: tuple[str, ...],
    show: bool,
    verdict: str | None,
    reason: str | None,
    as_json: bool,
    **asked: Any,
) -> None:
    """Run COMMAND, unless what KEY stands for has happened already.

    KEY names one effect: "reply:" and the event's id. Exit codes: the command's own, and 0 when it
    was done before (its output is printed again); 75 while somebody else is at it; 1 when it is
    unknown whether it happened, which `hookbox once --settle` clears up.

    \b
    hookbox once "reply:$HOOKBOX_IDEMPOTENCY_KEY" -- send-reply
    hookbox once --show reply:17
    hookbox once --settle done reply:17 --reason "saw it in the sent folder"
    """
    if bool(words) + show + bool(verdict) != 1:
        raise click.UsageError("give a command after `--`, or one of --show and --settle")
    if bool(verdict) != bool((reason or "").strip()):
        raise click.UsageError("--settle and --reason belong together")
    if show:
        _show(box, key, as_json=as_json)
    elif verdict:
        _settle(box, key, Verdict(verdict), str(reason))
    else:
        _check_ledger(box)
        raise SystemExit(_Once(box, _claim(key, **asked), as_json=as_json).run(words))


def _claim(key: str, lease_ms: int, if_unknown: str, who: str | None) -> Claim:
    try:
        return Claim(
            key=key,
            token=effects.new_token(),
            who=who or f"{person.name()} (process {os.getpid()})",
            lease_ms=lease_ms,
            if_unknown=IfUnknown(if_unknown),
        )
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def _check_ledger(box: Box) -> None:
    """A ledger that is made on the spot, in a wrong place, would let everything happen again."""
    if not (box.state / database.FILE_NAME).exists():
        raise StoreError(
            f"no database at {box.state / database.FILE_NAME}; is this the right --state? "
            f"A new box is made by: {box.hint('serve')}"
        )


class _Once:
    """One call of `hookbox once KEY -- COMMAND`."""

    def __init__(self, box: Box, claim: Claim, *, as_json: bool) -> None:
        self._box, self._key, self._as_json = box, claim.key, as_json
        self._holder = Holder(box=box, claim=claim)
        self._renew_s = claim.lease_ms / 1000 / RENEWALS
        # A closed output is none: its number may be that of another file by now.
        self._is_heard = not as_json and sys.stdout is not None
        self._has_run = False
        self._unread = b""  # of the command's output

    def run(self, words: tuple[str, ...]) -> int:
        """The exit code."""
        with signals_held():
            answer = self._holder.win()
            is_won = answer["outcome"] == Outcome.WON
            code = self._run(words, answer) if is_won else self._refused(answer)
        write_out(self._unread)
        return code

    def _refused(self, answer: door.Fields) -> int:
        """The command is not run. That it was done before is as good as running it."""
        if answer["outcome"] == Outcome.DONE:
            if self._is_heard:
                self._unread = str(answer["result"] or "").encode()
            return self._told(0, "", answer)
        code = IN_PROGRESS if answer["outcome"] == Outcome.IN_PROGRESS else 1
        return self._told(code, _why_not(self._box, answer), answer)

    def _run(self, words: tuple[str, ...], won: door.Fields) -> int:
        try:
            child = Child(words, kept_max=RESULT_BYTES_MAX, passed_on=self._is_heard)
        except OSError as error:
            code = NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE
            return self._abandon(code, f"{words[0]}: {error.strerror}", won)
        self._has_run = True
        with child:
            code = child.wait(self._box.clock, self._renew_s, self._renew)
        self._unread = child.unread
        if code == 0:
            return self._complete(fitting(child.kept), won)
        if code > 0:
            return self._abandon(code, f"the command exited with {code}", won)
        way_out = _way_out(self._box, self._key, is_leased=True)
        why = f"the command was killed by signal {-code}; {way_out}"
        return self._told(BY_SIGNAL - code, why, {**won, "outcome": Outcome.UNKNOWN})

    def _renew(self) -> None:
        """Who has lost its claim learns that at the end: what is running has begun."""
        try:
            self._holder.renew()
        except UNWRITTEN as error:
            with contextlib.suppress(OSError):  # nobody reads it; the command runs on
                terminal.say(f"{self._key}: the lease could not be renewed: {error}")

    def _complete(self, result: str, won: door.Fields) -> int:
        try:
            answer = self._holder.complete(result)
        except UNWRITTEN as error:
            settle = self._box.hint(f"once --settle done {shlex.quote(self._key)} --reason WHY")
            why = f"the command has done it, and that could not be written down ({error})"
            later = f"it will count as unknown; once the ledger is well again: {settle}"
            return self._told(1, f"{why}; {later}", {**won, "outcome": Outcome.UNKNOWN})
        if answer["outcome"] == Outcome.DONE:
            return self._told(0, "", answer)
        why = "the command has done it, but the claim was no longer its own; nothing was recorded"
        return self._told(1, why, answer)

    def _abandon(self, code: int, why: str, won: door.Fields) -> int:
        try:
            answer = self._holder.abandon()
        except UNWRITTEN as error:
            end = f"that the effect did not happen could not be written down ({error})"
            return self._told(code, f"{why}; {end}", {**won, "outcome": Outcome.UNKNOWN})
        is_free = answer["outcome"] == Outcome.ABANDONED
        end = "did not happen, and may be claimed again" if is_free else "is somebody else's by now"
        return self._told(code, f"{why}; the effect {end}", answer)

    def _told(self, code: int, sentence: str, answer: door.Fields) -> int:
        """One object for a program; a sentence for a person when something is left to say."""
        if self._as_json:
            line = {name: value for name, value in answer.items() if name != "token"}
            terminal.as_json([{**line, "has_run": self._has_run, "exit_code": code}])
        elif sentence:
            terminal.say(f"{self._key}: {sentence}")
        return code


def _why_not(box: Box, answer: door.Fields) -> str:
    """Why the command was not run."""
    by, since = answer["claimed_by"], terminal.when(answer["claimed_at"])
    if answer["outcome"] == Outcome.IN_PROGRESS:
        until = terminal.when(answer["lease_until"])
        return f"in progress since {since} by {by}, who has until {until}; try again after that"
    return f"claimed by {by} at {since} and never completed; {_way_out(box, answer['key'])}"


def _way_out(box: Box, key: str, *, is_leased: bool = False) -> str:
    """What a person does about an unknown effect, at once or when its lease is over."""
    quoted = shlex.quote(key)
    when = f"when its lease is over ({box.hint(f'once --show {quoted}')}) " if is_leased else ""
    ways = [
        f"  {box.hint(f'once --settle {verdict.value} {quoted}')} --reason WHY\n"
        for verdict in Verdict
    ]
    return (
        f"it may have happened or not. Find out, and {when}say which:\n"
        f"{''.join(ways)}"
        "or run it with --if-unknown retry, where twice is better than never"
    )


def _show(box: Box, key: str, *, as_json: bool) -> None:
    with database.reading(box.state) as transaction:
        answer = effects.line(key, effects.look(transaction, key, box.clock.now()))
    if answer["outcome"] == Outcome.ABSENT:
        raise OperatorError(f"{key!r} was never claimed, or was given up")
    if as_json:
        terminal.as_json([answer])
        return
    terminal.facts(
        [
            ("key", key),
            ("state", str(answer["outcome"]).replace("_", " ")),
            ("claimed by", str(answer["claimed_by"])),
            ("claimed", terminal.exactly(answer["claimed_at"])),
            ("lease until", terminal.exactly(answer["lease_until"])),
            ("completed", terminal.exactly(answer["completed_at"])),
        ]
    )
    if answer["result"]:
        terminal.content(str(answer["result"]).rstrip("\n"), title="Result")
    if answer["outcome"] == Outcome.UNKNOWN:
        terminal.say(_way_out(box, key))


def _settle(box: Box, key: str, verdict: Verdict, reason: str) -> None:
    word = person.word(box, reason)

    def settle(transaction: Transaction) -> door.Fields:
        effects.settle(transaction, key, verdict, word)
        return {}

    fields = {"key": key, "verdict": verdict, "who": word.who, "reason": reason}
    door.change(box, "effects.settle", fields, settle)
    became = "is done" if verdict is Verdict.DONE else "may be claimed again"
    click.echo(f"{key} {became}; settled by {word.who}")
