"""Deliveries that hold exactly one event, as one JSON object: what most senders post."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hookbox.errors import Unintelligible
from hookbox.model import Delivery, Split, SplitEvent
from hookbox.providers.contract import VerifiedDelivery
from hookbox.rules.digest import Unreadable, read_json
from hookbox.rules.encoding import plain
from hookbox.rules.headers import one


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A proved body, read. `content` is set when its bytes are not those that were received."""

    document: Mapping[str, object]
    digest: bytes
    content: bytes | None


def opened(verified: VerifiedDelivery, key: str = "") -> Opened:
    """The one object of a delivery. Unintelligible, with the key where a header gives it."""
    delivery = verified.delivery
    try:
        body = plain(delivery.headers, delivery.body)
        content = read_json(body)
    except (Unreadable, Unintelligible) as error:
        raise Unintelligible(str(error), key=key) from error
    if not isinstance(content.value, dict):
        raise Unintelligible("the body is JSON, but not an object", key=key)
    return Opened(
        document=content.value,
        digest=content.digest,
        content=None if body is delivery.body else body,
    )


def one_event(found: Opened, key: str, raw_kind: str) -> Split:
    return Split(
        events=(SplitEvent(key=key, digest=found.digest, raw_kind=raw_kind, content=found.content),)
    )


def header_reader(delivery: Delivery) -> Callable[[str], str | None]:
    """Headers of a delivery whose `verify` has refused those that are ambiguous."""

    def header(name: str) -> str | None:
        value = one(delivery.headers, name)
        return None if value is None else value.decode("ascii")

    return header
