"""`hookbox events replay --dry-run`: what a replay would come to."""

from collections.abc import Iterator, Sequence

from hookbox import assembly, onward
from hookbox.cli import terminal
from hookbox.cli.box import Box
from hookbox.flows.rehearsal import Rehearsal, Rehearser
from hookbox.store import database, events, pseudonyms, secrets, sources
from hookbox.store.forwarding import PREFIX, target_of
from hookbox.store.reprocess import APPLY_ONLY


def rehearse(
    box: Box, chosen: Iterator[Sequence[int]], to: Sequence[str], *, as_json: bool
) -> None:
    """Count and show; nothing is changed, in the database or anywhere else."""
    settings = box.settings()
    with database.reading(box.state) as transaction:
        ids = sources.known(transaction)
        erased = pseudonyms.known(transaction, lambda: secrets.load_seal(box.state))
    rehearser = Rehearser(
        assembly.reading_sources(settings, ids), [] if to else onward.routes(settings), erased
    )
    for page in chosen:
        with database.reading(box.state) as transaction:
            read = events.by_id(transaction, page)
            rehearser.rehearse(transaction, sorted(read, key=lambda event: event.id))
    found = rehearser.found
    for name in to:
        if name != APPLY_ONLY:
            found.brought[target_of(name)] += found.events
    if as_json:
        terminal.as_json([_line(found)])
        return
    terminal.facts(_facts(found, applied=not to or APPLY_ONLY in to))


def _line(found: Rehearsal) -> dict[str, object]:
    return {
        "events": found.events,
        "unread": found.unread,
        "status_moves": found.moved,
        "status_unchanged": found.unchanged,
        "status_refused": dict(found.refused),
        "newly_suppressed": sorted(found.suppressed),
        "brought": {target.removeprefix(PREFIX): n for target, n in found.brought.items()},
    }


def _facts(found: Rehearsal, *, applied: bool) -> Iterator[tuple[str, str]]:
    yield "events", str(found.events)
    if found.unread:
        yield "not readable", f"{found.unread}: content gone, or source not configured"
    if applied:
        yield "statuses moved", str(found.moved)
        yield "unchanged", str(found.unchanged)
        for words, count in found.refused.most_common():
            yield "refused", f"{count} times: {words}"
        yield "newly suppressed", str(len(found.suppressed))
    for target, count in sorted(found.brought.items()):
        yield "would be brought", f"{count} to {target.removeprefix(PREFIX)}"
    if not found.brought:
        yield "would be brought", "nowhere"
    yield "changed now", "nothing"
