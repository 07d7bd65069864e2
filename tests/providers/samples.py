"""The samples on disk: what senders post, byte for byte, and what hookbox must make of it.

    tests/samples/<provider>/<case>/body        the exact request body
    tests/samples/<provider>/<case>/case.toml   its headers and secret, and the expected events
    tests/samples/<provider>/vectors.json       right and wrong signatures over those bodies

A new provider needs a folder here and no line of code. Of an event that concerns several recipients
there are several `[[event]]` with one key. `certificate` names a file beside the cases.
"""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from hookbox.model import Notification
from hookbox.rules.instants import instant

FOLDER = Path(__file__).parent.parent / "samples"


@dataclass(frozen=True)
class Sample:
    """One request and the events that are in it."""

    provider: str
    case: str
    body: bytes
    secret: str
    now: int
    headers: Mapping[str, str]
    options: Mapping[str, object] | None
    certificate: bytes | None
    handshake: str | None
    events: tuple[Mapping[str, object], ...]

    def __str__(self) -> str:
        return f"{self.provider}-{self.case}"


@dataclass(frozen=True)
class Vector:
    """One signature, and whether it is right."""

    provider: str
    note: str
    body: bytes
    secrets: tuple[str, ...]
    headers: Mapping[str, str]
    options: Mapping[str, object] | None
    certificate: bytes | None
    now: int
    expect: str

    def __str__(self) -> str:
        return f"{self.provider}: {self.note}"


def samples() -> list[Sample]:
    return [_sample(path) for path in sorted(FOLDER.glob("*/*/case.toml"))]


def _sample(path: Path) -> Sample:
    case = tomllib.loads(path.read_text())
    return Sample(
        provider=path.parent.parent.name,
        case=path.parent.name,
        body=(path.parent / "body").read_bytes(),
        secret=case["secret"],
        now=case["now"] * 1000,
        headers=case["headers"],
        options=case.get("options"),
        certificate=_certificate(path.parent.parent, case),
        handshake=case.get("handshake"),
        events=tuple(case.get("event", ())),
    )


def _certificate(folder: Path, case: Mapping[str, str]) -> bytes | None:
    return (folder / case["certificate"]).read_bytes() if "certificate" in case else None


def vectors() -> list[Vector]:
    return [
        Vector(
            provider=path.parent.name,
            note=each["note"],
            body=_vector_body(path.parent, each),
            secrets=tuple(each["secrets"]),
            headers=each["headers"],
            options=each.get("options"),
            certificate=_certificate(path.parent, each),
            now=each["now"] * 1000,
            expect=each["expect"],
        )
        for path in sorted(FOLDER.glob("*/vectors.json"))
        for each in json.loads(path.read_text())
    ]


def _vector_body(folder: Path, vector: Mapping[str, str]) -> bytes:
    """The body of a case, or one that is no case because it is wrong."""
    if "text" in vector:
        return vector["text"].encode()
    return (folder / vector["body"] / "body").read_bytes()


def shown(notification: Notification) -> dict[str, object]:
    """A notification in the words of a case file: only what is set."""
    facts = {
        "kind": notification.kind.value,
        "recipient": notification.recipient,
        "ambiguous": notification.ambiguous or None,
        "candidates": list(notification.candidates) or None,
        "bounce_class": notification.bounce_class,
        "reject_reason": notification.reject_reason,
        "occurred_at": notification.occurred_at,
        "time_source": notification.time_source.value,
        "message_id": notification.message_id,
        "suppress": notification.suppress or None,
        "scope": notification.scope or None,
        "extras": dict(notification.extras) or None,
    }
    return {name: value for name, value in facts.items() if value is not None}


def expected(event: Mapping[str, object]) -> dict[str, object]:
    """What a case file expects of a notification; keys, which are not shown, aside."""
    facts = {n: value for n, value in event.items() if n not in ("key", "synthesised", "meaning")}
    if "candidates" in facts:
        facts["ambiguous"] = True
    at = facts.get("occurred_at")
    if isinstance(at, datetime):
        facts["occurred_at"] = instant(at.isoformat())
    return facts
