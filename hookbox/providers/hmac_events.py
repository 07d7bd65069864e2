"""Taking a proved delivery apart by the scheme that its source describes."""

import json
from collections.abc import Callable
from dataclasses import replace

from hookbox.errors import Unintelligible
from hookbox.model import Handshake, Rotten, Split, SplitEvent
from hookbox.providers.contract import VerifiedDelivery
from hookbox.providers.identities import identify
from hookbox.providers.places import Where
from hookbox.providers.plain import raw_kind
from hookbox.providers.schemes import Challenge, Scheme
from hookbox.providers.single import header_reader
from hookbox.rules.digest import Content, Unreadable, digest_of, read_json, read_value
from hookbox.rules.elements import Element, read_elements
from hookbox.rules.encoding import plain
from hookbox.rules.forms import flat_object
from hookbox.rules.reading import at


def split(scheme: Scheme, verified: VerifiedDelivery) -> Split | Handshake:
    """One event, or those of a batch, or a challenge that wants to be answered."""
    delivery = verified.delivery
    header = header_reader(delivery)
    try:
        body = plain(delivery.headers, delivery.body)
        if scheme.challenge and (handshake := _handshake(scheme.challenge, read_value(body))):
            return handshake
        if scheme.items is not None:
            return _batch(scheme, read_elements(body, scheme.items), body, verified)
        content, kept = _form(body) if scheme.form else (read_json(body), body)
    except (Unreadable, Unintelligible) as error:
        known = identify(scheme.identity, None, header)
        raise Unintelligible(str(error), key=known.key if known else "") from error
    event = _event(scheme, content, header)
    if isinstance(event, str):
        raise Unintelligible(event)
    if kept is not delivery.body:
        event = replace(event, content=kept)
    return Split(events=(event,))


def _handshake(challenge: Challenge, document: object) -> Handshake | None:
    echo = at(document, challenge.echo)
    if at(document, challenge.when) != challenge.equals or not isinstance(echo, str):
        return None
    return Handshake(answer=echo.encode("utf-8", "replace"))


def _form(body: bytes) -> tuple[Content, bytes]:
    """A form's fields as one flat object, which is kept in place of the form."""
    document = flat_object(body)
    return Content(document, digest_of(document)), json.dumps(document).encode()


def _batch(
    scheme: Scheme, elements: list[Element], body: bytes, verified: VerifiedDelivery
) -> Split:
    header = header_reader(verified.delivery)
    inflated = body is not verified.delivery.body
    events, rotten = [], []
    for element in elements:
        own = body[element.start : element.end]
        event = _event(scheme, element.content, header) if element.content else element.fault
        if isinstance(event, str):
            rotten.append(Rotten(reason=event, content=own))
        elif inflated:
            events.append(replace(event, content=own))
        else:
            events.append(replace(event, start=element.start, end=element.end))
    return Split(events=tuple(events), rotten=tuple(rotten))


def listed(scheme: Scheme, content: Content, event_id: str | None) -> SplitEvent | str:
    """An event of the sender's list. Where a webhook has its id in a header, the list says it."""
    identity = scheme.identity
    places = identity.id.places() if identity.id and identity.stable else ()
    sent = event_id if any(place.where is Where.HEADER for place in places) else None
    if sent is None:
        return _event(scheme, content, lambda _: None)
    if not isinstance(content.value, dict):
        return "the event is JSON, but not an object"
    kind = raw_kind(scheme.map, content.value, lambda _: None)
    return SplitEvent(key=sent, digest=content.digest, raw_kind=kind)


def _event(
    scheme: Scheme, content: Content, header: Callable[[str], str | None]
) -> SplitEvent | str:
    """The event that this content is, or why it is none."""
    if not isinstance(content.value, dict):
        return "the event is JSON, but not an object"
    known = identify(scheme.identity, content.value, header)
    if known is None:
        return "the event has no id, and nothing to make one from"
    return SplitEvent(
        key=known.key,
        digest=content.digest,
        raw_kind=raw_kind(scheme.map, content.value, header),
        synthesised=known.synthesised,
    )
