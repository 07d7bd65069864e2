"""What a rebuild found, in lines for people and programs."""

from collections.abc import Iterator, Mapping

from hookbox.cli import terminal
from hookbox.cli.terminal import Column, Row
from hookbox.flows.rebuild import Outcome
from hookbox.store import views
from hookbox.store.differences import Difference, Fields, What

COLUMNS = (
    Column("CHANGE", "change"),
    Column("WHAT", "what"),
    Column("ADDRESS", "address", flexible=True),
    Column("SCOPE", "scope"),
    Column("SOURCE", "source"),
    Column("MESSAGE", "message_id", flexible=True),
    Column("BEFORE", "before"),
    Column("AFTER", "after"),
    Column("LOOSENS", "loosens", lambda value: "yes" if value else terminal.NOTHING),
)


def lines(outcome: Outcome, sources: Mapping[int, str]) -> Iterator[Row]:
    """One for each row that differs. `sources`: the name of each id."""
    for each in outcome.differences:
        either = each.before or each.after or {}
        source_id = each.key.get("source_id", either.get("source_id"))
        yield {
            "change": _change(each),
            "what": each.what,
            "address": each.address,
            "scope": each.key.get("scope"),
            "source": sources.get(source_id) if isinstance(source_id, int) else None,
            "message_id": each.key.get("message_id") or None,
            "before": _told(each.what, each.before),
            "after": _told(each.what, each.after),
            "loosens": each.loosens,
        }


def summary(outcome: Outcome) -> str:
    """What was found, in a sentence."""
    if outcome.empty:
        told = "everything is as it would be worked out today"
    else:
        changes = [_change(each) for each in outcome.differences]
        counts = [f"{changes.count(name)} {name}" for name in ("added", "removed", "changed")]
        told = f"{', '.join(counts)}; events that are read otherwise: {len(outcome.retold)}"
    if outcome.unread:
        told += f"; {outcome.unread} could not be read again and stay as written"
    return told


def _change(difference: Difference) -> str:
    if difference.before is None:
        return "added"
    return "removed" if difference.after is None else "changed"


def _told(what: What, row: Fields | None) -> str | None:
    """A row in a few words."""
    if row is None:
        return None
    if what is What.SUPPRESSION:
        return f"{row['reason']} since {_when(row['since'])}"
    shown = f"{row['kind']} ({row['bounce_class']})" if row["bounce_class"] else str(row["kind"])
    return f"{shown} {_when(row['status_at'])}"


def _when(instant: object) -> str:
    assert isinstance(instant, int), "an instant"
    return terminal.when(views.iso(instant))
