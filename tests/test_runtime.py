"""The services together: what ends by itself is heard of."""

import asyncio
from pathlib import Path

from hookbox.clock import SystemClock
from hookbox.runtime import Runtime
from hookbox.settings import parse

TEXT = '[source.std]\nprovider = "standardwebhooks"\n[local]\nlisten = "off"\n'


async def started(state: Path) -> Runtime:
    def load() -> object:
        return parse(TEXT, state / "hookbox.toml", state)

    runtime = Runtime(load(), SystemClock(), load)  # type: ignore[arg-type]
    await runtime.start()
    return runtime


async def test_task_that_ends_by_itself_makes_the_box_unready_and_stop(tmp_path: Path) -> None:
    """A box whose worker is gone must not look well: it stops, and is started anew."""
    runtime = await started(tmp_path)
    runtime.worker.stop()
    async with asyncio.timeout(10):
        await runtime.broken.wait()
    assert not runtime.ready
    await runtime.stop()


async def test_stop_is_no_such_end(tmp_path: Path) -> None:
    runtime = await started(tmp_path)
    await runtime.stop()
    assert not runtime.broken.is_set()


async def test_transaction_that_can_never_run_is_told_so(tmp_path: Path) -> None:
    """Whoever waits for the writer is answered, whatever became of it."""
    runtime = await started(tmp_path)
    await runtime.stop()
    from hookbox.errors import StoreError

    try:
        async with asyncio.timeout(5):
            await runtime.writer.write(lambda t: None)
    except StoreError:
        return
    raise AssertionError
