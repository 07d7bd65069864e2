"""Reading how long a server asks to be left alone."""

from hookbox.rules.instants import instant

PAUSE_MAX_S = 86_400.0  # whoever asks for more is asked again after a day


def retry_after_s(text: str | None, now: int) -> float | None:
    """The seconds in a `Retry-After`: a number, or a date. None where it says neither."""
    if text is None:
        return None
    text = text.strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:12]), PAUSE_MAX_S)
    at = instant(text)
    return None if at is None else min(max(0.0, (at - now) / 1000), PAUSE_MAX_S)
