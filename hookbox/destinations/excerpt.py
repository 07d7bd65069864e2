"""Excerpts: what a destination said, short enough to keep and safe to show."""

from hookbox.destinations.contract import EXCERPT_MAX


def beginning(said: bytes) -> str:
    """The first of it that is printable."""
    return _printable(said[: EXCERPT_MAX * 4])[:EXCERPT_MAX].rstrip()


def end(said: bytes) -> str:
    """The last of it, which is where programs say why."""
    return _printable(said[-EXCERPT_MAX * 4 :])[-EXCERPT_MAX:].lstrip()


def _printable(said: bytes) -> str:
    """As one line; four bytes hold any character, so a cut in one is far from what is kept."""
    words = said.decode("utf-8", "replace").split()
    return "".join(c if c.isprintable() else "\ufffd" for c in " ".join(words))
