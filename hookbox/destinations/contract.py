"""What a destination is: where events are brought after they were applied.

A destination module exports one frozen `DestinationType` named `TYPE`. `open` makes the live
destination out of what its table says; from then on `deliver` makes one attempt to bring one
parcel.

Whoever brings parcels may die after the destination took one and before that was recorded, so a
destination sees a parcel at least once, each time under the same idempotency key.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

from hookbox.model import Attempt, Parcel

EXCERPT_MAX = 200  # characters of what a destination said that are kept with an attempt


class Reading(StrEnum):
    """How the value of an option is written, and what becomes of it."""

    TEXT = "text"  # str
    URL = "url"  # str: where it goes, which is never a door of this very box
    TEXTS = "texts"  # a list of str, or one: tuple[str, ...]
    DURATION = "duration"  # "10s": seconds
    SIZE = "size"  # "100 MiB": bytes
    COUNT = "count"  # int, 1 to 1,000
    NETWORKS = "networks"  # "10.0.0.0/8", one or a list: tuple of networks
    PATH = "path"  # "/full/path" of a file: Path


class Destination(Protocol):
    """A live destination."""

    async def deliver(self, parcel: Parcel) -> Attempt:
        """Make one attempt, within the destination's own deadline. What it raises counts as a
        failed attempt. Cancelled when the box stops.
        """
        ...

    async def close(self) -> None:
        """Nothing is delivered any more. May be called twice."""
        ...


class Answer(Protocol):
    """What came back from a request. Header names in lower case."""

    @property
    def status(self) -> int: ...
    @property
    def headers(self) -> Mapping[str, str]: ...
    @property
    def body(self) -> bytes: ...


class Way(Protocol):
    """A way out of the box to one URL. It follows no redirect."""

    async def post(self, *, headers: Mapping[str, str], body: bytes, deadline_s: float) -> Answer:
        """Raises NetError when no answer came. A long answer is cut."""
        ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Outfit:
    """What a live destination is made of.

    `options`: the values of its table, read as `DestinationType.options` says; an optional one that
    is not written is not there. `keys`: what it signs with, the current one first. `way`: makes its
    way out of the box to a URL, where its type `needs_net`; raises AddressRefused for one that
    leads where the box must not go. `box`: environment variables by which the hookbox command
    finds this very box.
    """

    name: str
    options: Mapping[str, Any]
    keys: tuple[bytes, ...] = field(default=(), repr=False)
    way: Callable[[str], Way] | None = None
    box: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class DestinationType:
    """One way to bring events.

    `open` raises ConfigError with the option in `where`. It touches nothing outside: files and
    connections are opened by the first delivery, so that what was opened in vain can be dropped.
    `concurrency` is how many parcels are under way at once where the table does not say.
    `needs_secret`: it signs; where none was set, one is made and sealed. `files`: every file that
    it may write, by the option that says so; no two destinations may share one. `doubts`: what a
    person should know of options that can be used as they are, one sentence each.
    """

    name: str
    title: str
    options: Mapping[str, Reading] = field(default_factory=dict)
    required: frozenset[str] = frozenset()
    concurrency: int = 1
    needs_secret: bool = False
    needs_net: bool = False
    open: Callable[[Outfit], Destination]
    files: Callable[[Mapping[str, Any]], Iterable[tuple[str, Path]]] = lambda options: ()
    doubts: Callable[[Mapping[str, Any]], tuple[str, ...]] = lambda options: ()
