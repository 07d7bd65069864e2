"""Doors are tested on each event loop that they may be served on."""

import asyncio
from collections.abc import Callable, Mapping
from importlib.util import find_spec


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Each test runs once on each."""
    loops = {"asyncio": asyncio.new_event_loop}
    if find_spec("uvloop"):
        import uvloop

        loops["uvloop"] = uvloop.new_event_loop
    return loops
