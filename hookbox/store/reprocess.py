"""A second chance for an event, on a person's word: by the sender's own replay, or by ours."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hookbox.errors import OperatorError
from hookbox.store import decisions, forwarding, jobs, notifications
from hookbox.store.connections import Row, Transaction
from hookbox.store.decisions import Verb, Word

BY_KEY = """
SELECT e.id, e.key, e.state
FROM event AS e JOIN source AS s ON s.id = e.source_id
WHERE s.name = :source AND e.key = :key
"""
BY_ID = """
SELECT
  e.id, e.state,
  coalesce(e.content, substr(d.body, e.slice_start + 1, e.slice_length), d.body) IS NULL AS gone,
  (SELECT max(q.id) FROM quarantine_entry AS q
   WHERE q.event_id = e.id AND q.resolved_at IS NULL) AS entry_id
FROM event AS e JOIN delivery AS d ON d.id = e.delivery_id
WHERE e.id = :id
"""
APPLY_ONLY = "apply"  # in place of a destination's name: apply the event, bring it nowhere

RETIRE = "UPDATE event SET key = :retired, forgotten = 1 WHERE id = :id"
MARK_PENDING = "UPDATE event SET state = 'pending' WHERE id = :id"


@dataclass(frozen=True, slots=True)
class Replays:
    """What was queued (event_id, target, replay) and what could not be (event_id, why)."""

    queued: list[dict[str, Any]] = field(default_factory=list)
    refused: list[dict[str, Any]] = field(default_factory=list)


def forget(transaction: Transaction, source: str, key: str, word: Word) -> int:
    """Let the sender's own replay of this event be news; the event's id.

    The event stays with all that it led to, under a retired key. Raises OperatorError when there is
    none.
    """
    row = transaction.execute(BY_KEY, {"source": source, "key": key}).fetchone()
    if row is None:
        raise OperatorError(f"source {source} has no event with the key {key}")
    event_id = int(row["id"])
    decisions.record(transaction, Verb.FORGET, word, event_id=event_id)
    transaction.execute(RETIRE, {"id": event_id, "retired": f"{key}~forgotten-{event_id}"})
    notifications.disclaim(transaction, event_id)
    return event_id


def replay(transaction: Transaction, event_id: int, word: Word, *, hands_on: bool = True) -> int:
    """Have an event applied once more, and brought once more to where it then goes, unless it is
    not to be handed on; the number of the replay.

    Raises OperatorError when that cannot be.
    """
    _check(transaction.execute(BY_ID, {"id": event_id}).fetchone(), event_id)
    state = jobs.unfinished(transaction, event_id, jobs.APPLY)
    if state is not None:
        doing = "is being worked on" if state == "running" else "is queued already"
        raise OperatorError(f"event {event_id} {doing}; it can be replayed when that is done")
    decisions.record(transaction, Verb.REPLAY, word, event_id=event_id)
    transaction.execute(MARK_PENDING, {"id": event_id})
    return jobs.replay(transaction, event_id, jobs.APPLY, word.at, hands_on=hands_on)


def bring(transaction: Transaction, event_id: int, destination: str, word: Word) -> int:
    """Have an event brought to one destination once more; the number of the replay.

    Raises OperatorError when that cannot be.
    """
    event = transaction.execute(BY_ID, {"id": event_id}).fetchone()
    if event is None:
        raise _no_event(event_id)
    if event["state"] != "applied":
        raise OperatorError(
            f"event {event_id} is {event['state']}; it can be brought anywhere once it is applied"
        )
    target = forwarding.target_of(destination)
    state = jobs.unfinished(transaction, event_id, target)
    if state is not None:
        doing = "is being brought" if state == "running" else "is still to be brought"
        raise OperatorError(
            f"event {event_id} {doing} to {destination}; see: hookbox outbox --to {destination}"
        )
    decisions.record(transaction, Verb.REPLAY, word, event_id=event_id)
    return jobs.replay(transaction, event_id, target, word.at)


def replay_each(
    transaction: Transaction, event_ids: Sequence[int], to: Sequence[str], word: Word
) -> Replays:
    """Replay many events. Without `to` each is applied again and goes on from there; `to` names
    destinations that alone get it, or APPLY_ONLY.
    """
    replays = Replays()
    for event_id in event_ids:
        for place in to or ("",):
            applied = place in ("", APPLY_ONLY)
            try:
                if applied:
                    number = replay(transaction, event_id, word, hands_on=not place)
                else:
                    number = bring(transaction, event_id, place, word)
            except OperatorError as error:
                replays.refused.append({"event_id": event_id, "why": str(error)})
                continue
            target = jobs.APPLY if applied else forwarding.target_of(place)
            replays.queued.append({"event_id": event_id, "target": target, "replay": number})
    return replays


def _no_event(event_id: int) -> OperatorError:
    return OperatorError(f"no event {event_id}; see: hookbox events list")


def _check(event: Row | None, event_id: int) -> None:
    if event is None:
        raise _no_event(event_id)
    if event["entry_id"] is not None:
        raise OperatorError(
            f"event {event_id} is in quarantine; "
            f"let it through with: hookbox quarantine accept {event['entry_id']}"
        )
    if event["gone"]:
        raise OperatorError(
            f"the content of event {event_id} is no longer kept, so it cannot be read again"
        )
