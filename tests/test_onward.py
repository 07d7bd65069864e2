"""Destinations as they are configured: read strictly, kept while they stay the same, given keys."""

import base64
from dataclasses import fields
from pathlib import Path

import pytest

from hookbox import onward
from hookbox.bounds import is_own_door
from hookbox.errors import ConfigError
from hookbox.flows.forward import SCHEDULE_S, Outlet
from hookbox.model import Kind, Order, Slot
from hookbox.settings import DestinationSettings, Settings, masked, parse
from hookbox.store import database, schema, secrets

README = Path(__file__).resolve().parent.parent / "README.md"
SECRET = "whsec_" + base64.b64encode(b"0123456789abcdef0123456789abcdef").decode()
OTHER = "whsec_" + base64.b64encode(b"fedcba9876543210fedcba9876543210").decode()
SEALED = {"app": {Slot.CURRENT: SECRET}}

SOURCE = '[source.shop]\nprovider = "efa"\n'
HTTP = '[destination.app]\ntype = "http"\nurl = "http://127.0.0.1:3000/in"\n'
EXEC = '[destination.script]\ntype = "exec"\ncommand = ["/bin/true", "-x"]\n'
JSONL = '[destination.file]\ntype = "jsonl"\npath = "/var/log/events.jsonl"\n'


def read(text: str) -> Settings:
    return parse(text, Path("/box/hookbox.toml"), Path("/box/state"))


def outlets(text: str, sealed: onward.Sealed = SEALED) -> dict[str, Outlet]:
    """The outlets as `check` makes them: a secret that is lacking will be made."""
    settings = read(text)
    return onward.outlets(settings, onward.with_made(settings, sealed), {})


# -- what may be said ----------------------------------------------------------------------------

FULL = (
    SOURCE
    + HTTP
    + """\
timeout = "3s"
networks = ["10.1.0.0/16", "192.168.1.7"]
sources = ["shop"]
kinds = ["bounced", "complained"]
domains = ["Example.COM", "bücher.example"]
retry = ["1s", "1m"]
concurrency = 16
order = "recipient"
failures_max = 3
secret = "env:APP_SECRET"
"""
)


def test_everything_that_is_written_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("APP_SECRET", OTHER)
    outlet = outlets(FULL, {})["app"]
    assert outlet.route.sources == {"shop"}
    assert outlet.route.kinds == {Kind.BOUNCED, Kind.COMPLAINED}
    assert outlet.route.domains == {"example.com", "xn--bcher-kva.example"}
    assert outlet.route.order is Order.RECIPIENT
    assert outlet.schedule_s == (1.0, 60.0)
    assert (outlet.concurrency, outlet.failures_max) == (16, 3)
    assert onward.routes(read(FULL)) == [outlet.route]


def test_little_needs_to_be_written() -> None:
    found = outlets(HTTP + EXEC + JSONL)
    assert list(found) == ["app", "script", "file"]
    assert [outlet.concurrency for outlet in found.values()] == [4, 4, 64]
    for outlet in found.values():
        assert outlet.schedule_s == SCHEDULE_S
        assert outlet.route.wants("any", ()) is False
        assert outlet.route.sources == outlet.route.kinds == outlet.route.domains == frozenset()


# The text, the line, the setting, a part of the reason, a part of the mend.
REFUSED = [
    ('[destination.a]\ntype = "htp"\n', 2, "destination.a.type", "no type", "`http`"),
    ('[destination.a]\ntype = "http"\n', 1, "destination.a", "`url` is missing", "needs one"),
    (HTTP + "ulr = 1\n", 4, "destination.app.ulr", "no such setting", "`url`"),
    (EXEC + 'url = "x"\n', 4, "destination.script.url", "no such setting", "command"),
    (HTTP + "timeout = 3\n", 4, "destination.app.timeout", "3 is not a duration", '"300s"'),
    (HTTP + 'networks = "10.0.0.1/8"\n', 4, "destination.app.networks", "host bits", ""),
    (HTTP + 'networks = "0.0.0.0/0"\n', 4, "destination.app.networks", "everybody", ""),
    ('[destination.a]\ntype = "http"\nurl = 7\n', 3, "destination.a.url", "not a text", ""),
    (
        '[destination.a]\ntype = "http"\nurl = "http://10.0.0.5/"\n',
        3,
        "destination.a.url",
        "must not connect to 10.0.0.5",
        'networks = ["10.0.0.0/8"]',
    ),
    ('[destination.a]\ntype = "http"\nurl = "x"\n', 3, "destination.a.url", "not a plain", ""),
    ('[destination.a]\ntype = "exec"\ncommand = []\n', 3, "destination.a.command", "empty", ""),
    (
        '[destination.a]\ntype = "jsonl"\npath = "x.jsonl"\n',
        3,
        "destination.a.path",
        "not a full path",
        '"/var/log/',
    ),
    (JSONL + "keep = 0\n", 4, "destination.file.keep", "above zero", ""),
    (JSONL + 'max_size = "big"\n', 4, "destination.file.max_size", "not a size", ""),
    (
        JSONL + '[destination.z]\ntype = "jsonl"\npath = "/var/./log/events.jsonl"\n',
        6,
        "destination.z.path",
        "destination file has the same",
        "another",
    ),
    (JSONL + "keep = 1001\n", 4, "destination.file.keep", "out of range", "1000"),
    (
        JSONL + '[destination.z]\ntype = "jsonl"\npath = "/var/log/events.jsonl.10"\n',
        6,
        "destination.z.path",
        "destination file has the same",
        "another",
    ),
    (
        JSONL.replace(".jsonl", ".jsonl.3") + JSONL.replace("file", "z") + "keep = 3\n",
        6,
        "destination.z.path",
        "writes /var/log/events.jsonl.3, too",
        "another",
    ),
    (
        '[destination.a]\ntype = "jsonl"\npath = "/box/x/../state/hookbox.db-wal"\n',
        3,
        "destination.a.path",
        "own state directory",
        "another",
    ),
    ('[destination.a]\ntype = "jsonl"\npath = "/"\n', 3, "destination.a.path", "not a full", ""),
    ('[destination.apply]\ntype = "exec"\n', 1, "destination.apply", "cannot be", "--to apply"),
    (EXEC + 'secret = "env:X"\n', 4, "destination.script.secret", "signs nothing", "remove"),
    (HTTP + 'secret = "env:NOT_SET"\n', 4, "destination.app.secret", "NOT_SET is not set", ""),
    (HTTP + 'sources = "shop"\n', 4, "destination.app.sources", "no source is called", "add"),
    (SOURCE + HTTP + 'sources = "shp"\n', 6, "destination.app.sources", "'shp'", "`shop`"),
    (HTTP + 'kinds = ["bounce"]\n', 4, "destination.app.kinds", "not a kind", "`bounced`"),
    (HTTP + 'domains = "a@b.example"\n', 4, "destination.app.domains", "not a domain", "behind"),
    (HTTP + 'domains = "*.example"\n', 4, "destination.app.domains", "not a domain", ""),
    (HTTP + 'retry = ["1s", "x"]\n', 4, "destination.app.retry", "'x' is not a duration", ""),
    (HTTP + "retry = []\n", 4, "destination.app.retry", "empty list", ""),
    (HTTP + f"retry = {['1s'] * 51}\n", 4, "destination.app.retry", "too many", "50"),
    (HTTP + "concurrency = 257\n", 4, "destination.app.concurrency", "out of range", "256"),
    (HTTP + "concurrency = 0\n", 4, "destination.app.concurrency", "above zero", ""),
    (HTTP + 'order = "event"\n', 4, "destination.app.order", "not an order", "recipient"),
    (HTTP + "failures_max = -1\n", 4, "destination.app.failures_max", "above zero", ""),
]


@pytest.mark.parametrize(("text", "line", "where", "reason", "mend"), REFUSED)
def test_unusable_destination_is_refused_with_line_reason_and_mend(
    text: str, line: int, where: str, reason: str, mend: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        outlets(text)
    assert (caught.value.line, caught.value.where) == (line, where)
    assert reason in caught.value.message
    assert mend in caught.value.mend


SERVER = """\
[server]
listen = ["0.0.0.0:8080", "[::1]:8090", "192.0.2.1:80"]
public_url = "https://hooks.example.com"
[local]
listen = "localhost:8081"
"""
OWN = [
    *("http://127.0.0.1:8080/hooks/shop", "http://localhost:8080/", "http://[::1]:8080/x"),
    *(
        "http://127.9.9.9:8080/",
        "http://[::1]:8090/",
        "http://localhost:8090/",
        "http://192.0.2.1/",
    ),
    *("http://127.0.0.1:8081/v1/events", "http://localhost:8081/", "http://[::1]:8081/"),
    "https://hooks.example.com/hooks/shop",
]
OTHERS = [
    *("http://127.0.0.1:3000/hooks/shop", "http://127.0.0.1:8090/", "http://localhost/"),
    *("https://hooks.example.com/shop", "https://192.0.2.1:8080/", "https://example.com:8081/"),
]


@pytest.mark.parametrize(
    ("url", "own"), [*((url, True) for url in OWN), *((url, False) for url in OTHERS)]
)
def test_box_is_not_its_own_destination(url: str, own: bool) -> None:
    """What it brought to itself it would bring again, and more of it each time."""
    settings = read(f'{SERVER}[destination.a]\ntype = "http"\nurl = "{url}"\n')
    assert is_own_door(settings, url) is own
    if own:
        with pytest.raises(ConfigError, match="door of this box itself") as caught:
            onward.outlets(settings, onward.with_made(settings, {}), {})
        assert (caught.value.line, caught.value.where) == (8, "destination.a.url")


@pytest.mark.parametrize("text", ["short", "whsec_c2hvcnQ=", "whpk_" + "A" * 44, "", "whsec_!!"])
def test_unusable_secret_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        outlets(HTTP, {"app": {Slot.CURRENT: text}})
    assert caught.value.where == "destination.app.secret"
    assert not text or text not in str(caught.value)


def test_readme_has_a_row_for_every_setting_of_a_destination() -> None:
    readme = README.read_text()
    names = {each.name.removesuffix("_s") for each in fields(DestinationSettings)}
    keys = names - {"name", "options", "line"}
    assert [key for key in keys if f"\n| `destination.NAME.{key}` | " not in readme] == []


def test_shown_settings_say_what_is_in_force() -> None:
    shown = dict(masked(read(FULL)))
    told = {key.removeprefix("destination.app."): value for key, value in shown.items()}
    assert told["kinds"] == "bounced, complained"
    assert told["retry"] == "1s, 1m"
    assert told["order"] == "recipient"
    assert told["secret"] == "env:APP_SECRET"
    assert told["url"] == "http://127.0.0.1:3000/in"
    assert dict(masked(read(JSONL)))["destination.file.kinds"] == "all"


def test_what_is_not_there_yet_is_told(tmp_path: Path) -> None:
    text = f'{EXEC}[destination.x]\ntype = "exec"\ncommand = "{tmp_path}/no"\n'
    assert onward.warnings(read(text)) == {
        f"destination x: {tmp_path}/no is not there, or may not be run; events wait until it is"
    }


# -- reload --------------------------------------------------------------------------------------


def test_unchanged_destination_is_the_same_one() -> None:
    before = outlets(HTTP + JSONL)
    after = onward.outlets(read(JSONL + "\n# moved\n" + HTTP), SEALED, before)
    assert after["app"] is before["app"]
    assert after["file"] is before["file"]


@pytest.mark.parametrize(
    ("text", "sealed"),
    [
        (HTTP + 'timeout = "9s"\n', SEALED),
        (HTTP + "concurrency = 9\n", SEALED),
        (HTTP + 'kinds = "bounced"\n', SEALED),
        (HTTP, {"app": {Slot.CURRENT: OTHER}}),
        (HTTP, {"app": {Slot.CURRENT: SECRET, Slot.PREVIOUS: OTHER}}),
        (EXEC.replace("script", "app"), SEALED),
    ],
)
def test_changed_destination_is_another_one(text: str, sealed: onward.Sealed) -> None:
    before = outlets(HTTP + JSONL)
    after = onward.outlets(read(text + JSONL), sealed, before)
    assert after["app"] is not before["app"]
    assert after["app"].fingerprint != before["app"].fingerprint
    assert after["file"] is before["file"]


# -- secrets -------------------------------------------------------------------------------------


def test_secret_is_made_once_and_only_where_it_is_needed(tmp_path: Path) -> None:
    settings = read(HTTP + EXEC + HTTP.replace("app", "ref") + 'secret = "env:X"\n')
    schema.prepare(tmp_path / database.FILE_NAME)
    seal = secrets.load_seal(tmp_path)
    with database.exclusive(tmp_path) as run:

        def ensured() -> onward.Sealed:
            run(lambda t: onward.ensure_secrets(t, seal, settings, 1_700_000_000_000))
            return run(lambda t: onward.open_secrets(t, seal, settings))

        first = ensured()
        assert ensured() == first
    assert list(first["app"]) == [Slot.CURRENT]
    assert first["script"] == first["ref"] == {}
    assert len(onward.key_of(first["app"][Slot.CURRENT])) == 32
    assert onward.with_made(settings, first) == first
    assert onward.lacking(settings, {}) == ["app"]
