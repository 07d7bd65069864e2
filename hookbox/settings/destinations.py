"""`[destination.NAME]`: what every destination may say. The rest is for its type to judge."""

import re

from hookbox.errors import ConfigError
from hookbox.model import Kind, Order
from hookbox.settings.records import DestinationSettings, Settings
from hookbox.settings.reference import Reference
from hookbox.settings.tables import (
    Table,
    count,
    one_of,
    one_or_many,
    refuse_literals,
    suggestion,
    words,
)
from hookbox.settings.units import duration

RETRIES_MAX = 50
# Each has a connection or a program of its own; claimed ahead are as many again.
CONCURRENCY_MAX = 256

DOMAIN = re.compile(r"[^\s@.*/]+(?:\.[^\s@.*/]+)*\.?")


def destination(table: Table) -> DestinationSettings:
    """One destination."""
    line = table.line
    found = DestinationSettings(
        name=table.path[-1],
        line=line,
        type=table.need("type", words, mend='add a line like type = "http"'),
        sources=table.take("sources", one_or_many(words), ()),
        kinds=table.take("kinds", one_or_many(one_of(Kind, "a kind of event")), ()),
        domains=table.take("domains", one_or_many(_domain), ()),
        retry_s=table.take("retry", _retry, None),
        concurrency=table.take("concurrency", _concurrency, None),
        order=table.take("order", one_of(Order, "an order"), Order.NONE),
        failures_max=table.take("failures_max", count, None),
        secret=table.take("secret", Reference.parse, None),
        previous_secret=table.take("previous_secret", Reference.parse, None),
        options=dict(table.values),
    )
    refuse_literals(table)
    return found


def refuse_unknown_sources(root: Table, settings: Settings) -> None:
    """A filter for a source that is not there would let nothing through."""
    known = [source.name for source in settings.sources]
    for each in settings.destinations:
        for source in each.sources:
            if source not in known:
                place = ("destination", each.name, "sources")
                mend = suggestion(source, known) if known else "add the source, or remove the line"
                raise root.error(f"no source is called {source!r}", *place, mend=mend)


def _domain(value: object) -> str:
    domain = words(value).strip()
    if not DOMAIN.fullmatch(domain):
        raise ConfigError(
            f"{value!r} is not a domain", mend='write what stands behind the @, like "example.com"'
        )
    return domain


def _retry(value: object) -> tuple[int, ...]:
    waits = one_or_many(duration)(value)
    if len(waits) > RETRIES_MAX:
        raise ConfigError("has too many waits", mend=f"use at most {RETRIES_MAX}")
    return waits


def _concurrency(value: object) -> int:
    found = count(value)
    if found > CONCURRENCY_MAX:
        raise ConfigError(f"{value!r} is out of range", mend=f"use at most {CONCURRENCY_MAX}")
    return found
