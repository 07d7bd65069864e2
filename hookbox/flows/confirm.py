"""Confirm: say yes, once, to a topic that wants to send here.

The offer was proved and its topic is listed; the call goes to the topic's own host, and is made of
the topic's name and the offer's token. The offer's own URL was compared, and is never visited.
"""

import re
from functools import partial

from hookbox.errors import NetError, Refused
from hookbox.flows.lane import Lane
from hookbox.model import Attempt, StoredEvent, Verdict
from hookbox.net import Net
from hookbox.rules.reading import plain_text
from hookbox.rules.sns import confirm_url
from hookbox.store.events import by_id
from hookbox.store.jobs import Job

TARGET = "confirm"
# A token lives for two or three days (the documents disagree). Nothing comes before it is used.
SCHEDULE_S = (5.0, 30.0, 120.0, 600.0, 1800.0, 3600.0, *[14_400.0] * 11)

# AWS says so with a 400: too many calls, which is no answer to the question.
THROTTLED = re.compile(rb"<Code>Throttl")
MESSAGE = re.compile(rb"<Message>([^<]{1,400})</Message>")


def lane(net: Net) -> Lane[StoredEvent]:
    """The lane of confirmations."""
    return Lane(
        target=TARGET,
        read=lambda transaction, ids: {event.id: event for event in by_id(transaction, ids)},
        attempt=partial(confirm, net),
        schedule_s=SCHEDULE_S,
    )


async def confirm(net: Net, event: StoredEvent, job: Job) -> Attempt:
    """One call. What the topic's host refuses stays so: the token is old, or the topic gone."""
    try:
        url = confirm_url(event.content)
    except Refused as refusal:
        return Attempt(verdict=Verdict.NEVER, outcome="no_offer", excerpt=str(refusal))
    try:
        answer = await net.request("GET", url)
    except NetError as error:
        return Attempt(verdict=Verdict.LATER, outcome="no_answer", excerpt=str(error))
    if answer.status == 200:
        return Attempt(verdict=Verdict.DONE, outcome="confirmed", status=200)
    final = 400 <= answer.status < 500 and answer.status not in (408, 429)
    return Attempt(
        verdict=Verdict.NEVER if final and not THROTTLED.search(answer.body) else Verdict.LATER,
        outcome="not_confirmed",
        status=answer.status,
        excerpt=_said(answer.body),
    )


def _said(body: bytes) -> str:
    found = MESSAGE.search(body)
    return plain_text(found[1].decode("utf-8", "replace") if found else "", 200) or ""
