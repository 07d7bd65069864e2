"""What a configuration may say, what it means, and how the rest is refused."""

import contextlib
import tomllib
from collections.abc import Callable
from dataclasses import fields
from ipaddress import ip_network
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookbox.errors import ConfigError
from hookbox.model import Kind
from hookbox.settings import (
    DestinationSettings,
    Listen,
    LocalSettings,
    PollSettings,
    Reference,
    RetentionSettings,
    ServerSettings,
    Settings,
    SourceSettings,
    SuppressionSettings,
    load,
    masked,
    parse,
    suggestion,
)

README = Path(__file__).resolve().parent.parent / "README.md"
CONFIG, STATE = Path("/box/hookbox.toml"), Path("/box/state")

FULL = """\
[server]
listen = ["127.0.0.1:8080", "[::1]:8080", "unix:/run/hookbox/hooks.sock"]
public_url = "https://hooks.example.com/"
trusted_proxies = ["127.0.0.1", "10.0.0.0/8", "::1"]
body_max = "2 MiB"

[local]
listen = "localhost:8081"

[retention]
bodies = "7d"
keys = "90d"

[suppression]
transient_budget = 3
transient_window = "14d"

[source.shop-ses]
provider = "ses"
topics = ["arn:aws:sns:us-east-1:123456789012:ses-events"]

[source.agent]
provider = "efa"
secret = "file:/run/credentials/hookbox.service/agent"
previous_secret = "env:AGENT_OLD"
tolerance = "300s"
skew = "observe"
body_max = 4096
suppress_ambiguous = true
scope = "newsletter"
responses = { ok = 204, refused = 400, busy = 429 }
map.kind = "/type"

[source.agent.poll]
url = "https://api.example.com/events"
token = "credential:agent-token"
every = "15m"

[destination.app]
type = "http"
url = "http://127.0.0.1:3000/email-events"
kinds = ["bounced"]
"""


def read(text: str) -> Settings:
    return parse(text, CONFIG, STATE)


def refusal(text: str) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        read(text)
    return caught.value


def test_full_configuration_is_read() -> None:
    assert read(FULL) == Settings(
        config_path=CONFIG,
        state=STATE,
        server=ServerSettings(
            listen=(
                Listen(host="127.0.0.1", port=8080),
                Listen(host="::1", port=8080),
                Listen(path=Path("/run/hookbox/hooks.sock")),
            ),
            public_url="https://hooks.example.com",
            trusted_proxies=tuple(map(ip_network, ("127.0.0.1", "10.0.0.0/8", "::1"))),
            body_max=2 << 20,
        ),
        local=LocalSettings(listen=Listen(host="localhost", port=8081)),
        retention=RetentionSettings(bodies_s=7 * 86_400, keys_s=90 * 86_400),
        suppression=SuppressionSettings(transient_budget=3, transient_window_s=14 * 86_400),
        sources=(
            SourceSettings(
                name="shop-ses",
                provider="ses",
                options={"topics": ["arn:aws:sns:us-east-1:123456789012:ses-events"]},
                line=18,
            ),
            SourceSettings(
                name="agent",
                provider="efa",
                secret=Reference(kind="file", name="/run/credentials/hookbox.service/agent"),
                previous_secret=Reference(kind="env", name="AGENT_OLD"),
                tolerance_s=300,
                skew="observe",
                body_max=4096,
                suppress_ambiguous=True,
                scope="newsletter",
                responses={"ok": 204, "refused": 400, "busy": 429},
                options={"map": {"kind": "/type"}},
                poll=PollSettings(
                    url="https://api.example.com/events",
                    token=Reference(kind="credential", name="agent-token"),
                    every_s=900,
                ),
                line=22,
            ),
        ),
        destinations=(
            DestinationSettings(
                name="app",
                type="http",
                kinds=(Kind.BOUNCED,),
                options={"url": "http://127.0.0.1:3000/email-events"},
                line=39,
            ),
        ),
        text=FULL,
    )


def test_empty_file_means_the_defaults() -> None:
    settings = read("")
    assert [listen.text for listen in settings.server.listen] == ["127.0.0.1:8080"]
    assert settings.server.body_max == 1 << 20
    assert settings.local.listen == Listen(host="127.0.0.1", port=8081)
    assert settings.retention == RetentionSettings(bodies_s=30 * 86_400, keys_s=90 * 86_400)
    assert settings.suppression.transient_budget == 5
    assert settings.sources == settings.destinations == ()


def test_private_door_can_be_closed() -> None:
    assert read('[local]\nlisten = "off"\n').local.listen is None


def test_equal_retention_is_possible() -> None:
    assert read('[retention]\nbodies = "9d"\nkeys = "9d"\n').retention.bodies_s == 9 * 86_400


def test_free_ports_of_both_doors_never_collide() -> None:
    assert read('server.listen = "127.0.0.1:0"\nlocal.listen = "127.0.0.1:0"\n')


def test_previous_secret_may_stand_alone() -> None:
    """The current one is then in the sealed store."""
    [source] = read('[source.a]\nprovider = "efa"\nprevious_secret = "env:OLD"\n').sources
    assert (source.secret, source.previous_secret) == (None, Reference(kind="env", name="OLD"))


SOURCE = '[source.a]\nprovider = "efa"\n'

POLL = SOURCE + '[source.a.poll]\ntoken = "env:T"\nurl = "https://api.example.com/events"\n'

# The text, the line, the setting, a part of the reason, a part of the mend.
REFUSED = [
    ("x =\n", 1, "", "not TOML: invalid value", "in quotes"),
    ("[server]\n\nlisten = a\n", 3, "", "not TOML", ""),
    ('[local]\nlisten = "127.0.0.1:1"\n[local]\n', 3, "", "not TOML: cannot declare", "once"),
    ('a = """\n\n', 3, "", "not TOML: unterminated string", ""),
    ("[sever]\n", 1, "sever", "no such setting", "did you mean `server`?"),
    ("# \n[sources.a]\n", 2, "sources", "no such setting", "did you mean `source`?"),
    ("zzz = 1\n", 1, "zzz", "no such setting", "known here: server, local, retention"),
    ('[server]\nlistn = "x"\n', 2, "server.listn", "no such setting", "did you mean `listen`?"),
    ("server = 1\n", 1, "server", "where a table belongs", "[table]"),
    ("[server]\nlisten = 8080\n", 2, "server.listen", "8080 is not an address", '"unix:/run'),
    ('[server]\nlisten = ":8080"\n', 2, "server.listen", "':8080' is not an address", ""),
    ('[server]\nlisten = "::1:80"\n', 2, "server.listen", "not an address", '"[::1]:8080"'),
    ('[server]\nlisten = "[a]:80"\n', 2, "server.listen", "not an address", ""),
    ('[server]\nlisten = "http://a:80"\n', 2, "server.listen", "not an address", ""),
    ('[server]\nlisten = "a:http"\n', 2, "server.listen", "no usable port", "1 to 65535"),
    ('[server]\nlisten = "a:65536"\n', 2, "server.listen", "no usable port", ""),
    ('[server]\nlisten = "unix:x.sock"\n', 2, "server.listen", "its full path", ""),
    (f'[server]\nlisten = "unix:/{"x" * 107}"\n', 2, "server.listen", "at most 107", "shorter"),
    ("[server]\nlisten = []\n", 2, "server.listen", "is an empty list", "remove the line"),
    ('[server]\nlisten = ["a:1", "a:1"]\n', 2, "server.listen", "named twice", "once"),
    ('[server]\nlisten = ["0.0.0.0:1", "a:1"]\n', 2, "server.listen", "named twice", ""),
    ("[server]\npublic_url = 1\n", 2, "server.public_url", "1 is not a URL", "https://hooks"),
    ('[server]\npublic_url = "ftp://a"\n', 2, "server.public_url", "of a web server", ""),
    ('[server]\npublic_url = "a.example"\n', 2, "server.public_url", "of a web server", ""),
    ('[server]\npublic_url = "https://[a"\n', 2, "server.public_url", "not a URL", ""),
    ('[server]\npublic_url = "https://a:x"\n', 2, "server.public_url", "not a URL", ""),
    ('[server]\npublic_url = "https://a/b"\n', 2, "server.public_url", "has more", "is added"),
    ('[server]\npublic_url = "https://a?b"\n', 2, "server.public_url", "has more", ""),
    ('[server]\npublic_url = "https://a#"\n', 2, "server.public_url", "has more", ""),
    ('[server]\npublic_url = "https://u:p@a"\n', 2, "server.public_url", "user name", ""),
    ('[server]\ntrusted_proxies = ["x"]\n', 2, "server.trusted_proxies", "'x' is not", "10.0.0.0"),
    ("[server]\ntrusted_proxies = 1\n", 2, "server.trusted_proxies", "1 is not", ""),
    ('[server]\ntrusted_proxies = "10.0.0.1/8"\n', 2, "server.trusted_proxies", "host bits", ""),
    ('[server]\ntrusted_proxies = "0.0.0.0/0"\n', 2, "server.trusted_proxies", "everybody", ""),
    ('[server]\nbody_max = "1 T"\n', 2, "server.body_max", "'1 T' is not a size", "1 MiB"),
    ('[server]\nbody_max = "1 KB"\n', 2, "server.body_max", "out of range", "1 KiB to 100 MiB"),
    ('[server]\nbody_max = "101 MiB"\n', 2, "server.body_max", "out of range", ""),
    ('[local]\nlisten = "0.0.0.0:81"\n', 2, "local.listen", "reached from outside", "tunnel"),
    ('[local]\nlisten = "box.lan:81"\n', 2, "local.listen", "reached from outside", ""),
    (
        '[local]\nlisten = "127.0.0.1:8080"\n',
        2,
        "local.listen",
        "and 127.0.0.1:8080 takes",
        "own port",
    ),
    ('server.listen = "[::]:8081"\n', 1, "server.listen", "and [::]:8081 takes", ""),
    ("[retention]\nkeys = 90\n", 2, "retention.keys", "90 is not a duration", '"30d"'),
    ('[retention]\nkeys = "29d"\n', 1, "retention.bodies", "longer (30d) than keys (29d)", "29d"),
    ('[retention]\nbodies = "91d"\n', 2, "retention.bodies", "longer (91d)", 'keys = "91d"'),
    ("[suppression]\ntransient_budget = 0\n", 2, "suppression.transient_budget", "above zero", ""),
    ("[suppression]\ntransient_budget = true\n", 2, "suppression.transient_budget", "True", ""),
    ('[suppression]\ntransient_window = "0s"\n', 2, "suppression.transient_window", "range", ""),
    ("[source.a]\n", 1, "source.a", "`provider` is missing", 'provider = "standardwebhooks"'),
    ('[source]\nprovider = "efa"\n', 2, "source.provider", "where a table belongs", ""),
    ("[source.a]\nprovider = 1\n", 2, "source.a.provider", "1 is not a text", "quotes"),
    ('[source.a]\nprovider = " "\n', 2, "source.a.provider", "not a text", ""),
    (SOURCE + "[source.Shop]\n", 3, "source.Shop", "'Shop' cannot be a name", "small letters"),
    ('[source."a.b"]\n', 1, "source.a.b", "cannot be a name", ""),
    ("[source.-a]\n", 1, "source.-a", "cannot be a name", ""),
    ('[source."a\\n"]\n', 1, "source.a\n", "cannot be a name", ""),
    (f"[source.{'a' * 65}]\n", 1, f"source.{'a' * 65}", "cannot be a name", "at most 64"),
    (SOURCE + 'secret = ""\n', 3, "source.a.secret", "is empty", "hookbox secret set"),
    (SOURCE + "secret = 1\n", 3, "source.a.secret", "is not a reference", "env:NAME"),
    (SOURCE + 'previous_secret = ""\n', 3, "source.a.previous_secret", "is empty", ""),
    (SOURCE + "tolerance = 300\n", 3, "source.a.tolerance", "300 is not a duration", '"300s"'),
    (SOURCE + 'skew = "off"\n', 3, "source.a.skew", "'off'", '"enforce" or "observe"'),
    (SOURCE + 'body_max = "1 GiB"\n', 3, "source.a.body_max", "out of range", "100 MiB"),
    (SOURCE + 'suppress_ambiguous = "yes"\n', 3, "source.a.suppress_ambiguous", "'yes'", "true"),
    (SOURCE + "responses = { ok = 301 }\n", 3, "source.a.responses.ok", "301", "200 to 299"),
    (SOURCE + "responses.ok = true\n", 3, "source.a.responses.ok", "True cannot", ""),
    (SOURCE + "responses.refused = 410\n", 3, "source.a.responses.refused", "410", "never 410"),
    (SOURCE + "responses.refused = 200\n", 3, "source.a.responses.refused", "200", "400 to 599"),
    (SOURCE + "responses.unreadable = 302\n", 3, "source.a.responses.unreadable", "302", ""),
    (SOURCE + "responses.busy = 400\n", 3, "source.a.responses.busy", "400", "comes back"),
    (SOURCE + "responses.bussy = 503\n", 3, "source.a.responses.bussy", "no such", "`busy`"),
    (SOURCE + "poll = 1\n", 3, "source.a.poll", "where a table belongs", ""),
    (SOURCE + '[source.a.poll]\ntoken = "t"\n', 4, "source.a.poll.token", "not a reference", ""),
    (POLL.replace("token", "tokn"), 3, "source.a.poll", "`token` is missing", "env:NAME"),
    (POLL.replace("url", "urrl"), 3, "source.a.poll", "`url` is missing", "https://"),
    (POLL.replace("https", "http"), 5, "source.a.poll.url", "unencrypted", "use https"),
    (POLL.replace("api.", "u:p@api."), 5, "source.a.poll.url", "no address", "without a user"),
    (POLL.replace("api.example", "[::1"), 5, "source.a.poll.url", "names no host", "https://"),
    (POLL + 'every = "often"\n', 6, "source.a.poll.every", "not a duration", "15m"),
    (POLL + 'drive = "both"\n', 6, "source.a.poll.drive", "is not a way to", "webhook, cursor"),
    (POLL + 'scoped = "yes"\n', 6, "source.a.poll.scoped", "neither true nor false", ""),
    (POLL + 'read = "https://api.example.com/m"\n', 6, "source.a.poll.read", "the inbox", "{in"),
    (
        POLL + 'read = "https://other.example/{inbox_id}"\n',
        *(6, "source.a.poll.read", "another host", "same sender"),
    ),
    ('[destination.a]\nurl = "u"\n', 1, "destination.a", "`type` is missing", 'type = "http"'),
    ('[destination.A]\ntype = "http"\n', 1, "destination.A", "cannot be a name", ""),
    ('[destination.a]\ntype = "http"\nsecret = "s"\n', 3, "destination.a.secret", "not a ref", ""),
]


@pytest.mark.parametrize(("text", "line", "where", "reason", "mend"), REFUSED)
def test_unusable_configuration_is_refused_with_line_reason_and_mend(
    text: str, line: int, where: str, reason: str, mend: str
) -> None:
    error = refusal(text)
    assert (error.line, error.where) == (line, where)
    assert reason in error.message
    assert mend in error.mend
    assert str(error).startswith(f"line {line}: ")


LITERALS = ["whsec_c2VjcmV0", "env:whsec_c2VjcmV0", "secret:c2VjcmV0", "file:c2VjcmV0", "c2VjcmV0"]
STRAY = [
    '[source.a]\nprovider = "efa"\nsecret = "{}"\n',
    '[source.a]\nprovider = "efa"\nprevious_secret = "{}"\n',
    '[source]\nsecret = "{}"\n',
    '[source.a]\nprovider = "efa"\npoll.token = "{}"\n',
    '[destination.a]\ntype = "http"\npassword = "{}"\n',
    'secret = "{}"\n',
    '[server]\nsecret = "{}"\n',
]


@pytest.mark.parametrize("text", STRAY)
@pytest.mark.parametrize("literal", LITERALS)
def test_literal_secret_is_refused_without_being_repeated(text: str, literal: str) -> None:
    error = refusal(text.format(literal.replace("env:", "env:-")))
    assert "c2VjcmV0" not in f"{error}{error.where}{error!r}"


def test_provider_and_destination_keys_are_handed_on_as_they_stand() -> None:
    [source] = read(SOURCE + "zzz = [1, { a = true }]\n").sources
    assert source.options == {"zzz": [1, {"a": True}]}


def test_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "hookbox.toml"
    path.write_text(FULL)
    settings = load(path, tmp_path)
    assert settings == parse(FULL, path, tmp_path)


def _missing(path: Path) -> None:
    path.unlink(missing_ok=True)


@pytest.mark.parametrize(
    ("spoil", "line", "reason", "mend"),
    [
        (_missing, None, "there is no configuration at", "hookbox init"),
        (Path.mkdir, None, "Is a directory", "--config"),
        (lambda path: path.write_bytes(b"a = 1\n# \xff\n"), 2, "is not UTF-8", "as UTF-8"),
        (
            lambda path: path.write_bytes(b"#" * (1 << 20) + b"#"),
            None,
            "larger than 1 MiB",
            "right",
        ),
    ],
)
def test_unreadable_file_is_refused(
    tmp_path: Path, spoil: Callable[[Path], object], line: int | None, reason: str, mend: str
) -> None:
    path = tmp_path / "hookbox.toml"
    spoil(path)
    with pytest.raises(ConfigError) as caught:
        load(path, tmp_path)
    assert caught.value.line == line
    assert reason in caught.value.message
    assert mend in caught.value.mend


@given(st.text(alphabet='[]sourcelitn.="1{}\n', max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(ConfigError):
        read(text)


@pytest.mark.parametrize("text", ["127.0.0.1:8080", "[::1]:0", "box:1", "unix:/run/a b.sock"])
def test_listen_is_shown_as_it_is_written(text: str) -> None:
    assert Listen.parse(text).text == text


def test_shown_settings_fill_in_defaults_and_hide_secrets() -> None:
    text = FULL + 'headers = { Authorization = "Bearer abc", X-Api-Key = "abc", X-Box = "mine" }\n'
    shown = dict(masked(read(text)))
    assert shown["server.listen"] == "127.0.0.1:8080, [::1]:8080, unix:/run/hookbox/hooks.sock"
    assert shown["retention.bodies"] == "7d"
    assert shown["source.shop-ses.secret"] == "in the sealed store"
    assert shown["source.agent.secret"] == "file:/run/credentials/hookbox.service/agent"
    assert shown["source.agent.tolerance"] == "5m"
    assert shown["source.agent.responses.busy"] == "429"
    assert shown["source.agent.map.kind"] == "/type"
    assert shown["source.agent.poll.token"] == "credential:agent-token"
    assert shown["destination.app.kinds"] == "bounced"
    assert shown["destination.app.headers.Authorization"] == "(hidden)"
    assert shown["destination.app.headers.X-Api-Key"] == "(hidden)"
    assert shown["destination.app.headers.X-Box"] == "mine"


def test_every_written_setting_is_shown() -> None:
    def names(table: dict[str, object], path: str = "") -> set[str]:
        found: set[str] = set()
        for key, value in table.items():
            name = f"{path}{key}"
            found |= names(value, f"{name}.") if isinstance(value, dict) else {name}
        return found

    assert names(tomllib.loads(FULL)) <= set(dict(masked(read(FULL))))


@pytest.mark.parametrize("table", ["server", "local", "retention", "suppression"])
def test_readme_has_a_row_for_every_setting_of_a_table(table: str) -> None:
    readme = README.read_text()
    known = refusal(f"[{table}]\nqqqqqq = 1\n").mend.removeprefix("known here: ").split(", ")
    assert [key for key in known if f"\n| `{table}.{key}` | " not in readme] == []


def test_readme_has_a_row_for_every_setting_of_a_source() -> None:
    readme = README.read_text()
    names = {each.name.removesuffix("_s") for each in fields(SourceSettings)}
    keys = names - {"name", "options", "line"}
    assert [key for key in keys if f"\n| `source.NAME.{key}` | " not in readme] == []


def test_suggestion_falls_back_to_what_is_known() -> None:
    assert suggestion("tolerence", ["tolerance", "skew"]) == "did you mean `tolerance`?"
    assert suggestion("zzz", ["tolerance", "skew"]) == "known here: tolerance, skew"
