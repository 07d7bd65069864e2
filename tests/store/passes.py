"""A whole pass of retention in one go, or in steps as short as can be."""

from collections import Counter

from hookbox.store.connections import Transaction
from hookbox.store.retention import Counts
from hookbox.store.sweeps import Horizons, all_of_a_pass


def swept(
    transaction: Transaction, *, bodies: int, keys: int, now: int, in_steps: bool = False
) -> Counts:
    """What went that came before `bodies` and `keys`."""
    counts: Counts = Counter()
    horizons = Horizons(bodies=bodies, keys=keys, now=now, spare=False)
    for sweep in all_of_a_pass(horizons):
        while not sweep.step(transaction, lambda: in_steps, counts):
            pass
    return counts
