"""The settings of a source that Amazon SES sends to.

topics = ["arn:aws:sns:eu-west-1:123456789012:ses-events"]
require_signature_version = 2               # refuse what is signed with SHA-1
certificates = "/etc/hookbox/certificates"  # take these instead of fetching them
"""

from dataclasses import dataclass
from pathlib import Path

from hookbox.errors import ConfigError
from hookbox.providers.contract import Table
from hookbox.rules.sns import topic

OPTIONS = frozenset({"topics", "certificates", "require_signature_version"})

MEND_TOPICS = 'write topics = ["arn:aws:sns:REGION:ACCOUNT:NAME"] with the ARNs of your own topics'


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What a source believes: messages of these topics, signed in these ways."""

    topics: tuple[str, ...] = ()
    versions: frozenset[str] = frozenset({"1", "2"})
    certificates: Path | None = None


def parsed_setting(table: Table) -> Setting:
    return Setting(
        topics=_topics(table.get("topics")),
        versions=_versions(table.get("require_signature_version", 1)),
        certificates=_directory(table.get("certificates")),
    )


def _topics(value: object) -> tuple[str, ...]:
    """A signature proves that some topic of SNS sent it, and anybody can have one."""
    if not isinstance(value, list) or not value:
        raise ConfigError(
            "whatever SNS signs would be believed, no matter whose topic it is from",
            where="topics",
            mend=MEND_TOPICS,
        )
    for each in value:
        if not isinstance(each, str) or topic(each) is None:
            raise ConfigError(
                f"{each!r} is not the ARN of a topic", where="topics", mend=MEND_TOPICS
            )
    return tuple(value)


def _versions(value: object) -> frozenset[str]:
    if value not in (1, 2) or isinstance(value, bool):
        raise ConfigError(
            f"SNS has no signature version {value!r}",
            where="require_signature_version",
            mend="write 2, once every topic has it; without the line 1 is accepted, too",
        )
    return frozenset({"2"}) if value == 2 else Setting().versions


def _directory(value: object) -> Path | None:
    if value is None:
        return None
    if not isinstance(value, str) or not Path(value).is_absolute():
        raise ConfigError(
            f"{value!r} is not the full path of a directory",
            where="certificates",
            mend='write certificates = "/etc/hookbox/certificates", and put PEM files there, '
            "named as in SigningCertURL",
        )
    return Path(value)
