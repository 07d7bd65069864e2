"""`hookbox source`: what is listed, and a file that is only changed for the better."""

import re

import pytest

from tests.cli.shell import CONFIG, Shell
from tests.witness.client import SECRET


def test_list_shows_where_senders_post_and_where_secrets_lie(shell: Shell) -> None:
    sealed, std = sorted(shell.lines("source", "list"), key=lambda line: line["source"])
    assert std == {
        "source": "std",
        "provider": "standardwebhooks",
        "secret": "env:STD_SECRET",
        "previous_secret": None,
        "url": "http://127.0.0.1:8080/hooks/std",
    }
    assert sealed["secret"] == "missing"
    assert shell("source").stdout.count("\n") == 3


def test_show_has_rules_and_console_steps_with_the_url(shell: Shell) -> None:
    shell.config.write_text(f'[server]\npublic_url = "https://hooks.example.com"\n{CONFIG}')
    told = shell("source", "show", "std").stdout
    assert re.search(r"^URL +https://hooks\.example\.com/hooks/std$", told, re.MULTILINE)
    assert re.search(r"^1\. .*https://hooks\.example\.com/hooks/std", told, re.MULTILINE)
    assert re.search(r"^answers +200 accepted, 401 refused", told, re.MULTILINE)
    assert "{" not in told


def test_unknown_source_exits_1_and_names_the_known_ones(shell: Shell) -> None:
    result = shell("source", "show", "shop")
    assert result.exit_code == 1
    assert "sealed, std" in result.stderr


def test_added_source_stands_in_the_file_and_is_explained(shell: Shell) -> None:
    result = shell("source", "add", "shop", "svix", "--set", "tolerance=10m")
    assert result.exit_code == 0, result.output
    assert shell.config.read_text().startswith(CONFIG)
    assert "http://127.0.0.1:8080/hooks/shop" in result.stdout
    assert "secret set shop" in result.stdout
    assert "no server is running" in result.stderr
    check = shell("check")
    assert check.exit_code == 0
    assert re.search(r"^source\.shop\.tolerance +10m$", check.stdout, re.MULTILINE)


def test_settings_are_toml_where_they_are_toml_and_text_otherwise(shell: Shell) -> None:
    words = ("body_max=65536", "map.kind=/event", 'map.types={ gone = "bounced" }', 'scope="7"')
    pairs = [word for pair in words for word in ("--set", pair)]
    result = shell("source", "add", "shop", "svix", *pairs)
    assert result.exit_code == 0, result.output
    shown = dict(line.split(maxsplit=1) for line in shell("check").stdout.splitlines() if line)
    assert shown["source.shop.body_max"] == "64 KiB"
    assert shown["source.shop.map.kind"] == "/event"
    assert shown["source.shop.map.types.gone"] == "bounced"
    assert shown["source.shop.scope"] == "7"


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("shop", "svx"), 78, "svix"),
        (("shop", "svix", "--set", "tolerence=5m"), 78, "tolerence"),
        (("shop", "svix", "--set", "tolerance=soon"), 1, "soon"),
        (("std", "svix"), 1, "std"),
        (("Shop", "svix"), 1, "small letters"),
        (("shop", "svix", "--set", "tolerance"), 2, "KEY=VALUE"),
        (("shop", "svix", "--set", "skew=observe", "--set", "skew=enforce"), 2, "each key once"),
        (("shop", "svix", "--set", "provider=efa"), 2, "each key once"),
        (("shop", "svix", "--set", "a=1", "--set", "a.b=1"), 2, "each key once"),
    ],
)
def test_source_that_could_not_run_is_not_added(
    shell: Shell, words: tuple[str, ...], code: int, told: str
) -> None:
    result = shell("source", "add", *words)
    assert result.exit_code == code, result.output
    assert told in result.stderr
    assert shell.config.read_text() == CONFIG


def test_refusal_speaks_of_the_file_that_is_meant(shell: Shell) -> None:
    """It is tried out on a copy, which is nobody's business."""
    assert str(shell.config) in shell("source", "add", "std", "svix").stderr


def test_added_source_is_taken_live_by_the_running_server(serving: Shell) -> None:
    result = serving("source", "add", "shop", "standardwebhooks")
    assert result.exit_code == 0, result.output
    assert "no server is running" not in result.stderr
    assert serving("secret", "set", "shop", typed=SECRET).exit_code == 0
    result = serving("simulate", "shop", "bounced", "--to", "ann@example.com")
    assert result.exit_code == 0, result.output
