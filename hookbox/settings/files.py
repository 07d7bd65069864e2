"""The files themselves: where they lie, the first one, and how a source is added to one."""

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from hookbox.errors import ConfigError, OperatorError
from hookbox.settings.reading import NAME, NAME_MEND, load, parse

CONFIG_MODE = 0o600


def places(config: str | None, state: str | None, *, root: Path = Path("/")) -> tuple[Path, Path]:
    """The configuration file and the state directory.

    A flag wins over the environment, the environment over the system's own place, and that, where
    there is a configuration in it, over the person's. The system's state goes with the system's
    configuration only, so that trying out another file cannot touch it.
    """
    system = root / "etc/hookbox/hookbox.toml"
    named_config = config or os.environ.get("HOOKBOX_CONFIG")
    named_state = state or os.environ.get("HOOKBOX_STATE")
    if named_config:
        config_path = _full(named_config)
    else:
        config_path = system if _there(system) else _person("config") / "hookbox.toml"
    if named_state:
        return config_path, _full(named_state)
    return config_path, root / "var/lib/hookbox" if config_path == system else _person("data")


def _full(text: str) -> Path:
    return Path(text).expanduser().absolute()


def _there(path: Path) -> bool:
    """A file that may not even be looked at counts: another one instead of it would surprise."""
    try:
        return path.exists()
    except PermissionError:
        return True


def _person(kind: str) -> Path:
    # Data rather than state: what was acknowledged lives there, and backups often leave state out.
    import platformdirs  # costs 20 ms, and services name their places

    place = platformdirs.user_config_path if kind == "config" else platformdirs.user_data_path
    return place("hookbox", appauthor=False)


def write_config(path: Path, text: str) -> None:
    """Write a new configuration; one that is there already stays as it is."""
    if path.exists():
        raise OperatorError(f"{path} is there already; remove or rename it first")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, CONFIG_MODE)
    except OSError as error:
        raise OperatorError(f"{path} cannot be written: {error.strerror}") from None
    try:
        _fill(descriptor, text)
    except BaseException:
        path.unlink()  # half a configuration would be taken for a whole one
        raise


def _fill(descriptor: int, text: str) -> None:
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(descriptor)


def add_source(path: Path, name: str, table: Mapping[str, object]) -> None:
    """Append `[source.NAME]` to the file; all that stands there stays, comments included.

    The new text is read back before it takes the old one's place, so a broken file is never left.
    """
    settings = load(path, path.parent)
    if not NAME.fullmatch(name):
        raise OperatorError(f"{name!r} cannot be a source's name: {NAME_MEND}")
    if name in {source.name for source in settings.sources}:
        raise OperatorError(f"{path} has a source named {name} already; change it there")
    above = settings.text.rstrip("\n")
    text = f"{above}\n\n{_source_text(name, table)}"
    try:
        parse(text, path, path.parent)
    except ConfigError as error:
        raise OperatorError(f"the source cannot be added to {path}: {error}") from None
    try:
        _replace(path.resolve(), text)
    except OSError as error:
        raise OperatorError(f"{path} cannot be changed: {error.strerror}") from None


def _source_text(name: str, table: Mapping[str, object]) -> str:
    import tomlkit  # costs 30 ms, and only this needs it

    sources = tomlkit.table(is_super_table=True)
    sources.append(name, tomlkit.item(dict(table)))
    document = tomlkit.document()
    document.append("source", sources)
    return tomlkit.dumps(document)


def _replace(path: Path, text: str) -> None:
    """Put a new text in a file's place at once, under the old one's mode and owner."""
    old = path.stat()
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        os.fchown(descriptor, old.st_uid, old.st_gid)
        os.fchmod(descriptor, old.st_mode & 0o7777)
        _fill(descriptor, text)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


DEMO_CONFIG = """\
# The configuration of hookbox. Lines that begin with # show what can be set.
# Check it with:   hookbox check
# A running hookbox reads it again on SIGHUP. One that cannot be used is refused; the old one stays.

[server]                                      # the public door: /hooks/SOURCE and nothing else
listen = "127.0.0.1:8080"                     # or "[::]:8080", or "unix:/run/hookbox/hooks.sock"
# public_url = "https://hooks.example.com"    # what senders call; some of them sign it
# trusted_proxies = ["127.0.0.1"]             # whose X-Forwarded-For is believed
# body_max = "1 MiB"                          # larger deliveries are turned away

[local]                                       # the private door: health, and questions with a token
listen = "127.0.0.1:8081"                     # "off" leaves the socket in the state directory only

[retention]
# bodies = "30d"                              # how long an event's content is kept
# keys = "90d"                                # how long a repeated event is recognised

[suppression]
# transient_budget = 5                        # this many messages that bounce softly ...
# transient_window = "30d"                    # ... within this time suppress an address

# Each source has its own URL, /hooks/NAME. Try this one with:
#     hookbox simulate demo bounced --to someone@example.com
# Its secret is in the sealed store; replace it with:  hookbox secret set demo
[source.demo]
provider = "standardwebhooks"
# secret = "env:DEMO_SECRET"                  # or "file:/full/path", "credential:NAME"
# tolerance = "300s"                          # how far the signed time may be from our clock
# skew = "observe"                            # note the difference, refuse nothing for age
# suppress_ambiguous = true                   # also when it is unclear which recipient is meant

# Where events are handed on to once they are applied. Its secret is made at the start; the program
# that receives gets it from:  hookbox secret reveal app
# [destination.app]
# type = "http"                               # or "exec" with a command, or "jsonl" with a path
# url = "http://127.0.0.1:3000/email-events"
# kinds = ["bounced", "complained"]           # without it all of them

"""
