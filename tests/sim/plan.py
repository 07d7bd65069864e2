"""The plan of a run, drawn from its seed: what is sent when, who will fail, and what goes wrong."""

import hashlib
import random
from dataclasses import dataclass
from enum import Enum, auto

from hookbox.model import BounceClass, Kind, SplitEvent
from tests.sim.timeline import START_AT

DAY_S = 86_400.0
ADDRESSES = ("ann@example.com", "bob@example.com", "Cid@Example.com")
REPORTS: tuple[tuple[Kind, BounceClass | None], ...] = (
    (Kind.DELIVERED, None),
    (Kind.DEFERRED, None),
    (Kind.BOUNCED, BounceClass.HARD),
    (Kind.BOUNCED, BounceClass.SOFT),
    (Kind.COMPLAINED, None),
    (Kind.UNSUBSCRIBED, None),
    (Kind.OPENED, None),
)
SOURCES = ("one", "two")
CASTS = (
    ("plain", "ordered", "fused"),
    ("plain", "ordered"),
    ("plain", "fused"),
    ("ordered", "fused"),
    ("ordered",),
)


class Temper(Enum):
    """What an event does to whoever reads it."""

    PLAIN = auto()
    FLAKY = auto()  # cannot be read the first time
    ROTTEN = auto()  # can never be read
    DEADLY = auto()  # takes the process with it


class Mood(Enum):
    """How a destination is, for a while."""

    WELL = auto()
    SLOW = auto()
    FAILING = auto()
    SILENT = auto()
    BUSY = auto()  # asks for a pause
    REFUSING = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """An event as its sender tells it. Two versions of it have the same key and other content."""

    key: str
    source: str
    kind: Kind
    bounce_class: BounceClass | None
    recipient: str
    message_id: str
    occurred_at: int
    temper: Temper
    version: int = 0

    @property
    def content(self) -> bytes:
        return f"{self.key} version {self.version}".encode()

    @property
    def digest(self) -> bytes:
        return hashlib.sha256(self.content).digest()

    def split(self, start: int) -> SplitEvent:
        """Where it lies in the body of its delivery."""
        end = start + len(self.content)
        return SplitEvent(key=self.key, digest=self.digest, raw_kind="test", start=start, end=end)


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """What a sender sends until it is acknowledged. `apart`: each event is a chunk of its own."""

    number: int
    at: float
    source: str
    facts: tuple[Fact, ...]
    apart: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """A destination is in this mood from one moment to another."""

    begin: float
    end: float
    mood: Mood


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """Something that is done to the box, or by its operator."""

    at: float
    what: str
    amount: float = 0.0
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All that is known beforehand."""

    calm_at: float  # from then on nothing goes wrong any more
    posts: tuple[Post, ...]
    stretches: dict[str, tuple[Stretch, ...]]  # of every destination there is
    incidents: tuple[Incident, ...]
    stays_paused: str  # the destination that nobody resumes in the end
    stays_away: str  # the destination that is no longer configured in the end

    @property
    def destinations(self) -> tuple[str, ...]:
        return tuple(self.stretches)


def draw(seed: int) -> Plan:
    """The same seed, the same plan."""
    rng = random.Random(seed)
    destinations = rng.choice(CASTS)
    calm_at = rng.choice((20.0, 60.0, 150.0))
    facts = [_fact(rng, number) for number in range(rng.choice((2, 2, 3, 3, 4, 5)))]
    last = rng.random()
    return Plan(
        calm_at=calm_at,
        posts=tuple(_posts(rng, facts, calm_at)),
        stretches={name: _stretches(rng, calm_at) for name in destinations},
        incidents=tuple(sorted(_incidents(rng, destinations, calm_at), key=lambda i: i.at)),
        stays_paused=rng.choice(destinations) if last < 0.08 else "",
        stays_away=rng.choice(destinations) if last > 0.94 else "",
    )


def _fact(rng: random.Random, number: int) -> Fact:
    kind, bounce_class = rng.choice(REPORTS)
    tempers = (Temper.PLAIN, Temper.FLAKY, Temper.ROTTEN, Temper.DEADLY)
    return Fact(
        key=f"e{number}",
        source=rng.choice(SOURCES),
        kind=kind,
        bounce_class=bounce_class,
        recipient=rng.choice(ADDRESSES[:2] if rng.random() < 0.8 else ADDRESSES),
        message_id=f"m{rng.randrange(2)}",
        occurred_at=START_AT - rng.randrange(100) * 1000,
        temper=rng.choices(tempers, (90, 4, 3, 3))[0],
    )


def _posts(rng: random.Random, facts: list[Fact], calm_at: float) -> list[Post]:
    """Each event at least once; some again, some of those with other content."""
    told = list(facts)
    for fact in facts:
        while rng.random() < 0.25:
            told.append(_again(rng, fact))
    posts: list[Post] = []
    for source in SOURCES:
        queue = [fact for fact in told if fact.source == source]
        while queue:
            count = rng.choice((1, 1, 2, 3))
            batch, queue = queue[:count], queue[count:]
            at = rng.uniform(0, calm_at * 0.8)
            apart = rng.random() < 0.3
            one = Post(number=len(posts), at=at, source=source, facts=tuple(batch), apart=apart)
            posts.append(one)
    return posts


def _again(rng: random.Random, fact: Fact) -> Fact:
    version = rng.choice((0, 0, 1))
    fields = {name: getattr(fact, name) for name in Fact.__slots__}
    return Fact(**{**fields, "version": version})


def _stretches(rng: random.Random, calm_at: float) -> tuple[Stretch, ...]:
    moods = (Mood.SLOW, Mood.FAILING, Mood.FAILING, Mood.SILENT, Mood.BUSY, Mood.REFUSING)
    found = []
    for _ in range(rng.choice((0, 0, 1, 2))):
        begin = rng.uniform(0, calm_at)
        end = begin + rng.uniform(5, calm_at)
        found.append(Stretch(begin=begin, end=min(end, calm_at), mood=rng.choice(moods)))
    return tuple(found)


def _incidents(rng: random.Random, destinations: tuple[str, ...], calm_at: float) -> list[Incident]:
    found: list[Incident] = []
    for _ in range(rng.randint(0, 8)):
        at = rng.uniform(0, calm_at)
        what = rng.choices(*zip(*WEIGHTS.items(), strict=True))[0]
        found += _drawn(rng, what, at, rng.choice(destinations))
    return found


WEIGHTS = {
    "crash": 4,
    "crash at a commit": 6,
    "crash at an effect": 4,
    "crash at an answer": 3,
    "clock step": 7,
    "store trouble": 3,
    "slow disk": 1,
    "stop": 2,
    "reload": 1,
    "away": 1,
    "source away": 1,
    "pause": 3,
    "replay": 4,
    "accept": 1,
}


def _drawn(rng: random.Random, what: str, at: float, name: str) -> list[Incident]:
    """One incident, with what ends it."""
    later = at + rng.uniform(1, 60)
    if what == "clock step":
        return [Incident(at=at, what=what, amount=_step_s(rng))]
    if what == "crash at a commit":
        moment = rng.choice(("before", "after"))
        return [Incident(at=at, what=what, amount=rng.randint(1, 5), name=moment)]
    if what == "crash at an effect":
        moment = rng.choice(("begin", "end"))
        return [Incident(at=at, what=what, amount=rng.randint(1, 2), name=moment)]
    if what == "store trouble":
        trouble = rng.choice(("full", "broken", "locked"))
        return [Incident(at=at, what=what, name=trouble, amount=rng.uniform(1, 60))]
    if what == "slow disk":
        return [Incident(at=at, what=what, amount=rng.choice((0.1, 1.0, 5.0)))]
    if what == "stop":
        return [Incident(at=at, what=what, amount=rng.choice((0.5, 30.0)))]
    if what == "pause":
        return [Incident(at=at, what=what, name=name), Incident(at=later, what="resume", name=name)]
    if what == "away":
        return [Incident(at=at, what=what, name=name), Incident(at=later, what="back", name=name)]
    if what == "source away":
        source = rng.choice(SOURCES)
        back = Incident(at=later, what="source back", name=source)
        return [Incident(at=at, what=what, name=source), back]
    return [Incident(at=at, what=what, name=name)]


def _step_s(rng: random.Random) -> float:
    """Either short, or longer than any honest wait: in between a job waits as long as the step."""
    far = rng.random() < 0.75
    size_s = rng.uniform(2 * DAY_S, 400 * DAY_S) if far else rng.uniform(1, 600)
    return size_s * rng.choice((-1, -1, 1))
