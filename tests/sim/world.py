"""The world around the box: it outlives every process, and remembers what it saw."""

import random
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime

from hookbox.model import Kind, Notification, StoredEvent
from tests.sim.disk import Disk
from tests.sim.plan import Fact, Plan, Temper, draw
from tests.sim.timeline import Broken, Crash, VirtualClock


@dataclass(slots=True, kw_only=True)
class Effect:
    """One time that a destination was brought something. `landed`: it took it, whatever it said."""

    destination: str
    key: str
    event_id: int
    replay: int
    attempt: int
    outcome: str
    landed: bool
    cut: bool = False  # by a stop


@dataclass(slots=True)
class World:
    """One run's surroundings."""

    seed: int
    clock: VirtualClock
    disk: Disk
    plan: Plan
    rng: random.Random
    facts: dict[bytes, Fact] = field(default_factory=dict)
    posts_due: dict[int, float] = field(default_factory=dict)  # post number -> when it is sent next
    acknowledged: list[int] = field(default_factory=list)
    incidents_done: int = 0
    effects: list[Effect] = field(default_factory=list)
    deadly: dict[str, int] = field(default_factory=dict)  # moment -> which one of them kills
    read_before: set[bytes] = field(default_factory=set)
    paused: set[str] = field(default_factory=set)
    destinations_away: set[str] = field(default_factory=set)
    sources_away: set[str] = field(default_factory=set)
    replays: Counter[int] = field(default_factory=Counter)  # event id -> how often it was asked for
    owed: list[tuple[int, int, str]] = field(default_factory=list)  # event, apply replay, target
    down_s: float = 0.0  # how long the box stays down after a stop
    seen: Counter[str] = field(default_factory=Counter)
    log: list[tuple[float, int, str]] = field(default_factory=list)

    def note(self, text: str) -> None:
        """One line of the story."""
        self.log.append((self.clock.monotonic(), self.clock.now(), text))

    def breach(self, text: str) -> None:
        """A promise is broken: no more needs to be seen."""
        self.note(f"BROKEN: {text}")
        raise Broken(text)

    def story(self) -> list[str]:
        """What happened, for a reader."""
        return [
            f"{moment:10.3f} {datetime.fromtimestamp(wall / 1000, UTC):%Y-%m-%d %H:%M:%S} {text}"
            for moment, wall, text in self.log
        ]

    @property
    def calm(self) -> bool:
        """Whether everything that goes wrong has gone wrong."""
        return self.clock.monotonic() >= self.plan.calm_at

    def read(self, event: StoredEvent) -> tuple[Notification, ...]:
        """The provider: what an event says, if it can be read."""
        fact = self.facts[event.content]
        if fact.temper is Temper.DEADLY:
            self.note(f"event {event.id} kills the process that reads it")
            self.seen["deadly events"] += 1
            raise Crash
        first_time = event.content not in self.read_before
        self.read_before.add(event.content)
        if fact.temper is Temper.ROTTEN or (fact.temper is Temper.FLAKY and first_time):
            raise ValueError("it cannot be read")
        return (said(fact),)

    def moment(self, name: str) -> None:
        """Something happens that the process may not survive."""
        left = self.deadly.get(name)
        if left is None:
            return
        self.deadly[name] = left - 1
        if left <= 1:
            del self.deadly[name]
            self.note(f"dies at the {name}")
            self.seen[f"crashes at the {name}"] += 1
            raise Crash


def made(seed: int, *, hasty: bool = False) -> World:
    """The world of this seed, with an honest disk or a hasty one."""
    plan, clock = draw(seed), VirtualClock()
    world = World(seed, clock, Disk(clock, hasty=hasty), plan, random.Random(f"world {seed}"))
    for post in plan.posts:
        world.posts_due[post.number] = post.at
        world.facts.update({fact.content: fact for fact in post.facts})
    return world


def said(fact: Fact) -> Notification:
    """The notification that an event is."""
    return Notification(
        kind=Kind(fact.kind),
        recipient=fact.recipient,
        bounce_class=fact.bounce_class,
        occurred_at=fact.occurred_at,
        message_id=fact.message_id,
    )
