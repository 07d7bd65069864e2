"""The promises, checked with SQL once nothing moves any more, against what the world saw."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

from hookbox.flows.lane import INTERRUPTED
from hookbox.flows.settlement import CRASHED, FAILED
from hookbox.model import BounceClass, Kind
from hookbox.store.admissions import CONFLICT
from hookbox.store.forwarding import PAUSED, UNCONFIGURED
from hookbox.store.jobs import CRASHES_MAX
from hookbox.store.turns import WAITS
from tests.sim.plan import Fact, Temper
from tests.sim.targets import ROUTES, SCHEDULE_S
from tests.sim.timeline import Broken
from tests.sim.world import Effect, World

EVENTS = """
SELECT e.id, s.name AS source, e.source_id, e.key, e.digest, e.state, e.place, d.received_at,
  coalesce(e.content, substr(d.body, e.slice_start + 1, e.slice_length), d.body) AS content,
  (SELECT max(crashes) FROM job AS j WHERE j.event_id = e.id AND j.target = 'apply') AS crashes,
  (SELECT group_concat(q.reason) FROM quarantine_entry AS q WHERE q.event_id = e.id) AS aside
FROM event AS e JOIN source AS s ON s.id = e.source_id JOIN delivery AS d ON d.id = e.delivery_id
"""
CONFLICTS = f"""
SELECT s.name AS source, q.key, q.digest
FROM quarantine_entry AS q JOIN source AS s ON s.id = q.source_id WHERE q.reason = '{CONFLICT}'
"""
JOBS = """
SELECT id, event_id, target, replay, state, attempts, spared, crashes, last_outcome,
  (SELECT count(*) FROM attempt AS a WHERE a.job_id = job.id) AS recorded
FROM job
"""
ATTEMPTS = """
SELECT j.event_id, j.target, j.replay, a.number, a.outcome
FROM attempt AS a JOIN job AS j ON j.id = a.job_id WHERE j.target LIKE 'forward:%'
"""
STATUSES = """
SELECT source_id, message_id, recipient, kind, bounce_class, status_at FROM status
"""
SUPPRESSIONS = "SELECT address, reason, since FROM suppression WHERE lift_id IS NULL"
TURNS = """
SELECT count(*) FROM job_turn AS t JOIN job AS j ON j.id = t.job_id
WHERE j.finished_at IS NOT NULL
"""

# The ratchet in the words of its promise: the highest wins, of equals the first.
RANKS = {
    (Kind.DEFERRED, None): 1,
    (Kind.BOUNCED, BounceClass.SOFT): 2,
    (Kind.DELIVERED, None): 3,
    (Kind.BOUNCED, BounceClass.HARD): 4,
    (Kind.COMPLAINED, None): 5,
}
CAUSES = {
    (Kind.BOUNCED, BounceClass.HARD): "hard_bounce",
    (Kind.COMPLAINED, None): "complaint",
    (Kind.UNSUBSCRIBED, None): "unsubscribed",
}
DAY_MS = 86_400_000


def check(world: World) -> None:
    """Raises Broken with the first promise that was not kept."""
    for broken in _Checker(world).all():
        world.note(f"BROKEN: {broken}")
        raise Broken(broken)


class _Checker:
    """Reads everything once, then compares."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.events = self._rows(EVENTS)
        self.jobs = self._rows(JOBS)
        self.forwards = [job for job in self.jobs if job["target"] != "apply"]
        self.effects: dict[tuple[str, int, int], list[Effect]] = defaultdict(list)
        for effect in world.effects:
            event_id, _, replay = effect.key.partition(":r")
            place = f"forward:{effect.destination}", int(event_id), int(replay or 0)
            self.effects[place].append(effect)

    def _rows(self, sql: str) -> list[Any]:
        return self.world.disk.connection.execute(sql).fetchall()

    def all(self) -> Iterator[str]:
        yield from self.acknowledged_is_stored()
        yield from self.events_end()
        yield from self.jobs_end()
        yield from self.asked_for_is_brought()
        yield from self.effects_match_attempts()
        yield from self.ledger_is_the_ratchet()

    def acknowledged_is_stored(self) -> Iterator[str]:
        """Once, or beside it when its content contradicts what came first."""
        stored = {(e["source"], e["key"]): e["digest"] for e in self.events}
        aside = {(q["source"], q["key"], q["digest"]) for q in self._rows(CONFLICTS)}
        posts = {post.number: post for post in self.world.plan.posts}
        for number in self.world.acknowledged:
            for fact in posts[number].facts:
                first = stored.get((fact.source, fact.key))
                if first is None:
                    yield f"{fact.key} was acknowledged and is not stored"
                elif first != fact.digest and (fact.source, fact.key, fact.digest) not in aside:
                    yield f"{fact.key}, version {fact.version}, is neither stored nor kept aside"

    def events_end(self) -> Iterator[str]:
        """Applied, or set aside for a reason."""
        for event in self.events:
            fact = self._fact(event)
            crashed, failed = CRASHED in (event["aside"] or ""), FAILED in (event["aside"] or "")
            if event["state"] not in ("applied", "quarantined"):
                yield f"event {event['id']} ends {event['state']}"
            if event["state"] == "applied" and fact.temper in (Temper.ROTTEN, Temper.DEADLY):
                yield f"event {event['id']} is applied although nobody can read it"
            if event["state"] == "quarantined" and not (crashed or failed):
                yield f"event {event['id']} is set aside for no reason"
            if crashed and event["crashes"] < CRASHES_MAX:
                yield f"event {event['id']} is set aside after {event['crashes']} crashes"
            if failed and fact.temper is not Temper.ROTTEN:
                yield f"event {event['id']} is set aside although it can be read"

    def jobs_end(self) -> Iterator[str]:
        """Done, given up visibly, or held for a reason that still holds."""
        plan = self.world.plan
        for job in self.jobs:
            name, what = self._name(job), f"job {job['id']} ({job['target']})"
            if job["state"] == "held":
                reasons = {
                    PAUSED: name in (plan.stays_paused, plan.stays_away),
                    UNCONFIGURED: name == plan.stays_away,
                    WAITS: name == "ordered" and name in (plan.stays_paused, plan.stays_away),
                }
                if not reasons.get(job["last_outcome"], False):
                    yield f"{what} is held: {job['last_outcome']}"
            elif job["state"] == "exhausted":
                if job["target"] != "apply" and not self._given_up_rightly(job):
                    yield f"{what} is given up after {job['attempts']} attempts"
            elif job["state"] != "completed":
                yield f"{what} is left {job['state']}"
        for (count,) in self._rows(TURNS):
            if count:
                yield f"{count} finished jobs keep others waiting"

    def _given_up_rightly(self, job: Any) -> bool:
        refused = (job["last_outcome"] or "").startswith("refused")
        tried = job["attempts"] - job["spared"]
        return refused or job["crashes"] >= CRASHES_MAX or tried == len(SCHEDULE_S) + 1

    def asked_for_is_brought(self) -> Iterator[str]:
        """Each event the first time, and once more for each replay; nothing else."""
        made: Counter[tuple[int, str]] = Counter()
        for job in self.forwards:
            made[job["event_id"], job["target"]] += 1
        for event in self.events:
            for name in self.world.plan.destinations:
                target = f"forward:{name}"
                least, most = self._wanted(event, name)
                count = made[event["id"], target]
                if not least <= count <= most:
                    yield f"event {event['id']} goes to {name} {count} times, {least} to {most}"
        for job in self.forwards:
            effects = self.effects[job["target"], job["event_id"], job["replay"]]
            if job["state"] == "completed" and not any(effect.landed for effect in effects):
                yield f"job {job['id']} is completed, and {self._name(job)} was brought nothing"
            if len(effects) > job["attempts"] + job["crashes"]:
                yield f"job {job['id']} had {len(effects)} effects in {job['attempts']} attempts"

    def _wanted(self, event: Any, name: str) -> tuple[int, int]:
        """How often, at least and at most, an event is to be brought to a destination."""
        fact, route, target = self._fact(event), ROUTES[name], f"forward:{name}"
        if event["place"] is None or (route.kinds and fact.kind not in route.kinds):
            return 0, 0
        most = 1 + self.world.replays[event["id"]]
        if any(i.what == "away" and i.name == name for i in self.world.plan.incidents):
            return 0, most
        if name == self.world.plan.stays_away:
            return 0, most
        applied = {
            job["replay"]
            for job in self.jobs
            if job["target"] == "apply"
            and job["event_id"] == event["id"]
            and job["state"] == "completed"
        }
        owed = {(e, r) for e, r, t in self.world.owed if t == target and r in applied}
        return 1 + len([e for e, _ in owed if e == event["id"]]), most

    def effects_match_attempts(self) -> Iterator[str]:
        """What is recorded is what the destination saw last under that number."""
        for job in self.forwards:
            if job["recorded"] != job["attempts"]:
                yield f"job {job['id']} has {job['recorded']} records of {job['attempts']} attempts"
        for row in self._rows(ATTEMPTS):
            effects = self.effects[row["target"], row["event_id"], row["replay"]]
            seen = [effect for effect in effects if effect.attempt == row["number"]]
            if not seen:
                yield f"attempt {row['number']} at event {row['event_id']} never happened"
            elif row["outcome"] != (INTERRUPTED if seen[-1].cut else seen[-1].outcome):
                yield f"attempt {row['number']} is recorded as {row['outcome']}, not as it went"

    def ledger_is_the_ratchet(self) -> Iterator[str]:
        """Statuses and suppressions are what the set of applied events comes to, in any order."""
        statuses: dict[tuple[int, str, str], tuple[int, int, str, str | None]] = {}
        suppressed: dict[str, tuple[int, str]] = {}
        for event in self.events:
            if event["place"] is None:
                continue
            fact = self._fact(event)
            told, address = (fact.kind, fact.bounce_class), fact.recipient.lower()
            at = fact.occurred_at
            if at > event["received_at"] + DAY_MS:
                at = event["received_at"]
            if told in RANKS:
                key = event["source_id"], fact.message_id, address
                new = -RANKS[told], at, fact.kind.value, fact.bounce_class
                statuses[key] = min(statuses.get(key, new), new)
            if told in CAUSES:
                cause = at, CAUSES[told]
                suppressed[address] = min(suppressed.get(address, cause), cause)
        found = {tuple(row)[:3]: tuple(row)[3:] for row in self._rows(STATUSES)}
        wanted = {key: (kind, bounce, at) for key, (_, at, kind, bounce) in statuses.items()}
        if found != wanted:
            yield f"statuses are {found}, not {wanted}"
        kept = {row["address"]: (row["since"], row["reason"]) for row in self._rows(SUPPRESSIONS)}
        if kept != suppressed:
            yield f"suppressed are {kept}, not {suppressed}"

    def _fact(self, event: Any) -> Fact:
        return self.world.facts[bytes(event["content"])]

    @staticmethod
    def _name(job: Any) -> str:
        return str(job["target"]).removeprefix("forward:")
