"""Where the files lie, the first configuration, and adding a source to one."""

import os
import re
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookbox.errors import ConfigError, OperatorError
from hookbox.settings import DEMO_CONFIG, add_source, load, parse, places, write_config
from hookbox.settings.files import _source_text


@pytest.fixture
def system(tmp_path: Path) -> Path:
    """A machine's root with a configuration in /etc."""
    path = tmp_path / "etc/hookbox/hookbox.toml"
    path.parent.mkdir(parents=True)
    path.write_text("")
    return tmp_path


def test_person_without_system_configuration_uses_their_own_places(tmp_path: Path) -> None:
    home = Path.home()
    assert places(None, None, root=tmp_path) == (
        home / ".config/hookbox/hookbox.toml",
        home / ".local/share/hookbox",
    )


def test_system_configuration_brings_the_system_state(system: Path) -> None:
    expected = (system / "etc/hookbox/hookbox.toml", system / "var/lib/hookbox")
    assert places(None, None, root=system) == expected
    assert places(str(expected[0]), None, root=system) == expected


def test_another_configuration_leaves_the_system_state_alone(system: Path) -> None:
    _, state = places("/elsewhere/hookbox.toml", None, root=system)
    assert not state.is_relative_to(system / "var")


def test_environment_wins_over_the_system(system: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOKBOX_CONFIG", "/e/hookbox.toml")
    monkeypatch.setenv("HOOKBOX_STATE", "/e/state")
    assert places(None, None, root=system) == (Path("/e/hookbox.toml"), Path("/e/state"))


def test_flags_win_over_the_environment(system: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOKBOX_CONFIG", "/e/hookbox.toml")
    monkeypatch.setenv("HOOKBOX_STATE", "/e/state")
    expected = (Path("/f/hookbox.toml"), Path("/f/state"))
    assert places("/f/hookbox.toml", "/f/state", root=system) == expected


def test_places_are_full_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert places("a.toml", "~/s", root=tmp_path) == (tmp_path / "a.toml", Path.home() / "s")


def test_demo_configuration_is_what_it_says_it_is(tmp_path: Path) -> None:
    settings = parse(DEMO_CONFIG, tmp_path, tmp_path)
    [source] = settings.sources
    assert (source.name, source.provider, source.secret) == ("demo", "standardwebhooks", None)
    assert settings.destinations == ()
    assert max(map(len, DEMO_CONFIG.splitlines())) <= 100


def test_every_suggestion_in_the_demo_configuration_can_be_taken(tmp_path: Path) -> None:
    """Each commented setting works when its # is removed, and the values shown are the defaults."""
    plain = parse(DEMO_CONFIG, tmp_path, tmp_path)
    suggested = re.sub(r"^# (?=\[|\w+ = )", "", DEMO_CONFIG, flags=re.MULTILINE)
    settings = parse(suggested, tmp_path, tmp_path)
    assert settings.server.body_max == plain.server.body_max
    assert settings.retention == plain.retention
    assert settings.suppression == plain.suppression
    assert settings.sources[0].skew == "observe"
    assert "\n# " in suggested
    assert not re.search(r"^# *\w+ = ", suggested, re.MULTILINE)


def test_new_configuration_is_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "new/folder/hookbox.toml"
    write_config(path, DEMO_CONFIG)
    assert path.read_text() == DEMO_CONFIG
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_existing_configuration_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "hookbox.toml"
    path.write_text("mine")
    with pytest.raises(OperatorError, match="is there already"):
        write_config(path, DEMO_CONFIG)
    assert path.read_text() == "mine"


def test_unwritable_place_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OperatorError, match=r"file/hookbox.toml cannot be written: "):
        write_config(tmp_path / "file/hookbox.toml", DEMO_CONFIG)


def test_text_that_cannot_be_written_leaves_no_file(tmp_path: Path) -> None:
    path = tmp_path / "hookbox.toml"
    with pytest.raises(UnicodeEncodeError):
        write_config(path, "# \ud800")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "hookbox.toml"
    write_config(path, DEMO_CONFIG)
    path.chmod(0o640)
    return path


def test_source_is_added_below_what_stands_there(config: Path) -> None:
    table = {
        "provider": "efa",
        "secret": "env:AGENT",
        "topics": ["a", 'b"\n'],
        "poll": {"url": "https://api.example.com/events", "token": "env:T", "every": "20m"},
        "suppress_ambiguous": True,
    }
    add_source(config, "agent", table)
    text = config.read_text()
    assert text.startswith(DEMO_CONFIG)
    assert "\n\n[source.agent]\nprovider" in text
    [_, source] = load(config, config.parent).sources
    assert (source.name, source.provider, str(source.secret)) == ("agent", "efa", "env:AGENT")
    assert source.options == {"topics": ["a", 'b"\n']}
    assert source.poll is not None
    assert (str(source.poll.token), source.poll.every_s) == ("env:T", 1200)
    assert source.suppress_ambiguous


def test_changed_file_keeps_its_mode_and_leaves_nothing_beside_it(config: Path) -> None:
    add_source(config, "agent", {"provider": "efa"})
    assert stat.S_IMODE(config.stat().st_mode) == 0o640
    assert list(config.parent.iterdir()) == [config]


def test_linked_configuration_stays_a_link(config: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.toml"
    link.symlink_to(config)
    add_source(link, "agent", {"provider": "efa"})
    assert link.is_symlink()
    assert "[source.agent]" in config.read_text()


@pytest.mark.parametrize(
    ("name", "table", "reason"),
    [
        ("demo", {"provider": "efa"}, "a source named demo already"),
        ("Agent", {"provider": "efa"}, "cannot be a source's name"),
        ("agent", {}, "`provider` is missing"),
        ("agent", {"provider": "efa", "secret": "whsec_abc"}, "not a reference"),
    ],
)
def test_unusable_source_is_not_added(
    config: Path, name: str, table: dict[str, object], reason: str
) -> None:
    with pytest.raises(OperatorError, match=reason):
        add_source(config, name, table)
    assert config.read_text() == DEMO_CONFIG


def test_broken_configuration_is_not_touched(config: Path) -> None:
    config.write_text("[server\n")
    with pytest.raises(ConfigError):
        add_source(config, "agent", {"provider": "efa"})
    assert config.read_text() == "[server\n"


def test_inline_sources_are_left_to_the_person(config: Path) -> None:
    """TOML closes an inline table for good; nothing can be added to it from below."""
    config.write_text('source = { a = { provider = "efa" } }\n')
    with pytest.raises(OperatorError, match="cannot be added"):
        add_source(config, "agent", {"provider": "efa"})
    assert "agent" not in config.read_text()


def test_file_without_a_last_line_end_gains_one(config: Path) -> None:
    config.write_text("# none")
    add_source(config, "agent", {"provider": "efa"})
    assert config.read_text() == '# none\n\n[source.agent]\nprovider = "efa"\n'


plain = st.one_of(st.text(max_size=8), st.integers(-99, 99), st.booleans())
options = st.dictionaries(
    st.text(alphabet='abc-_. "é', min_size=1, max_size=5),
    st.one_of(plain, st.lists(plain, max_size=3), st.dictionaries(st.sampled_from("xyz"), plain)),
    max_size=4,
)


@given(options)
def test_any_options_survive_being_written(table: dict[str, object]) -> None:
    text = DEMO_CONFIG + _source_text("agent", {"provider": "efa", **table})
    assert parse(text, Path("c"), Path("s")).sources[1].options == table


def test_group_that_may_read_the_file_still_may(config: Path) -> None:
    if os.geteuid():
        pytest.skip("only root can give a file away")
    os.chown(config, 1234, 4321)
    add_source(config, "agent", {"provider": "efa"})
    assert (config.stat().st_uid, config.stat().st_gid) == (1234, 4321)
