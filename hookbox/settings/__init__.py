"""The configuration: where it lies, what it may say, and what it means.

Owns the TOML file and nothing else: it opens no database, knows no provider and no destination.
Each source's own keys are handed on as they stand (`SourceSettings.options`) for its provider to
judge. Whatever cannot be used is refused with a ConfigError: line, reason, mend.
"""

from hookbox.settings.doors import Listen
from hookbox.settings.files import DEMO_CONFIG, add_source, places, write_config
from hookbox.settings.masked import masked
from hookbox.settings.polling import PollSettings, on_loopback
from hookbox.settings.reading import load, parse
from hookbox.settings.records import (
    DestinationSettings,
    LocalSettings,
    RetentionSettings,
    ServerSettings,
    Settings,
    SourceSettings,
    SuppressionSettings,
)
from hookbox.settings.reference import Reference
from hookbox.settings.tables import placed, suggestion
from hookbox.settings.toml_lines import line_of
from hookbox.settings.units import duration, duration_text, size, size_text

__all__ = [
    "DEMO_CONFIG",
    "DestinationSettings",
    "Listen",
    "LocalSettings",
    "PollSettings",
    "Reference",
    "RetentionSettings",
    "ServerSettings",
    "Settings",
    "SourceSettings",
    "SuppressionSettings",
    "add_source",
    "duration",
    "duration_text",
    "line_of",
    "load",
    "masked",
    "on_loopback",
    "parse",
    "placed",
    "places",
    "size",
    "size_text",
    "suggestion",
    "write_config",
]
