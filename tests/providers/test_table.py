"""The README tells of every provider what it declares, and its examples work."""

import re
from pathlib import Path
from types import ModuleType

import pytest

from hookbox import assembly
from hookbox.providers import PROVIDERS, declared_feed, hmac
from hookbox.settings import parse
from tests.providers.table import rows

README = Path(__file__).parents[2] / "README.md"


def test_table_of_providers_is_what_they_declare() -> None:
    """When this fails: python -m tests.providers.table prints what belongs there."""
    lines = README.read_text().splitlines()
    start = lines.index(rows()[0])
    end = next(n for n in range(start, len(lines)) if not lines[n].startswith("|"))
    assert lines[start:end] == rows()


@pytest.mark.parametrize("name", PROVIDERS)
def test_readme_has_a_row_for_every_setting_of_a_provider(name: str) -> None:
    """Those of `hmac` are told in a text of their own, which its presets refer to."""
    text = README.read_text()
    options = PROVIDERS[name].options
    if "signature_pattern" in options:
        assert [
            key for key in options if not re.search(rf"^    {key} = ", text, re.MULTILINE)
        ] == []
        return
    row = rf"^\| [^|]*`{name}`[^|]* \| `{{}}` \| "
    assert [key for key in options if not re.search(row.format(key), text, re.MULTILINE)] == []


@pytest.mark.parametrize("module", [hmac, declared_feed])
def test_readme_describes_declared_settings_as_the_code_does(module: ModuleType) -> None:
    """All but the map, which the code's reader finds elsewhere."""
    described = [line for line in (module.__doc__ or "").splitlines() if " # " in line]
    readme = README.read_text().splitlines()
    missing = [line for line in described if line not in readme]
    assert [line for line in missing if "see providers/plain.py" not in line] == []
    assert len(described) > 5


def test_every_configuration_in_the_readme_can_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    examples = re.findall(r"```toml\n(.*?)```", README.read_text(), re.DOTALL)
    assert examples
    for example in examples:
        for name in re.findall(r'"env:([A-Z_]+)"', example):
            monkeypatch.setenv(name, "a secret of thirty-two letters ..")
        settings = parse(example, Path("hookbox.toml"), Path("state"))
        assert assembly.live_sources(settings, {}, {}).keys() == {
            source.name for source in settings.sources
        }
