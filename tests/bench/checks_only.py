"""hookbox without its store: the same door, the same checks, and a writer that keeps nothing.

    python -m tests.bench.checks_only serve

Only the benchmark may start this: its 200 promises nothing. The rate it reaches is the ceiling that
the store's share is measured against.
"""

from collections.abc import Sequence

from hookbox.__main__ import main
from hookbox.model import Admission
from hookbox.store.proposals import Proposal
from hookbox.store.writer import Writer


async def admit_nothing(
    _writer: Writer, proposals: Sequence[Proposal], _deadline_s: float
) -> Admission:
    """The answer that a redelivery gets: no new row, no work to wake anybody for."""
    return Admission(duplicate=len(proposals))


if __name__ == "__main__":
    Writer.admit = admit_nothing
    main()
