"""The words of polling: what a source's `poll` table came to, and how one round ended."""

from dataclasses import dataclass, field
from enum import StrEnum

from hookbox.providers.feed import Feed, Page, Place

SEQUENCE_DIGITS_MAX = 18  # any such number fits into 64 bits


class Drive(StrEnum):
    """What admits the events of a source: whichever way is faster, or its event list alone."""

    WEBHOOK = "webhook"
    CURSOR = "cursor"


@dataclass(frozen=True, slots=True, kw_only=True)
class Polling:
    """How a source is polled. `scoped`: the credential sees a part of the events, so jumps in their
    numbers mean nothing. `read_url` is where the messages of `{inbox_id}` are read. `loopback`: the
    sender is on this machine, by the person's own word.
    """

    feed: Feed
    url: str
    token: str = field(repr=False)
    every_s: float
    drive: Drive
    scoped: bool
    read_url: str | None
    limit: int
    loopback: bool


class End(StrEnum):
    """How a round ended."""

    CAUGHT_UP = "caught_up"
    MORE = "more"  # long enough for one round; the next one goes on from here
    THROTTLED = "throttled"
    FAILED = "failed"  # it may be better next time
    STUCK = "stuck"  # pages come, and lead nowhere
    STOPPED = "stopped"  # nothing is asked until a person has mended something


@dataclass(slots=True, kw_only=True)
class Round:
    """One round: what it brought and how it ended. `told` says what was wrong, for a person."""

    source: str
    end: End = End.CAUGHT_UP
    pages: int = 0
    new: int = 0
    duplicate: int = 0
    conflicting: int = 0
    quarantined: int = 0
    reconciled: int = 0
    cursor: str | None = None
    told: str = ""
    retry_after_s: float | None = None


@dataclass(slots=True, kw_only=True)
class Walk:
    """A round that is under way. `been`: the places that pages were asked from; `brought`: there
    was an event on one of them, known or not.
    """

    source_id: int
    polling: Polling
    round: Round
    started_at: int
    limit: int
    cursor: str | None = None
    onward: str = ""
    been: set[tuple[str | None, str]] = field(default_factory=set)
    stalls: int = 0
    brought: bool = False

    def place(self, now: int) -> Place:
        """Where the next page is asked for."""
        return Place(
            url=self.polling.url,
            token=self.polling.token,
            limit=self.limit,
            now=now,
            cursor=self.cursor,
            onward=self.onward,
        )

    def start(self, cursor: str | None) -> None:
        """Begin there."""
        self.cursor, self.onward, self.been = cursor, "", {(cursor, "")}

    def follow(self, page: Page) -> None:
        """Go on to where the page says, and count it when that is no new place."""
        self.brought = self.brought or bool(page.events or page.rotten)
        self.cursor = page.cursor or self.cursor
        self.onward = page.onward
        if (self.cursor, self.onward) in self.been:
            self.stalls += 1
        self.been.add((self.cursor, self.onward))

    @property
    def counts(self) -> bool:
        """Whether a number that is missing means something."""
        return self.polling.feed.sequential and not self.polling.scoped


def sequence(cursor: str | None) -> int | None:
    """The number that a cursor is, where it is one that the store can hold."""
    if cursor is None or not 0 < len(cursor) <= SEQUENCE_DIGITS_MAX:
        return None
    return int(cursor) if cursor.isascii() and cursor.isdigit() else None
