"""Fetch: one page of a sender's list, or the word for why there is none.

The key goes to the configured host only: what a feed asks for must stay there, and redirects are
answers like any other.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from hookbox.errors import AnswerTooLarge, FeedError, NetError
from hookbox.flows.polling import Polling
from hookbox.net import Net
from hookbox.providers.feed import Ask, Page, Place, Refusal, StatePage
from hookbox.rules.digest import Unreadable
from hookbox.rules.reach import parsed

log = logging.getLogger("hookbox.poll")
T = TypeVar("T")

PAGE_MAX_BYTES = 8 * 1024 * 1024  # 100 events of 80 KB; a page is held in memory whole
PAGE_S = 30.0  # a list of a day's events may take its server a while


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """A page, its bytes, and how many events were asked for in the end."""

    page: Page
    body: bytes
    limit: int


class Fetcher:
    """Asks for pages: with `near` where the sender is on this machine, else with `net`."""

    def __init__(self, net: Net, near: Net) -> None:
        self._net, self._near = net, near

    async def page(self, polling: Polling, place: Place) -> Fetched:
        """Raises FeedError in all its kinds. A page that is too large is asked for with half as
        many events, down to one.
        """
        feed = polling.feed
        while True:
            try:
                body = await self._body(polling, place, feed.ask(place))
            except AnswerTooLarge as error:
                if place.limit == 1:
                    raise FeedError(f"one event alone is too large: {error}") from error
                place = replace(place, limit=max(1, place.limit // 2))
                continue
            page = _read(partial(feed.read, place, body))
            return Fetched(page=page, body=body, limit=place.limit)

    async def states(self, polling: Polling, place: Place) -> tuple[StatePage, bytes]:
        """One page of an inbox's messages as they are now. Raises FeedError."""
        states = polling.feed.states
        assert states is not None, "asked only where there is one"
        try:
            body = await self._body(polling, place, states.ask(place))
        except AnswerTooLarge as error:
            raise FeedError(str(error)) from error
        return _read(partial(states.read, body)), body

    async def _body(self, polling: Polling, place: Place, ask: Ask) -> bytes:
        if _host(ask.url) != _host(polling.url):
            raise FeedError("the list goes on at another host, and the key is not for that one")
        net = self._near if polling.loopback else self._net
        try:
            answer = await net.request(
                "GET", ask.url, headers=ask.headers, deadline_s=PAGE_S, answer_max=PAGE_MAX_BYTES
            )
        except AnswerTooLarge:
            raise
        except NetError as error:
            raise FeedError(str(error)) from error
        if answer.status != 200:
            refusal = Refusal(status=answer.status, headers=answer.headers, body=answer.body)
            raise polling.feed.refused(refusal, place.now)
        return answer.body


def _read(read: Callable[[], T]) -> T:
    try:
        return read()
    except Unreadable as error:
        raise FeedError(f"a page cannot be read: {error}") from error
    except Exception as error:
        log.exception("reading a page failed")
        raise FeedError(f"a page cannot be read: {error!r}") from error


def _host(url: str) -> tuple[str, str, int]:
    try:
        found = parsed(url)
    except NetError as error:
        raise FeedError(f"the list goes on nowhere: {error}") from error
    return found.scheme, found.host, found.port
