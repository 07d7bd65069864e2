"""What is done to a life: the incidents of the plan, then calm until nothing moves any more."""

from functools import partial

from hookbox.errors import HookboxError
from hookbox.flows.attempts import Finished, record
from hookbox.flows.settlement import Done, Settlement, settle
from hookbox.model import Attempt, Kind, Notification, Verdict
from hookbox.rules.suppression import Budget
from hookbox.store import forwarding, jobs, lanes, quarantine, reprocess
from hookbox.store.connections import Row, Transaction
from hookbox.store.decisions import Word
from hookbox.store.jobs import Job, Lease
from hookbox.store.ledger import Applied
from tests.sim.life import Life
from tests.sim.plan import Incident
from tests.sim.targets import SCHEDULE_S
from tests.sim.timeline import Crash
from tests.sim.world import World

LOOK_EVERY_S = 20.0
SLOW_FOR_S = 20.0  # a disk
# The longest honest wait of a lane is what a destination may ask for; every try may wait so long.
QUIET_WITHIN_S = 86_400 * 1.1 + 3_600

BUSY = "SELECT 1 FROM job WHERE state IN ('available', 'running') LIMIT 1"
RUNNING = """
SELECT id, event_id, target, attempts, replay, spared, instance, token FROM job
WHERE state = 'running' ORDER BY id
"""
EVENT_IDS = "SELECT id FROM event ORDER BY id"
UNRESOLVED = "SELECT id, event_id FROM quarantine_entry WHERE resolved_at IS NULL ORDER BY id"
FINISHED_FOR = """
SELECT target FROM job WHERE event_id = ? AND target LIKE 'forward:%'
GROUP BY target HAVING count(*) = count(finished_at)
"""


async def torment(life: Life) -> None:
    """Ends the life, or sees it end."""
    world, clock = life.world, life.clock
    for incident in world.plan.incidents[world.incidents_done :]:
        await clock.sleep(incident.at - clock.monotonic())
        world.incidents_done += 1
        await _Incidents(life).befall(incident)
    await clock.sleep(world.plan.calm_at - clock.monotonic())
    await _calm(life)
    await _until_quiet(life)


async def _calm(life: Life) -> None:
    """All is well again, but for what the operator wants to stay as it is."""
    world, plan = life.world, life.world.plan
    world.disk.calm()
    world.deadly.clear()
    world.sources_away.clear()
    world.destinations_away = {plan.stays_away} - {""}
    while True:
        try:
            await life.adopt()
            await resume(life, *(name for name in plan.destinations if name != plan.stays_paused))
            if plan.stays_paused:
                await pause(life, plan.stays_paused)
            break
        except HookboxError:
            await life.clock.sleep(5)
    world.note("calm")


async def _until_quiet(life: Life) -> None:
    world, clock = life.world, life.clock
    while world.posts_due or world.disk.connection.execute(BUSY).fetchone():
        if clock.monotonic() > world.plan.calm_at + QUIET_WITHIN_S:
            world.breach("what is due is not done")
        await clock.sleep(LOOK_EVERY_S)
    await clock.sleep(5.0)  # whoever is late may still try
    life.ending.set_result("quiet")


async def pause(life: Life, name: str) -> None:
    """The operator stops a destination."""
    target = forwarding.target_of(name)
    await life.writer.write(partial(lanes.pause, target=target, word=_word(life)))
    life.outbox.recall(target)
    life.world.paused.add(name)
    await life.writer.write(partial(forwarding.hold, target=target, outcome=forwarding.PAUSED))


async def resume(life: Life, *names: str) -> None:
    """The operator lets destinations go on, those that there are."""
    world = life.world
    world.paused.difference_update(set(names) - world.destinations_away)

    def work(transaction: Transaction) -> list[str]:
        here = [name for name in names if name not in world.destinations_away]
        targets = [forwarding.target_of(name) for name in here]
        resumed = [target for target in targets if lanes.resume(transaction, target)]
        for target in resumed:
            forwarding.release(transaction, target)
        return resumed

    life.outbox.wake(await life.writer.write(work))


def unfinished(world: World) -> list[Row]:
    """What the dead left under way."""
    return world.disk.connection.execute(RUNNING).fetchall()


def late_finishers(life: Life, left: list[Row]) -> None:
    """What if the dead were not quite dead?"""
    for row in left[:2]:
        life.beside(_finish_late(life, Lease(instance=row["instance"], token=row["token"]), row))


class _Incidents:
    """What can befall a life."""

    def __init__(self, life: Life) -> None:
        self.life, self.world = life, life.world

    async def befall(self, incident: Incident) -> None:
        self.world.note(f"{incident.what} {incident.name} {incident.amount or ''}")
        self.world.seen[incident.what] += 1
        try:
            await getattr(self, f"_{incident.what.replace(' ', '_')}")(incident)
        except HookboxError as error:
            self.world.note(f"{incident.what} comes to nothing: {error}")

    async def _crash(self, _: Incident) -> None:
        raise Crash

    async def _crash_at_a_commit(self, incident: Incident) -> None:
        self.world.disk.crash_at_commit(round(incident.amount), incident.name)

    async def _crash_at_an_effect(self, incident: Incident) -> None:
        self.world.deadly[f"{incident.name} of an effect"] = round(incident.amount)

    async def _crash_at_an_answer(self, _: Incident) -> None:
        self.world.deadly["answer"] = 1

    async def _clock_step(self, incident: Incident) -> None:
        self.world.clock.step(incident.amount)

    async def _store_trouble(self, incident: Incident) -> None:
        self.world.disk.fail(incident.name, self.life.clock.monotonic() + incident.amount)

    async def _slow_disk(self, incident: Incident) -> None:
        self.world.disk.be_slow(incident.amount, self.life.clock.monotonic() + SLOW_FOR_S)

    async def _stop(self, incident: Incident) -> None:
        self.world.down_s = incident.amount
        self.life.ending.set_result("asked to")
        await self.life.clock.sleep(60)

    async def _reload(self, _: Incident) -> None:
        await self.life.adopt()

    async def _away(self, incident: Incident) -> None:
        self.world.destinations_away.add(incident.name)
        await self.life.adopt()

    async def _back(self, incident: Incident) -> None:
        self.world.destinations_away.discard(incident.name)
        await self.life.adopt()

    async def _source_away(self, incident: Incident) -> None:
        self.world.sources_away.add(incident.name)
        await self.life.adopt()

    async def _source_back(self, incident: Incident) -> None:
        self.world.sources_away.discard(incident.name)
        await self.life.adopt()

    async def _pause(self, incident: Incident) -> None:
        await pause(self.life, incident.name)

    async def _resume(self, incident: Incident) -> None:
        await resume(self.life, incident.name)

    async def _replay(self, _: Incident) -> None:
        """An event is applied again, and goes on again to where it was brought before."""
        rows = self.world.disk.connection.execute(EVENT_IDS).fetchall()
        if rows:
            event_id = self.world.rng.choice(rows)["id"]
            word = _word(self.life)
            await self.life.writer.write(
                lambda t: self._asked_again(event_id, reprocess.replay(t, event_id, word))
            )

    async def _accept(self, _: Incident) -> None:
        rows = self.world.disk.connection.execute(UNRESOLVED).fetchall()
        if rows:
            entry_id, now = self.world.rng.choice(rows)["id"], self.life.clock.now()
            await self.life.writer.write(
                lambda t: self._asked_again(quarantine.accept(t, entry_id, now), 0)
            )

    def _asked_again(self, event_id: int, replay: int) -> None:
        """What is brought again, at most, and by this replay for certain."""
        self.world.replays[event_id] += 1
        rows = self.world.disk.connection.execute(FINISHED_FOR, (event_id,))
        self.world.owed += [(event_id, replay, row["target"]) for row in rows if replay]


async def _finish_late(life: Life, lease: Lease, row: Row) -> None:
    """Somebody of an earlier life records what it did, long after its job was taken back."""
    world = life.world
    await life.clock.sleep(world.rng.uniform(0, 30))
    job = Job(
        id=row["id"],
        event_id=row["event_id"],
        attempts=row["attempts"],
        replay=row["replay"],
        spared=row["spared"],
    )

    def work(transaction: Transaction) -> None:
        before = transaction.total_changes
        if row["target"] == jobs.APPLY:
            settle(transaction, _claims(job, lease), life.clock.now(), Budget())
        else:
            verdict = world.rng.choice(list(Verdict))
            done = Finished(
                job=job,
                lease=lease,
                attempt=Attempt(verdict=verdict, outcome="late"),
                started_at=life.clock.now(),
                took_ms=1,
            )
            record(transaction, done, SCHEDULE_S, life.clock.now())
        jobs.give_back(transaction, [job.id], lease)
        if transaction.total_changes != before:
            world.breach(f"a late finisher changed something about job {job.id}")

    world.note(f"a late finisher tries job {job.id}")
    world.seen["late finishers"] += 1
    try:
        await life.writer.write(work)
    except HookboxError as error:
        world.note(f"the late finisher comes to nothing: {error}")


def _claims(job: Job, lease: Lease) -> Settlement:
    told = Notification(kind=Kind.COMPLAINED, recipient="late@example.com", occurred_at=1)
    applied = Applied(event_id=job.event_id, source_id=1, notifications=(told,))
    return Settlement(lease, applied=[Done(job=job, applied=applied, onward=())])


def _word(life: Life) -> Word:
    return Word(who="eve", reason="simulated", at=life.clock.now())
