"""The contract of a feed: how a sender's own list of events is asked for and read.

Pure like everything a provider says: a feed makes the request and reads the answer, and the flow
does the rest. A page's events have the key and the digest that their webhooks have, so both ways
share one index.

The *cursor* is what is kept for good: every event before it is stored. Where a list cannot be
walked by such a cursor alone, a page says how the next one of the same round is asked for
(`onward`), and that is forgotten with the round.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hookbox.errors import (
    ConfigError,
    CursorExpired,
    CursorInvalid,
    FeedDenied,
    FeedError,
    FeedThrottled,
)
from hookbox.model import BounceClass, Kind, Rotten, SplitEvent
from hookbox.rules.digest import Unreadable, read_value
from hookbox.rules.reading import at, plain_text
from hookbox.rules.retry_after import retry_after_s

EXCERPT_MAX = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where in a feed a page is asked for. Without a cursor it is the beginning of what the sender
    keeps.
    """

    url: str
    token: str
    limit: int
    now: int
    cursor: str | None = None
    onward: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """The request for one page."""

    url: str
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page, read.

    `cursor` is None where it stays as it was. `sequences`: the numbers of what is on the page, of
    unreadable pieces too. `fault`: the page holds what it says, but cannot be followed any further.
    """

    events: tuple[SplitEvent, ...] = ()
    rotten: tuple[Rotten, ...] = ()
    sequences: frozenset[int] = frozenset()
    cursor: str | None = None
    onward: str = ""
    more: bool = False
    fault: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """How far one message got with one recipient, as the sender itself shows it."""

    message_id: str
    recipient: str
    kind: Kind
    bounce_class: BounceClass | None
    event: SplitEvent  # how it is kept where the ledger knows less


@dataclass(frozen=True, slots=True, kw_only=True)
class StatePage:
    """One page of states."""

    states: tuple[State, ...]
    cursor: str | None = None  # None on the last page


@dataclass(frozen=True, slots=True, kw_only=True)
class States:
    """How the present state of an inbox's messages is read, once its events are gone.

    - `ask(place)`: the request; the place's URL is that of one inbox.
    - `read(body)`: raises Unreadable.
    """

    ask: Callable[[Place], Ask]
    read: Callable[[bytes], StatePage]


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """An answer that is no page."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def refused(refusal: Refusal, now: int) -> FeedError:
    """What an answer other than 200 means, by its status: for most feeds all there is to know."""
    status = refusal.status
    told = f"the sender answers {status}{_excerpt(refusal.body)}"
    if status == 410:
        return CursorExpired(told)
    if status == 400:
        return CursorInvalid(told)
    if status in (401, 403):
        return FeedDenied(told)
    wait_s = retry_after_s(refusal.headers.get("retry-after", ""), now)
    if status == 429 or (status == 503 and wait_s is not None):
        return FeedThrottled(told, retry_after_s=wait_s)
    if 300 <= status < 400:
        return FeedError(f"{told}; redirects are not followed, set the final address")
    return FeedError(told)


def _excerpt(body: bytes) -> str:
    """The sender's own code for the trouble, or its words: never more than a few."""
    try:
        document = read_value(body)
    except Unreadable:
        return ""
    for pointer in (("error", "code"), ("error", "message"), ("error",), ("code",), ("message",)):
        word = plain_text(at(document, pointer), EXCERPT_MAX)
        if word:
            return f" ({word})"
    return ""


# The keys of a `[source.NAME.poll]` table that belong to the feed, as TOML values.
Table = Mapping[str, object]


def no_feed_options(feed: "Feed", table: Table) -> "Feed":
    """`configure` of a feed that has no settings of its own."""
    for key in table:
        raise ConfigError(
            f"polling has no setting `{key}` here",
            where=key,
            mend="remove the line, or check its spelling",
        )
    return feed


@dataclass(frozen=True, slots=True, kw_only=True)
class Feed:
    """One sender's list of events.

    Functions, all pure:

    - `ask(place)`: the request for a page.
    - `read(place, body)`: the page. Raises Unreadable for what cannot be taken apart at all.
    - `refused(refusal, now)`: what another status than 200 means.
    - `configure(feed, table)`: the feed as this source uses it. Raises ConfigError.

    Facts: `limit_max` events fit on a page. `sequential`: cursors are numbers that count events, so
    one that is missing can be told, and events can be taken in their order. `every_min_s`: asking
    more often is not wanted.
    """

    ask: Callable[[Place], Ask]
    read: Callable[[Place, bytes], Page]
    refused: Callable[[Refusal, int], FeedError] = refused
    limit_max: int
    sequential: bool = False
    every_min_s: int = 10
    states: States | None = None
    configure: Callable[["Feed", Table], "Feed"] = no_feed_options
