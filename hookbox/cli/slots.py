"""Secret slots: which of the two secrets of a source or a destination are there, where they lie and
how they are used.

Never the secrets themselves.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path

from hookbox.cli.terminal import span
from hookbox.destinations import DESTINATIONS
from hookbox.model import Slot
from hookbox.providers import PROVIDERS
from hookbox.settings import DestinationSettings, Settings, SourceSettings
from hookbox.store import database, views
from hookbox.store.secrets import destination_owner, source_owner
from hookbox.store.views import Line

SEALED = "sealed store"
MISSING = "missing"
# How long the old secret may be needed where it is not known for how long a sender tries again:
# most give up within a day, the patient ones within three.
HORIZON_UNKNOWN_S = 3 * 86_400
KEEP = "keep it"  # how the advice begins while it is needed

Places = Mapping[tuple[str, str], Line]  # by owner and slot


def slots(settings: Settings, state: Path, now: int) -> list[Line]:
    """A line for each secret of each source and destination, and for those that none of them uses
    any more.
    """
    sealed, uses = _stored(state)
    lines: list[Line] = []
    for source in settings.sources:
        lines += _of_source(source, sealed, uses, now)
    for destination in settings.destinations:
        lines += _of_destination(destination, sealed)
    listed = {(line["owner"], line["slot"]) for line in lines}
    for place in sorted(sealed.keys() - listed):
        line = _line(place, SEALED, sealed, uses)
        lines.append(line | {"advice": "nothing in the configuration uses it"})
    return lines


def _stored(state: Path) -> tuple[Places, Places]:
    """What the sealed store holds, and how often each slot proved a delivery."""
    if not (state / database.FILE_NAME).exists():
        return {}, {}
    with database.reading(state) as transaction:
        found = views.secrets(transaction), views.secret_uses(transaction)
    sealed, uses = ({(str(x["owner"]), str(x["slot"])): x for x in lines} for lines in found)
    return sealed, uses


def _of_source(source: SourceSettings, sealed: Places, uses: Places, now: int) -> list[Line]:
    provider = PROVIDERS.get(source.provider)
    current, *previous = _lines(source_owner(source.name), source, sealed, uses)
    if current["kept"] == MISSING and (provider is None or provider.needs_secret):
        current["advice"] = f"set it: hookbox secret set {source.name}"
    horizon_s = (provider.retry_horizon_s if provider else None) or HORIZON_UNKNOWN_S
    for line in previous:
        line["advice"] = when_to_drop(current, line, horizon_s, now)
    return [current, *previous]


def _of_destination(destination: DestinationSettings, sealed: Places) -> list[Line]:
    kind = DESTINATIONS.get(destination.type)
    if kind is None or not kind.needs_secret:
        return []
    current, *previous = _lines(destination_owner(destination.name), destination, sealed, {})
    if current["kept"] == MISSING:
        current["advice"] = "it is made when the server starts"
    for line in previous:
        line["advice"] = f"{KEEP} until the receiving program has the new one, then drop it"
    return [current, *previous]


def _lines(
    owner: str, chosen: SourceSettings | DestinationSettings, sealed: Places, uses: Places
) -> Iterator[Line]:
    """The current slot's, and the previous one's where there is something in it."""
    current, previous = (owner, Slot.CURRENT.value), (owner, Slot.PREVIOUS.value)
    kept = str(chosen.secret or (SEALED if current in sealed else MISSING))
    yield _line(current, kept, sealed, uses)
    if chosen.previous_secret is not None or previous in sealed:
        yield _line(previous, str(chosen.previous_secret or SEALED), sealed, uses)


def _line(place: tuple[str, str], kept: str, sealed: Places, uses: Places) -> Line:
    use = uses.get(place, {})
    return {
        "owner": place[0],
        "slot": place[1],
        "kept": kept,
        "set_at": sealed[place]["set_at"] if kept == SEALED else None,
        "accepted": use.get("accepted", 0),
        "last_used_at": use.get("last_used_at"),
        "advice": "",
    }


def when_to_drop(current: Line, previous: Line, horizon_s: int, now: int) -> str:
    """Whether the previous secret may go: once no retry can carry it any more.

    That is a whole retry horizon after the new one was set, and after the last delivery that only
    the old one proved.
    """
    told = [line for line in (current["set_at"], previous["last_used_at"]) if isinstance(line, str)]
    if not told:
        return "not used so far; drop it once the sender has the new one"
    quiet_s = now / 1000 - datetime.fromisoformat(max(told)).timestamp()
    if quiet_s >= horizon_s:
        return f"safe to drop: no delivery has needed it for {span(quiet_s)}"
    return f"{KEEP} for another {span(horizon_s - quiet_s)}: a retry may still carry it"
