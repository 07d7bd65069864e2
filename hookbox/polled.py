"""Polled: a source's `poll` table becomes the way in which its list of events is asked for.

What the provider's feed cannot do is refused here, when the configuration is read.
"""

from dataclasses import replace

from hookbox.errors import ConfigError
from hookbox.flows.polling import Polling
from hookbox.model import Drive
from hookbox.providers.contract import Provider
from hookbox.providers.feed import Feed
from hookbox.settings import PollSettings, SourceSettings, on_loopback


def fed(chosen: SourceSettings, provider: Provider) -> Provider:
    """The provider with its feed as this source describes it. Raises ConfigError, its `where`
    inside the source's table.
    """
    poll = chosen.poll
    if poll is None:
        return provider
    if provider.feed is None:
        raise ConfigError(
            f"{provider.title} has no list of events that can be polled",
            where="poll",
            mend=f"remove the table; {provider.recovery or 'its retries are all there is'}",
        )
    try:
        feed = provider.feed.configure(provider.feed, poll.options)
        _check_poll(poll, feed)
    except ConfigError as error:
        raise error.at(f"poll.{error.where}") from error
    return replace(provider, feed=feed)


def polled(chosen: SourceSettings, provider: Provider) -> Polling | None:
    """How the source is polled, if it is, its provider being `fed`. Raises ConfigError for a token
    that cannot be had.
    """
    poll, feed = chosen.poll, provider.feed
    if poll is None or feed is None:
        return None
    return Polling(
        feed=feed,
        url=poll.url,
        token=_token(poll),
        every_s=poll.every_s,
        drive=poll.drive,
        scoped=poll.scoped,
        read_url=poll.read,
        limit=poll.limit or feed.limit_max,
        loopback=on_loopback(poll.url),
    )


def _token(poll: PollSettings) -> str:
    """What a header can carry. What it cannot would be repeated in somebody else's error."""
    try:
        token = poll.token.read().strip()
    except ConfigError as error:
        raise error.at("poll.token") from error
    if not (token.isascii() and token.isprintable()):
        raise ConfigError(
            f"{poll.token} holds more than the letters, digits and signs of one key",
            where="poll.token",
            mend="keep the key alone there, on one line",
        )
    return token


def _check_poll(poll: PollSettings, feed: Feed) -> None:
    """What the feed cannot do."""
    refused = (
        (
            "drive",
            poll.drive is Drive.CURSOR and not feed.sequential,
            "this sender's list has no sequence that could decide the order",
            'write drive = "webhook", or remove the line',
        ),
        (
            "scoped",
            poll.scoped and not feed.sequential,
            "this sender does not number its events, so nothing is missed between them",
            "remove the line",
        ),
        (
            "read",
            poll.read is not None and feed.states is None,
            "the state of this sender's messages cannot be read",
            "remove the line",
        ),
        (
            "limit",
            (poll.limit or 1) > feed.limit_max,
            f"this sender gives {feed.limit_max} events a page at most",
            f"write {feed.limit_max} or less",
        ),
        (
            "every",
            poll.every_s < feed.every_min_s,
            f"this sender is to be asked every {feed.every_min_s} s at most",
            f'write every = "{feed.every_min_s}s" or more; "15m" is the default',
        ),
    )
    for key, wrong, message, mend in refused:
        if wrong:
            raise ConfigError(message, where=key, mend=mend)
