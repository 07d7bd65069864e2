"""The destinations of a run: each takes what it is brought as its mood of the moment has it."""

import asyncio
from dataclasses import dataclass, field

from hookbox.flows.forward import Outlet
from hookbox.flows.routes import Route
from hookbox.model import Attempt, Kind, Order, Parcel, Verdict
from tests.sim.plan import Mood
from tests.sim.world import Effect, World

DEADLINE_S = 10.0  # how long a destination waits for an answer
SCHEDULE_S = (5.0, 20.0, 60.0)

ROUTES = {
    "plain": Route(destination="plain"),
    "ordered": Route(destination="ordered", order=Order.RECIPIENT),
    "fused": Route(
        destination="fused",
        kinds=frozenset({Kind.BOUNCED, Kind.COMPLAINED, Kind.DELIVERED, Kind.UNSUBSCRIBED}),
    ),
}

BEGUN = """
SELECT j.id, j.state, j.attempts,
  (SELECT count(*) FROM job AS f JOIN event AS g ON g.id = f.event_id
   WHERE f.target = j.target AND f.id < j.id AND f.finished_at IS NULL
     AND lower(g.recipient) = lower(e.recipient)) AS earlier
FROM job AS j JOIN event AS e ON e.id = j.event_id
WHERE j.event_id = ? AND j.target = ? AND j.replay = ?
"""


def outlet(world: World, name: str, edition: int) -> Outlet:
    """A destination as it is configured, for the `edition`th time."""
    return Outlet(
        name=name,
        route=ROUTES[name],
        destination=Target(world, name),
        schedule_s=SCHEDULE_S,
        concurrency=1 if name == "fused" else 2,
        failures_max=2 if name == "fused" else 10,
        fingerprint=str(edition),
    )


@dataclass(frozen=True, slots=True)
class _Answer:
    """How one parcel is taken. `error`: it is not even answered."""

    takes_s: float
    attempt: Attempt
    landed: bool
    error: str = ""


@dataclass(slots=True)
class Target:
    """A destination of the simulation; a `Destination` to the box."""

    world: World
    name: str
    closed: bool = field(default=False)

    async def deliver(self, parcel: Parcel) -> Attempt:
        answer = self._answer()
        effect = self._begin(parcel, answer)
        self.world.moment("begin of an effect")
        try:
            await asyncio.sleep(answer.takes_s)
        except asyncio.CancelledError:
            effect.cut = True
            self.world.note(f"{self.name} is cut short at {effect.key}")
            raise
        self.world.note(f"{self.name} ends {effect.key}: {effect.outcome}")
        self.world.moment("end of an effect")
        if answer.error:
            raise ConnectionError(answer.error)
        return answer.attempt

    async def close(self) -> None:
        self.closed = True

    def _begin(self, parcel: Parcel, answer: _Answer) -> Effect:
        world = self.world
        effect = Effect(
            destination=self.name,
            key=parcel.idempotency_key,
            event_id=parcel.event_id,
            replay=parcel.replay,
            attempt=parcel.attempt,
            outcome=answer.attempt.outcome,
            landed=answer.landed,
        )
        world.effects.append(effect)
        world.note(f"{self.name} begins {effect.key} attempt {effect.attempt}")
        self._check(effect)
        return effect

    def _check(self, effect: Effect) -> None:
        """What must hold whenever something is brought."""
        world, what = self.world, f"{effect.key} at {self.name}"
        event_id, _, replay = effect.key.partition(":r")
        place = (int(event_id), f"forward:{self.name}", int(replay or 0))
        job = world.disk.connection.execute(BEGUN, place).fetchone()
        if job is None:
            world.breach(f"{what} was never asked for")
        if job["state"] != "running":
            world.breach(f"{what} is brought while its job is {job['state']}")
        if effect.attempt != job["attempts"] + 1:
            world.breach(f"{what} is attempt {effect.attempt} after {job['attempts']}")
        if self.name in world.paused:
            world.breach(f"{what} is brought although {self.name} is paused")
        if self.name == "ordered" and job["earlier"]:
            world.breach(f"{what} is brought before {job['earlier']} earlier ones are finished")
        if self.closed:
            world.breach(f"{what} is brought to a closed destination")

    def _answer(self) -> _Answer:
        """As the mood has it; each answer says which it is."""
        rng, number = self.world.rng, len(self.world.effects)
        mood = self._mood()
        chance = rng.random()
        if mood is Mood.WELL or (mood is Mood.SLOW and chance < 0.9):
            takes_s = rng.uniform(2, DEADLINE_S) if mood is Mood.SLOW else rng.uniform(0.01, 0.5)
            if self.world.calm or chance < 0.9:
                return _Answer(takes_s, _said(Verdict.DONE, f"taken {number}", 200), landed=True)
        landed = rng.random() < 0.3
        if mood is Mood.SILENT:
            return _Answer(DEADLINE_S, _said(Verdict.LATER, f"no answer {number}"), landed)
        if mood is Mood.BUSY:
            wait_s = rng.choice((1.0, 30.0, 200.0))
            attempt = _said(Verdict.LATER, f"busy {number}", 503, retry_after_s=wait_s)
            return _Answer(0.1, attempt, landed=False)
        if mood is Mood.REFUSING:
            attempt = _said(Verdict.NEVER, f"refused {number}", 410)
            return _Answer(0.1, attempt, landed=False)
        if chance < 0.5:
            broken = _said(Verdict.LATER, "ConnectionError")
            return _Answer(rng.uniform(0, 1), broken, landed, error="reset")
        return _Answer(rng.uniform(0, 1), _said(Verdict.LATER, f"failed {number}", 500), landed)

    def _mood(self) -> Mood:
        moment = self.world.clock.monotonic()
        for stretch in self.world.plan.stretches[self.name]:
            if stretch.begin <= moment < stretch.end:
                return stretch.mood
        return Mood.WELL


def _said(
    verdict: Verdict, outcome: str, status: int | None = None, retry_after_s: float | None = None
) -> Attempt:
    return Attempt(verdict=verdict, outcome=outcome, status=status, retry_after_s=retry_after_s)
