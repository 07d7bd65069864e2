"""The box keeps its promises whatever goes wrong, and the simulation sees when it does not."""

from collections import Counter

import pytest

from tests.sim.faults import FAULTS, Fault
from tests.sim.plan import WEIGHTS
from tests.sim.run import run

SEEDS, BLOCK = 10_000, 1_000
FEW, SOME = 500, 100  # for every day, in blocks of this size
CATCHERS = 100  # seeds, of which each planted fault must fail as many as it says


def sound(first: int, count: int) -> Counter[str]:
    """Run these seeds; what they saw. A failing one tells its story, and how to hear it again."""
    seen: Counter[str] = Counter()
    for seed in range(first, first + count):
        told = run(seed)
        if told.broken:
            story = "\n".join(told.story)
            pytest.fail(f"{story}\n{told.broken}\nagain: python -m tests.sim {seed}", pytrace=False)
        seen += told.seen
    return seen


@pytest.mark.parametrize("first", range(0, FEW, SOME))
def test_promises_hold_whatever_goes_wrong(first: int) -> None:
    """Each block of seeds meets every kind of incident and every kind of crash."""
    seen = sound(first, SOME)
    crashes = [
        f"crashes {moment}"
        for moment in (
            "before a commit", "after a commit", "at the answer", "at the begin of an effect",
            "at the end of an effect",
        )
    ]  # fmt: skip
    assert not {*WEIGHTS, *crashes, "late finishers"} - set(seen)


@pytest.mark.witness
@pytest.mark.parametrize("first", range(FEW, SEEDS, BLOCK))
def test_promises_hold_in_ten_thousand_runs(first: int) -> None:
    """The rest of them."""
    sound(first, min(BLOCK, SEEDS - first))


def test_seed_always_runs_the_same_way() -> None:
    """Else a failing seed could not be told again."""
    for seed in range(20):
        first, again = run(seed), run(seed)
        assert (first.story, first.seen) == (again.story, again.seen)


@pytest.mark.parametrize("fault", FAULTS.values(), ids=list(FAULTS))
def test_planted_fault_is_caught(fault: Fault) -> None:
    """A simulation that never failed is not trusted."""
    with fault.planted() as options:
        assert any(run(seed, **options).broken for seed in range(CATCHERS))


@pytest.mark.witness
@pytest.mark.parametrize("fault", FAULTS.values(), ids=list(FAULTS))
def test_planted_fault_is_caught_by_as_many_seeds_as_it_was(fault: Fault) -> None:
    """A simulation that sees less than it did has lost something."""
    with fault.planted() as options:
        caught = sum(bool(run(seed, **options).broken) for seed in range(CATCHERS))
    assert caught >= fault.caught
