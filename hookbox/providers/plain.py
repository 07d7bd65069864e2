"""Plain reading: what an event says, for senders whose words are not in a file of their own.

Without a `[source.NAME.map]` the kind is the last word of `type` when that is one of ours, the
recipient is the only address in `data.recipient`, `data.email` or `data.to`, and so on. Each line
of the map replaces one of these places:

    [source.NAME.map]
    kind = "/event"                  # a JSON pointer or `header:NAME`; of several (a list) the
    recipient = "/message/rcpt"      # first that holds something
    message_id = "/message/id"
    occurred_at = ["/at", "/created"]
    bounce_class = "/bounce/class"   # permanent, hard / transient, soft / block; else undetermined
    types = { hardfail = "bounced/hard", opened_mail = "opened", "*" = "unknown" }

`types` turns the sender's words into hookbox's, a bounce with its class where the word alone says
it; `"*"` stands for every word that is not listed,
and without it the plain words are tried after the list.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from hookbox.errors import ConfigError
from hookbox.model import BounceClass, Kind, Notification, RejectReason, StoredEvent, TimeSource
from hookbox.providers.contract import Provider, Simulation, Table, no_options
from hookbox.providers.places import KEPT, Place, Where, parsed_place
from hookbox.rules.digest import value_or_none
from hookbox.rules.instants import written
from hookbox.rules.reading import addresses, instant, parsed_pointer, placed, plain_text

# The words of Standard Webhooks and Svix senders that are not simply one of our kinds.
WORDS: Mapping[str, Kind] = {kind.value: kind for kind in Kind} | {
    "delivery_delayed": Kind.DEFERRED,
    "ping": Kind.CONTROL,
    "received": Kind.INBOUND,
    "scheduled": Kind.QUEUED,
    "suppressed": Kind.REJECTED,
    "test": Kind.CONTROL,
}
LAST_WORD = re.compile(r"[A-Za-z_]+\Z")

CLASSES: Mapping[str, BounceClass] = {
    "permanent": BounceClass.HARD,
    "hard": BounceClass.HARD,
    "transient": BounceClass.SOFT,
    "soft": BounceClass.SOFT,
    "block": BounceClass.BLOCK,
    "blocked": BounceClass.BLOCK,
}

REASONS: Mapping[Kind, RejectReason] = {
    Kind.BOUNCED: RejectReason.BOUNCED,
    Kind.COMPLAINED: RejectReason.SPAM,
    Kind.REJECTED: RejectReason.OTHER,
    Kind.UNSUBSCRIBED: RejectReason.UNSUBSCRIBED,
}

Places = tuple[Place, ...]


def pointers(*texts: str) -> Places:
    return tuple(Place(Where.JSON, pointer=parsed_pointer(text)) for text in texts)


DIAGNOSTICS = pointers("/data/bounce/message", "/data/reason", "/data/error")


KIND = pointers("/type")
RECIPIENT = pointers("/data/recipient", "/data/email", "/data/to")
MESSAGE_ID = pointers("/data/message_id", "/data/email_id")
OCCURRED_AT = pointers("/created_at", "/timestamp")
BOUNCE_CLASS = pointers("/data/bounce/type")


@dataclass(frozen=True, slots=True, kw_only=True)
class Map:
    """Where the facts of an event stand, and what the sender's words mean."""

    kind: Places = KIND
    recipient: Places = RECIPIENT
    message_id: Places = MESSAGE_ID
    occurred_at: Places = OCCURRED_AT
    bounce_class: Places = BOUNCE_CLASS
    types: Mapping[str, Kind] = field(default_factory=dict)
    classes: Mapping[str, BounceClass] = field(default_factory=dict)

    def headers(self) -> frozenset[str]:
        """The headers that must be kept with an event to read it later."""
        groups = (self.kind, self.recipient, self.message_id, self.occurred_at, self.bounce_class)
        return frozenset(
            place.name for group in groups for place in group if place.where is Where.HEADER
        )

    def kinds(self) -> tuple[Kind, ...]:
        """The kinds that an event can be read as."""
        return tuple(kind for kind in Kind if "*" not in self.types or kind in self.types.values())


PLAIN = Map()
PLACES = ("kind", "recipient", "message_id", "occurred_at", "bounce_class")


def raw_kind(mapped: Map, document: object, header: Callable[[str], object]) -> str:
    """The sender's own word for what happened."""
    return plain_text(_first(mapped.kind, document, header), 200) or ""


def reader(mapped: Map) -> Callable[[StoredEvent], tuple[Notification, ...]]:
    """`normalize` for a source with this map."""

    def normalize(event: StoredEvent) -> tuple[Notification, ...]:
        document = value_or_none(event.content)
        return (read(mapped, document, event.headers.get),)

    return normalize


def read(mapped: Map, document: object, header: Callable[[str], object]) -> Notification:
    """The one notification that an event makes, whatever is missing from it."""
    word = raw_kind(mapped, document, header)
    kind = kind_of(mapped.types, word)
    found = addresses(_first(mapped.recipient, document, header))
    occurred_at = instant(_first(mapped.occurred_at, document, header))
    diagnostic = plain_text(_first(DIAGNOSTICS, document, header))
    return Notification(
        kind=kind,
        recipient=found[0] if len(found) == 1 else None,
        ambiguous=len(found) > 1,
        candidates=found if len(found) > 1 else (),
        bounce_class=_class(mapped, word, document, header) if kind is Kind.BOUNCED else None,
        reject_reason=REASONS.get(kind),
        occurred_at=occurred_at,
        time_source=TimeSource.RECEIVED if occurred_at is None else TimeSource.EVENT,
        message_id=plain_text(_first(mapped.message_id, document, header), 500),
        extras={} if diagnostic is None else {"diagnostic": diagnostic},
    )


def kind_of(types: Mapping[str, Kind], word: str) -> Kind:
    """What the sender's word means: by the source's list, else by the last word in it."""
    if word in types:
        return types[word]
    if "*" in types:
        return types["*"]
    last = LAST_WORD.search(word)
    return WORDS.get(last[0].lower(), Kind.UNKNOWN) if last else Kind.UNKNOWN


def _class(
    mapped: Map, kind_word: str, document: object, header: Callable[[str], object]
) -> BounceClass:
    if kind_word in mapped.classes:
        return mapped.classes[kind_word]
    word = plain_text(_first(mapped.bounce_class, document, header)) or ""
    return CLASSES.get(word.strip().lower(), BounceClass.UNDETERMINED)


def _first(places: Places, document: object, header: Callable[[str], object]) -> object:
    """What the first of these places holds that holds anything."""
    for place in places:
        value = place.value(document, header)
        if value not in (None, "", []):
            return value
    return None


def parsed_map(table: object, base: Map = PLAIN) -> Map:
    """The map of a source: the base with the lines that the table replaces."""
    if not isinstance(table, Mapping):
        raise ConfigError("the map is a table", where="map", mend='write `map.kind = "/event"`')
    for name in table:
        if name not in (*PLACES, "types"):
            raise ConfigError(
                f"a map has no line `{name}`",
                where=f"map.{name}",
                mend=f"it has: {', '.join(PLACES)}, types",
            )
    places = {name: _parsed_places(f"map.{name}", table[name]) for name in PLACES if name in table}
    types, classes = _parsed_types(table.get("types", {}))
    types = {**base.types, **types}
    return replace(base, **places, types=types, classes={**base.classes, **classes})


def _parsed_places(setting: str, value: object) -> Places:
    texts = value if isinstance(value, list) else [value]
    return tuple(parsed_place(setting, text, KEPT) for text in texts)


def _parsed_types(table: object) -> tuple[dict[str, Kind], dict[str, BounceClass]]:
    """What each word means: its kind, and the class of a bounce where the word says that, too."""
    if not isinstance(table, Mapping):
        raise ConfigError("types is a table", where="map.types", mend='{ hardfail = "bounced" }')
    types, classes = {}, {}
    for word, meaning in table.items():
        kind, slash, bounce_class = str(meaning).partition("/")
        bounced = kind == Kind.BOUNCED and bounce_class in tuple(BounceClass)
        if kind not in tuple(Kind) or (slash and not bounced):
            of_bounces = ", ".join(f"bounced/{each}" for each in BounceClass)
            raise ConfigError(
                f"`{meaning}` is no kind of event",
                where=f"map.types.{word}",
                mend=f"the kinds are: {', '.join(Kind)}; and {of_bounces}",
            )
        types[str(word)] = Kind(kind)
        if slash:
            classes[str(word)] = BounceClass(bounce_class)
    return types, classes


def with_map(
    mapped: Callable[[Provider, Map], Provider], provider: Provider, table: Table
) -> Provider:
    """`configure` for providers whose only setting is the map."""
    if "map" not in table:
        return no_options(provider, table)
    no_options(provider, {name: value for name, value in table.items() if name != "map"})
    return mapped(provider, parsed_map(table["map"]))


# -- simulation ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Specimen:
    """An event that reads as wanted, before anybody signed it."""

    document: object
    headers: Mapping[str, str]

    def body(self) -> bytes:
        return json.dumps(self.document).encode()


def specimen(mapped: Map, wanted: Simulation, document: object = None) -> Specimen:
    """An event of the wanted kind for the wanted recipient, with every fact where the map says."""
    facts: list[tuple[Places, object]] = [
        (mapped.kind, _word_for(mapped.types, wanted.kind)),
        (mapped.occurred_at, written(wanted.now)),
    ]
    if wanted.kind not in (Kind.ACCOUNT, Kind.CONTROL):
        facts += [(mapped.recipient, wanted.to), (mapped.message_id, f"msg_{wanted.id}")]
    if wanted.kind is Kind.BOUNCED:
        facts.append((mapped.bounce_class, "Permanent"))
    headers = {}
    for places, value in facts:
        if places and places[0].where is Where.HEADER:
            headers[places[0].name] = str(value)
        elif places:
            document = placed(document, places[0].pointer, value)
    return Specimen(document=document, headers=headers)


def _word_for(types: Mapping[str, Kind], kind: Kind) -> str:
    own = [word for word, means in types.items() if means is kind and word != "*"]
    return own[0] if own else f"email.{kind.value}"
