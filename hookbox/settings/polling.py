"""A source's own `poll` table: where the sender's list of events is, and how often to ask for it.

What belongs to a single sender's feed is handed on as it stands, for its provider to judge.
"""

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import SplitResult, urlsplit

from hookbox.errors import ConfigError
from hookbox.model import Drive
from hookbox.settings.reference import Reference
from hookbox.settings.tables import Table, count, flag, one_of
from hookbox.settings.units import duration

EVERY_S = 900  # a quarter of an hour turns an outage of hours into a delay
# The characters of a URL, without credentials in it and without a fragment.
URL = re.compile(r"https?://[A-Za-z0-9.\-\[\]:]+(?:/[!\"$-~]*)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class PollSettings:
    """One `poll` table. `read` is where the messages of one inbox are read; `limit` None takes as
    many events a page as the sender gives.
    """

    url: str
    token: Reference
    every_s: int = EVERY_S
    drive: Drive = Drive.WEBHOOK
    scoped: bool = False
    read: str | None = None
    limit: int | None = None
    options: Mapping[str, object] = field(default_factory=dict)


def read_poll(table: Table) -> PollSettings:
    """Raises ConfigError with line, reason and mend."""
    token = table.need(
        "token", Reference.parse, mend='say where it lies: token = "env:NAME" or "file:/path"'
    )
    poll = PollSettings(
        url=table.need("url", _url, mend='add a line like url = "https://api.example.com/events"'),
        token=token,
        every_s=table.take("every", duration, EVERY_S),
        drive=table.take("drive", one_of(Drive, "a way to drive a source"), Drive.WEBHOOK),
        scoped=table.take("scoped", flag, False),
        read=table.take("read", _read_url, None),
        limit=table.take("limit", count, None),
        options=dict(table.values),
    )
    if poll.read is not None and _host(poll.read) != _host(poll.url):
        raise table.error(
            "leads to another host than `url`, and the token is for that one alone",
            "read",
            mend="both belong to the same sender; check the addresses",
        )
    return poll


def _url(value: object) -> str:
    text = value if isinstance(value, str) else ""
    if not URL.fullmatch(text):
        raise ConfigError(
            "is no address that can be asked",
            mend='write it like "https://api.example.com/v1/events", without a user in it',
        )
    if _host(text) is None:
        raise ConfigError("names no host", mend='write "https://api.example.com/..."')
    if text.startswith("http:") and not on_loopback(text):
        raise ConfigError(
            "the token would cross the network unencrypted",
            mend="use https; http is for this machine's own addresses (127.0.0.1, [::1])",
        )
    return text


def _read_url(value: object) -> str:
    text = _url(value.replace("{inbox_id}", "INBOX") if isinstance(value, str) else value)
    if "INBOX" not in text or not isinstance(value, str) or "{inbox_id}" not in value:
        raise ConfigError(
            f"{value!r} does not say where the inbox goes",
            mend='write {inbox_id} there, like "https://api.example.com/inboxes/{inbox_id}/messages"',
        )
    return value


def _parts(text: str) -> SplitResult | None:
    try:
        found = urlsplit(text)
        found.port  # noqa: B018  (it is read only when asked for, and then it may be wrong)
    except ValueError:
        return None
    return found if found.hostname else None


def _host(text: str) -> tuple[str, str | None, int | None] | None:
    found = _parts(text)
    return None if found is None else (found.scheme, found.hostname, found.port)


def on_loopback(url: str) -> bool:
    """Whether the URL is of this machine, by its own words."""
    found = _parts(url)
    name = found.hostname if found else None
    if name is None:
        return False
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"
