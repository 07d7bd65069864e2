"""Mistakes in the box, for a while: each must be caught, or the simulation is not trusted."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

from hookbox.flows import forward, settlement
from hookbox.rules.suppression import Suppression
from hookbox.store import forwarding, jobs, ratchet, turns

Options = dict[str, bool]
Planted = Callable[[], AbstractContextManager[Options]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A mistake, and how many of the first hundred seeds catch it, at least."""

    planted: Planted
    caught: int


def _wrong(target: object, name: str, wrong: object) -> Planted:
    """One function or statement done wrong."""

    @contextmanager
    def fault() -> Iterator[Options]:
        with mock.patch.object(target, name, wrong):
            yield {}

    return fault


@contextmanager
def _acknowledged_before_commit() -> Iterator[Options]:
    yield {"hasty": True}


def _nobody_taken_back(*_: object, **__: object) -> int:
    return 0


def _last_writer_wins(_: Suppression | None, new: Suppression) -> Suppression:
    return new


def _everything_owned(_: object, ids: Sequence[int], lease: object) -> set[int]:
    return set(ids)


def _under_the_same_key(*args: Any) -> Any:
    return replace(_parcel(*args), replay=0)


_parcel = forward.parcel
_RELEASE_ALL = forwarding.RELEASE.replace(f"AND last_outcome <> '{turns.WAITS}'", "")

FAULTS = {
    "no rescue at start": Fault(
        planted=_wrong(settlement, "take_back", _nobody_taken_back), caught=20
    ),
    "last writer wins": Fault(planted=_wrong(ratchet, "first", _last_writer_wins), caught=8),
    "no clamp of due times": Fault(planted=_wrong(jobs, "MEND_DUE", "SELECT 1"), caught=5),
    "acknowledged before commit": Fault(planted=_acknowledged_before_commit, caught=7),
    "finish without a lease": Fault(planted=_wrong(jobs, "owned", _everything_owned), caught=10),
    "order ignored on release": Fault(
        planted=_wrong(forwarding, "RELEASE", _RELEASE_ALL), caught=8
    ),
    "replay under the same key": Fault(
        planted=_wrong(forward, "parcel", _under_the_same_key), caught=14
    ),
}
