"""The event list of the email API for agents, and the state of its messages.

`GET …/events?cursor=1487&limit=100` with a bearer token answers `data`, `next_cursor` and
`has_more`. The cursor is the project's sequence number of the last event given; it ascends without
gaps, unless the credential sees some inboxes only. When the events after a cursor are no longer
kept, the answer is 410, and what was missed can only be read from the messages themselves, inbox by
inbox. How that answer looks is not published: whatever names a message and a status is taken.
"""

import json
from collections.abc import Iterator, Mapping

from hookbox.errors import CursorInvalid, FeedError
from hookbox.model import BounceClass, Kind, SplitEvent
from hookbox.providers.feed import (
    Ask,
    Feed,
    Page,
    Place,
    Refusal,
    State,
    StatePage,
    States,
    refused,
)
from hookbox.providers.pages import of_content, opened, read_items, with_query
from hookbox.rules.digest import Content, digest_of, read_value, synthesised_key
from hookbox.rules.reading import addresses, at, key_text, plain_text

# What a polled event shares with the same event in a webhook: the envelopes differ.
OWN_CONTENT = ("id", "type", "data")
SEQUENCES = ("project_sequence", "sequence")
LIMIT_MAX = 100
CURSOR_DIGITS_MAX = 18

# What the ledger knows as an event when it was read from a message and never told.
STATE_READ = "message.state_read"
# `delayed` and `delivered` are documented; the others are the obvious names for the rest.
STATUSES: Mapping[str, Kind] = {
    "delayed": Kind.DEFERRED,
    "delivered": Kind.DELIVERED,
    "bounced": Kind.BOUNCED,
    "complained": Kind.COMPLAINED,
    "failed": Kind.FAILED,
    "rejected": Kind.REJECTED,
    "suppressed": Kind.REJECTED,
}


def own_digest(document: Mapping[str, object]) -> bytes:
    """The same for the webhook of an event and for the event in the list."""
    return digest_of({name: document.get(name) for name in OWN_CONTENT})


def spoilt(document: Mapping[str, object]) -> str:
    """Why nobody can act upon this event, whichever way it came; empty where they can."""
    recipient = at(document, ("data", "recipient"))
    try:
        str(recipient).encode()
    except UnicodeEncodeError:
        return "half a character stands in its recipient"
    return ""


def ask(place: Place) -> Ask:
    return Ask(
        url=with_query(place.url, cursor=place.cursor, limit=place.limit),
        headers={"authorization": f"Bearer {place.token}", "accept": "application/json"},
    )


def read(place: Place, body: bytes) -> Page:
    page = opened(body, ("data",))
    items = read_items(body, page.elements, of_content(_event))
    sequences = frozenset(_sequences(at(page.document, ("data",))))
    sent = at(page.document, ("next_cursor",))
    cursor = str(max(sequences)) if sent is None and sequences else sent
    cursor, fault = _followed(place.cursor, cursor)
    return Page(
        events=tuple(items.events),
        rotten=tuple(items.rotten),
        sequences=sequences,
        cursor=cursor,
        more=at(page.document, ("has_more",)) is True,
        fault=fault,
    )


def _followed(before: str | None, sent: object) -> tuple[str | None, str]:
    """The cursor to go on from, and what is wrong with the one that was sent."""
    number = _number(sent)
    if sent is not None and number is None:
        return None, "its next cursor is no number"
    was = _number(before)
    if number is not None and was is not None and number < was:
        return None, f"its cursor goes back from {was} to {number}"
    return None if number is None else str(number), ""


def _number(value: object) -> int | None:
    text = plain_text(value, CURSOR_DIGITS_MAX + 1) or ""
    fits = text.isascii() and text.isdigit() and len(text) <= CURSOR_DIGITS_MAX
    return int(text) if fits else None


def _event(content: Content) -> SplitEvent | str:
    document = content.value
    if not isinstance(document, dict):
        return "the event is JSON, but not an object"
    key = key_text(document.get("id"))
    if key is None:
        return "the event has no id"
    return spoilt(document) or SplitEvent(
        key=key,
        digest=own_digest(document),
        raw_kind=plain_text(document.get("type"), 200) or "",
    )


def _sequences(items: object) -> Iterator[int]:
    """The numbers that the items have, those of items that cannot be taken included."""
    for item in items if isinstance(items, list) else ():
        numbers = (_number(at(item, (name,))) for name in SEQUENCES)
        yield from (number for number in numbers if number is not None)


def refusal(answer: Refusal, now: int) -> FeedError:
    """A 400 is about the cursor where it says so; any other is about the request, and stops too."""
    found = refused(answer, now)
    if isinstance(found, CursorInvalid) and "invalid_cursor" not in str(found):
        return CursorInvalid(f"{found}, to a request as documented")
    return found


# -- the state of messages -----------------------------------------------------------------------


def read_states(body: bytes) -> StatePage:
    document = read_value(body)
    messages = at(document, ("data",))
    states = [
        state
        for message in (messages if isinstance(messages, list) else [])
        for state in _states(message)
    ]
    more = at(document, ("has_more",)) is True
    cursor = plain_text(at(document, ("next_cursor",)), 500)
    return StatePage(states=tuple(states), cursor=cursor if more else None)


def _states(message: object) -> Iterator[State]:
    """Each recipient's; a message that lists none has one status for its only recipient."""
    message_id = key_text(at(message, ("id",))) or key_text(at(message, ("message_id",)))
    if message_id is None:
        return
    listed = at(message, ("recipients",))
    entries = listed if isinstance(listed, list) else [message]
    for entry in entries:
        named = addresses(entry) or addresses(at(entry, ("recipient",)))
        word = plain_text(at(entry, ("status",)), 100) or ""
        if len(named) == 1 and word in STATUSES:
            yield _state(message_id, named[0], word)


def _state(message_id: str, recipient: str, word: str) -> State:
    about = {"message_id": message_id, "recipient": recipient, "status": word}
    key = f"read_{synthesised_key(message_id, recipient.lower(), word)[2:34]}"
    document = {"id": key, "type": STATE_READ, "data": about}
    kind = STATUSES[word]
    return State(
        message_id=message_id,
        recipient=recipient,
        kind=kind,
        bounce_class=BounceClass.UNDETERMINED if kind is Kind.BOUNCED else None,
        event=SplitEvent(
            key=key,
            digest=own_digest(document),
            raw_kind=STATE_READ,
            content=json.dumps(document).encode(),
            synthesised=True,
        ),
    )


FEED = Feed(
    ask=ask,
    read=read,
    refused=refusal,
    limit_max=LIMIT_MAX,
    sequential=True,
    states=States(ask=ask, read=read_states),
)
