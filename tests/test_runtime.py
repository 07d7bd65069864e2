"""The services together: what ends by itself is heard of, and what a start leaves behind it."""

import asyncio
from pathlib import Path

from hookbox.clock import SystemClock
from hookbox.runtime import Runtime
from hookbox.settings import parse
from hookbox.store import lanes, outbox_views

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


async def test_start_forgets_what_the_run_before_found_of_a_destination(tmp_path: Path) -> None:
    """The new one has tried nothing yet; a box that says otherwise would say so until it breaks."""
    first = await started(tmp_path)
    await first.writer.write(
        lambda t: lanes.note(t, "forward:app", failures=10, broken_at=1, probe_at=2)
    )
    await first.stop()
    second = await started(tmp_path)
    found = await second.reader.read(outbox_views.lanes)
    await second.stop()
    assert found == []
