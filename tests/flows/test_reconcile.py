"""When events are gone for good, what the sender itself knows is read and recorded."""

import json

from hookbox.flows.polling import End
from tests.flows.polled import PolledBox
from tests.upstream import Event, event, telling

READ = "/v1/projects/p1/inboxes/{inbox_id}/messages"


def queued(number: int, inbox: str) -> Event:
    about = {"message_id": f"msg_{number}", "inbox_id": inbox, "thread_id": "t"}
    return {**event(number), "id": f"evt_q{number}", "type": "message.queued", "data": about}


def message(number: int, **statuses: str) -> object:
    """A message as the sender shows it: `ann="bounced"` is the status of ann@example.com."""
    recipients = [{"email": f"{who}@example.com", "status": s} for who, s in statuses.items()]
    return {"id": f"msg_{number}", "recipients": recipients}


async def expire(polled: PolledBox, *known: Event) -> None:
    """The box knows these; then its cursor expires."""
    polled.upstream.add(*known)
    await polled.poll()
    await polled.apply()
    polled.upstream.events.clear()
    polled.upstream.script = [telling("410 Gone", "cursor_expired")]


def reading(polled: PolledBox) -> None:
    polled.change(read_url=f"http://127.0.0.1:{polled.upstream.port}{READ}")


async def test_what_the_sender_knows_more_of_becomes_an_event(polled: PolledBox) -> None:
    """It is applied like any other: status, suppression, and a rebuild that comes to the same."""
    told = event(2, recipient="ann@example.com", message_id="msg_1", status="delivered")
    await expire(polled, queued(1, "inbox/1"), told)
    shown = [message(1, ann="delivered", bob="complained"), message(5, cy="bounced")]
    polled.upstream.other = lambda _: json.dumps({"data": shown, "has_more": False}).encode()
    reading(polled)
    done = await polled.poll()
    assert (done.end, done.reconciled, done.told) == (End.CAUGHT_UP, 2, "")
    assert polled.gaps() == []
    assert polled.gaps(opened=False) == [(3, None, "cursor_expired")]
    assert polled.upstream.paths[-1] == READ.format(inbox_id="inbox%2F1")
    await polled.apply()
    recipients = "SELECT message_id, recipient, status FROM recipients ORDER BY recipient"
    assert polled.rows(recipients) == [
        ("msg_1", "ann@example.com", "delivered"),
        ("msg_1", "bob@example.com", "complained"),
        ("msg_5", "cy@example.com", "bounced"),
    ]
    assert polled.rows("SELECT address FROM suppressions") == [("bob@example.com",)]


async def test_same_state_is_recorded_once(polled: PolledBox) -> None:
    await expire(polled, queued(1, "i1"))
    shown = [message(1, ann="complained")]
    polled.upstream.other = lambda _: json.dumps({"data": shown}).encode()
    reading(polled)
    assert (await polled.poll()).reconciled == 1
    polled.upstream.script = [telling("410 Gone", "cursor_expired")]
    await polled.poll("7")
    assert polled.rows("SELECT count(*) FROM events WHERE raw_kind = 'message.state_read'") == [
        (1,)
    ]


async def test_inbox_that_cannot_be_read_keeps_the_gap_open(polled: PolledBox) -> None:
    """And the next round goes on after those that were."""
    await expire(polled, queued(1, "i1"), queued(2, "i2"))
    nothing = json.dumps({"data": []}).encode()
    polled.upstream.other = lambda path: nothing if "i1" in path else b""
    reading(polled)
    done = await polled.poll()
    assert (done.end, polled.gaps()) == (End.CAUGHT_UP, [(3, None, "cursor_expired")])
    assert "inbox i2 cannot be read" in done.told
    polled.upstream.other = lambda _: nothing
    polled.upstream.paths.clear()
    assert (await polled.poll()).told == ""
    assert [path for path in polled.upstream.paths if "inboxes" in path] == [
        READ.format(inbox_id="i2")
    ]
    assert polled.gaps() == []


async def test_without_an_address_to_read_a_person_is_told_what_to_do(polled: PolledBox) -> None:
    await expire(polled, queued(1, "i1"))
    done = await polled.poll()
    assert done.end is End.CAUGHT_UP
    assert "hookbox poll agent --close-gaps" in done.told
