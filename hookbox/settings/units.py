"""Durations and sizes as people write them: "1h30m", "256 KB"."""

import re

from hookbox.errors import ConfigError

SECONDS = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}
# Ten years: longer than any of it runs, and safe in milliseconds.
DURATION_MAX_S = 3_650 * SECONDS["d"]

BYTES = {
    "gib": 1 << 30,
    "gb": 10**9,
    "mib": 1 << 20,
    "mb": 10**6,
    "kib": 1 << 10,
    "kb": 10**3,
    "b": 1,
    "": 1,
}
SPELLING = {"gib": "GiB", "gb": "GB", "mib": "MiB", "mb": "MB", "kib": "KiB", "kb": "KB"}
SIZE_MAX_BYTES = 1 << 40

# Units from large to small, each at most once; ASCII digits only, and few enough to be no trouble.
_DURATION = re.compile(r"\s*".join(rf"(?:(?P<{unit}>[0-9]{{1,12}})\s*{unit})?" for unit in SECONDS))
_SIZE = re.compile(r"(?P<number>[0-9]{1,15})\s*(?P<unit>[A-Za-z]*)")


def duration(value: object) -> int:
    """Seconds in "300s", "15m", "9h", "30d", "2w" or "1h30m". Zero is refused: none means that."""
    found = _DURATION.fullmatch(value.strip()) if isinstance(value, str) else None
    counts = (
        {unit: int(count) for unit, count in found.groupdict().items() if count} if found else {}
    )
    if not counts:
        raise ConfigError(
            f"{value!r} is not a duration", mend='write it like "300s", "15m", "1h30m" or "30d"'
        )
    seconds = sum(count * SECONDS[unit] for unit, count in counts.items())
    if not 0 < seconds <= DURATION_MAX_S:
        raise ConfigError(
            f"{value!r} is out of range", mend='use at least "1s" and at most "3650d"'
        )
    return seconds


def duration_text(seconds: int) -> str:
    """The shortest way to write a duration; `duration` reads it back."""
    parts = []
    for unit, length in SECONDS.items():
        if unit == "w":
            continue  # "30d" is plainer than "4w2d"
        count, seconds = divmod(seconds, length)
        parts += [f"{count}{unit}"] if count else []
    return "".join(parts) or "0s"


def size(value: object) -> int:
    """Bytes in "1 MiB" (1024 * 1024), "256 KB" (256,000), "4096" or 4096."""
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    found = _SIZE.fullmatch(text.strip()) if isinstance(text, str) else None
    if not found or found["unit"].lower() not in BYTES:
        raise ConfigError(
            f"{value!r} is not a size", mend='write it like "1 MiB", "256 KB" or 65536 (bytes)'
        )
    count = int(found["number"]) * BYTES[found["unit"].lower()]
    if not 0 < count <= SIZE_MAX_BYTES:
        raise ConfigError(
            f"{value!r} is out of range", mend='use at least 1 byte and at most "1024 GiB"'
        )
    return count


def size_text(count: int) -> str:
    """A size in the largest unit that says it exactly; `size` reads it back."""
    for unit, spelling in SPELLING.items():
        if count and count % BYTES[unit] == 0:
            return f"{count // BYTES[unit]} {spelling}"
    return f"{count} B"
