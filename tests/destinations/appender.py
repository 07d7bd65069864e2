"""Appends to a file until it is killed, and says which lines were reported written.

python -m tests.destinations.appender PATH [FSIZE]
"""

import asyncio
import resource
import sys
from pathlib import Path

from hookbox.model import Verdict
from tests.destinations.parcels import parcel
from tests.destinations.rigs import opened

AT_ONCE = 16


async def append(path: Path) -> None:
    destination = opened("jsonl", path=path, max_size=200_000, keep=1000)
    numbers = iter(range(1, 1_000_000))

    async def bring() -> None:
        for number in numbers:
            attempt = await destination.deliver(parcel(number, filler="x" * (number % 3000)))
            print(number if attempt.verdict is Verdict.DONE else attempt.excerpt, flush=True)
            if attempt.verdict is not Verdict.DONE:
                break

    await asyncio.gather(*(bring() for _ in range(AT_ONCE)))
    await destination.close()


if __name__ == "__main__":
    if len(sys.argv) > 2:
        limit = int(sys.argv[2])
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    asyncio.run(append(Path(sys.argv[1])))
