"""Settings of `hmac` that cannot work, or would prove less than they seem to, are refused."""

import re
from pathlib import Path

import pytest

from hookbox.errors import ConfigError
from hookbox.providers import PROVIDERS, hmac
from hookbox.providers.schemes import SETTINGS
from tests.providers.requests import PLAINEST, provider_of

TIMELESS = {name: value for name, value in PLAINEST.items() if name != "timestamp"}
NOWHERE = {name: value for name, value in PLAINEST.items() if name != "id"}

WRONG: list[tuple[dict[str, object], str]] = [
    # unknown, missing, or of the wrong type
    ({**PLAINEST, "signde": "{body}"}, "signde"),
    ({**PLAINEST, "tolerance_s": 5}, "tolerance_s"),
    ({}, "signature"),
    ({"signature": "header:x"}, "secret_encoding"),
    ({"signature": "header:x", "secret_encoding": "utf8"}, "signed"),
    ({**PLAINEST, "signed": ""}, "signed"),
    ({**PLAINEST, "signed": 1}, "signed"),
    ({**PLAINEST, "signed": ["{body}"]}, "signed"),
    ({**PLAINEST, "algorithm": "md5"}, "algorithm"),
    ({**PLAINEST, "secret_encoding": "auto"}, "secret_encoding"),
    ({**PLAINEST, "signature_encoding": "hexa"}, "signature_encoding"),
    ({**PLAINEST, "id_stable": "no"}, "id_stable"),
    ({**PLAINEST, "body": "xml"}, "body"),
    ({**PLAINEST, "signs": "both"}, "signs"),
    ({**PLAINEST, "url": 1}, "url"),
    ({**PLAINEST, "timestamp_unit": "us"}, "timestamp_unit"),
    # places and templates
    ({**PLAINEST, "signature": "X-Signature"}, "signature"),
    ({**PLAINEST, "signature": "header:"}, "signature"),
    ({**PLAINEST, "signature": "cookie:sig"}, "signature"),
    ({**PLAINEST, "signature": "header:X-\xe9"}, "signature"),
    ({**PLAINEST, "signature": "pair:v1"}, "signature"),
    ({**PLAINEST, "timestamp": "pair:t"}, "timestamp"),
    ({**PLAINEST, "id": "query:id"}, "id"),
    ({**PLAINEST, "id": ["/id"]}, "id"),
    ({**PLAINEST, "id": "{body}"}, "id"),
    ({**PLAINEST, "signed": "{ts}.{body"}, "signed"),
    ({**PLAINEST, "signed": "{ts}.{bdoy}"}, "signed"),
    ({**PLAINEST, "signed": "{header:}{body}"}, "signed"),
    ({**PLAINEST, "signature_pattern": "sha256="}, "signature_pattern"),
    ({**PLAINEST, "signature_pattern": ["{sig}", "{sig}{sig}"]}, "signature_pattern"),
    ({**PLAINEST, "natural_key": "/order"}, "natural_key"),
    ({**PLAINEST, "natural_key": ["order"]}, "natural_key"),
    ({**PLAINEST, "items": "events"}, "items"),
    ({**PLAINEST, "challenge": True}, "challenge"),
    ({**PLAINEST, "challenge": {"when": "/type", "equals": "x"}}, "challenge"),
    ({**PLAINEST, "challenge": {"when": "/a", "equals": "x", "echo": "b"}}, "challenge.echo"),
    ({**PLAINEST, "challenge": {"when": "/a", "equals": 1, "echo": "/b"}}, "equals"),
    # combinations
    ({**TIMELESS, "timestamp_unit": "ms", "signed": "{body}"}, "timestamp_unit"),
    ({**TIMELESS}, "signed"),  # {ts} stands for nothing
    ({**NOWHERE, "signed": "{id}.{ts}.{body}"}, "signed"),
    ({**PLAINEST, "id": "{/a}{/b}", "signed": "{id}.{ts}.{body}"}, "signed"),
    ({**PLAINEST, "signed": "{body}"}, "timestamp"),  # the time is not signed
    ({**TIMELESS, "signed": "nothing"}, "signed"),
    ({**PLAINEST, "signed": "{url}{ts}{body}"}, "signed"),
    ({**PLAINEST, "signed": "{ts}{form_sorted}"}, "signed"),
    ({**PLAINEST, "signature": "/sig"}, "signature"),
    ({**NOWHERE}, "id"),
    ({**PLAINEST, "id_stable": False}, "id_stable"),
    ({**PLAINEST, "items": "/events", "body": "form"}, "items"),
    ({**PLAINEST, "items": "/events", "id": "header:X-Id"}, "id"),
    # the map
    ({**PLAINEST, "map": "/x"}, "map"),
    ({**PLAINEST, "map": {"knid": "/x"}}, "map.knid"),
    ({**PLAINEST, "map": {"kind": "x"}}, "map.kind"),
    ({**PLAINEST, "map": {"kind": ["/x", 1]}}, "map.kind"),
    ({**PLAINEST, "map": {"recipient": "query:to"}}, "map.recipient"),
    ({**PLAINEST, "map": {"types": []}}, "map.types"),
    ({**PLAINEST, "map": {"types": {"hardfail": "bounce"}}}, "map.types.hardfail"),
    ({**PLAINEST, "map": {"types": {"hardfail": ["bounced"]}}}, "map.types.hardfail"),
]


@pytest.mark.parametrize(("settings", "where"), WRONG, ids=lambda value: str(value)[:90])
def test_setting_is_refused_with_its_name_and_a_mend(
    settings: dict[str, object], where: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        provider_of("hmac", settings)
    assert refused.value.where == where
    assert refused.value.message
    assert refused.value.mend


@pytest.mark.parametrize("name", sorted(PROVIDERS))
def test_no_provider_takes_a_setting_it_does_not_know(name: str) -> None:
    settings = {**(PLAINEST if name == "hmac" else {}), "colour": "red"}
    with pytest.raises(ConfigError) as refused:
        provider_of(name, settings)
    assert refused.value.where == "colour"


def test_near_miss_is_pointed_at() -> None:
    with pytest.raises(ConfigError, match="signature_pattern"):
        provider_of("hmac", {**PLAINEST, "signature_patern": "{sig}"})


def test_every_setting_stands_in_the_docstring_with_an_example() -> None:
    documented = set(re.findall(r"^    (\w+) = ", hmac.__doc__ or "", re.MULTILINE))
    assert documented == {*SETTINGS, "provider"}


def test_unconfigured_provider_says_what_it_needs() -> None:
    with pytest.raises(ConfigError):
        PROVIDERS["hmac"].split("anything")  # type: ignore[arg-type]


def test_documented_files_exist() -> None:
    """The docstring sends the reader to plain.py for the map."""
    assert (Path(hmac.__file__).parent / "plain.py").exists()
