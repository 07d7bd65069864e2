"""A planted fault: the cursor is saved before the events that it stands behind.

It is how a poller is easily written, and it is right for as long as nothing goes wrong in between.
"""

from functools import partial

from hookbox.flows.fetch import Fetched
from hookbox.flows.poll_pages import Pages
from hookbox.flows.polling import Walk
from hookbox.store import cursors

honest = Pages.store


async def store(self: Pages, walk: Walk, fetched: Fetched, *, moving: bool = True) -> None:
    if moving and fetched.page.cursor is not None:
        place = {"source_id": walk.source_id, "url": walk.polling.url}
        saved = {**place, "cursor": fetched.page.cursor, "now": walk.started_at}
        await self._writer.write(partial(cursors.save, **saved))
    await honest(self, walk, fetched, moving=False)


Pages.store = store  # type: ignore[method-assign]
