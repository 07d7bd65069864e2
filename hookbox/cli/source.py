"""`hookbox source`: the senders that are configured, and adding one."""

import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from hookbox.cli import door, options, terminal
from hookbox.cli.box import Box, chosen, pass_box
from hookbox.cli.nouns import Noun
from hookbox.cli.source_certificate import make_certificate
from hookbox.cli.terminal import Column
from hookbox.errors import OperatorError
from hookbox.flows.sources import Source
from hookbox.settings import Settings, add_source, duration_text, parse, size_text
from hookbox.store.secrets import source_owner
from hookbox.store.views import Line

COLUMNS = (
    Column("SOURCE", "source"),
    Column("PROVIDER", "provider"),
    Column("SECRET", "secret"),
    Column("PREVIOUS", "previous_secret"),
    Column("URL", "url"),
)


def url(settings: Settings, name: str) -> str:
    """Where the sender of this source posts to."""
    listen = settings.server.listen[0]
    here = "https://YOUR-PROXY" if listen.path else f"http://{listen.text}"
    return f"{settings.server.public_url or here}/hooks/{name}"


@click.group(cls=Noun)
def command() -> None:
    """Sources, the senders that this box receives from: list, show, add.

    \b
    hookbox source
    hookbox source add shop svix
    """


command.add_command(make_certificate)


@command.command("list")
@options.as_json
@pass_box
def list_sources(box: Box, as_json: bool) -> None:
    """The configured sources, their URLs and where their secrets lie.

    \b
    hookbox source list
    """
    settings = box.settings()
    found = _lines(box, settings)
    if as_json:
        terminal.as_json(found)
    else:
        terminal.table(
            found, COLUMNS, none=f"no sources; next: {box.hint('source add NAME PROVIDER')}"
        )


def _lines(box: Box, settings: Settings) -> list[Line]:
    from hookbox.cli.slots import slots

    kept = {
        (line["owner"], line["slot"]): line["kept"]
        for line in slots(settings, box.state, box.clock.now())
    }
    return [
        {
            "source": each.name,
            "provider": each.provider,
            "secret": kept[source_owner(each.name), "current"],
            "previous_secret": kept.get((source_owner(each.name), "previous")),
            "url": url(settings, each.name),
        }
        for each in settings.sources
    ]


@command.command("show")
@options.source_argument
@options.as_json
@pass_box
def show_source(box: Box, source: str, as_json: bool) -> None:
    """One source: its URL, its rules, and what to do in the sender's console.

    \b
    hookbox source show demo
    """
    from hookbox.cli.check import live_sources

    settings = box.settings()
    chosen(settings, source)
    [line] = [line for line in _lines(box, settings) if line["source"] == source]
    if as_json:
        terminal.as_json([line])
        return
    live = live_sources(settings)[source]
    terminal.facts(_facts(line, live))
    click.echo()
    _tell_steps(box, settings, live)


def _facts(line: Line, source: Source) -> Iterator[tuple[str, str]]:
    provider, answers = source.provider, source.provider.answers
    yield "source", source.name
    yield "provider", f"{provider.name} ({provider.title})"
    yield "URL", str(line["url"])
    yield "secret", str(line["secret"])
    yield "previous secret", terminal.plain(line["previous_secret"])
    if provider.tolerance_s is not None:
        observed = source.trust.tolerance_s is None
        rule = ", only noted and never refused" if observed else ""
        yield "signed time within", f"{duration_text(provider.tolerance_s)}{rule}"
    yield "largest delivery", size_text(source.body_max)
    yield (
        "answers",
        (
            f"{answers.ok} accepted, {answers.refused} refused, {answers.unreadable} unreadable, "
            f"{answers.busy} come back later"
        ),
    )
    if provider.retry_horizon_s:
        yield "sender tries for", terminal.span(provider.retry_horizon_s)
    if source.polling is not None:
        yield "polled", f"every {duration_text(int(source.polling.every_s))}: {source.polling.url}"


def _tell_steps(box: Box, settings: Settings, source: Source) -> None:
    """What to do in the sender's console."""
    made = f"(what `{box.hint(f'secret set {source.name} --generate')}` prints)"
    for number, step in enumerate(source.provider.console_steps, 1):
        text = step.replace("{url}", url(settings, source.name)).replace("{secret}", made)
        click.echo(terminal.escaped(f"{number}. {text}"))


@command.command("add")
@click.argument("name")
@click.argument("provider")
@click.option(
    "--set",
    "pairs",
    multiple=True,
    metavar="KEY=VALUE",
    help="A setting of the source, such as tolerance=10m or map.kind=/event. May be repeated.",
)
@pass_box
def add(box: Box, name: str, provider: str, pairs: tuple[str, ...]) -> None:
    """Add a source to the configuration; a running server takes it live.

    VALUE is read as TOML where it is TOML, and as plain text otherwise. A secret does not belong
    here; `hookbox secret set NAME` asks for it.

    \b
    hookbox source add shop svix
    hookbox source add agent efa --set skew=observe
    """
    table = _table({"provider": provider}, pairs)
    settings, live = _tried(box.settings(), name, table)
    add_source(settings.config_path, name, table)
    running = door.ask(box.state, "reload", {}) is not None
    click.echo(f"source {name} added to {settings.config_path}\n")
    _tell_steps(box, settings, live)
    click.echo(f"\nURL:  {url(settings, name)}")
    if settings.server.public_url is None:
        terminal.say("set server.public_url to see the address that senders reach from outside")
    if live.provider.needs_secret and not live.trust.keys:
        click.echo(f"next: {box.hint(f'secret set {name}')}")
    if not running:
        terminal.say(f"no server is running; start it with: {box.hint('serve')}")


def _table(table: dict[str, Any], pairs: Iterable[str]) -> dict[str, Any]:
    """The source's settings, nested where a key has dots."""
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or not _put(table, key.split("."), _value(text)):
            raise click.BadParameter(f"{key!r}: write KEY=VALUE, each key once", param_hint="--set")
    return table


def _put(table: dict[str, Any], path: Sequence[str], value: object) -> bool:
    """Put the value there, unless something is there already; whether it was put."""
    first, *rest = path
    if rest:
        inner = table.setdefault(first, {})
        return isinstance(inner, dict) and _put(inner, rest, value)
    if not first or first in table:
        return False
    table[first] = value
    return True


def _value(text: str) -> object:
    try:
        found = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    return found["value"] if len(found) == 1 else text


def _tried(settings: Settings, name: str, table: dict[str, Any]) -> tuple[Settings, Source]:
    """What the configuration will be with this source. Raises ConfigError, the file untouched."""
    from hookbox.cli.check import live_sources

    with tempfile.TemporaryDirectory() as folder:
        draft = Path(folder) / settings.config_path.name
        draft.write_text(settings.text)
        try:
            add_source(draft, name, table)
        except OperatorError as error:
            told = str(error).replace(str(draft), str(settings.config_path))
            raise OperatorError(told) from None
        tried = parse(draft.read_text(), settings.config_path, settings.state)
    return tried, live_sources(tried)[name]
