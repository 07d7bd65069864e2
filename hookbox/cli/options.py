"""Options and arguments that several commands share."""

import functools
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from hookbox.cli import terminal
from hookbox.clock import SystemClock
from hookbox.errors import ConfigError, HookboxError
from hookbox.settings import Settings, duration, load, places
from hookbox.store import views
from hookbox.store.views import Line, Page

F = TypeVar("F", bound=Callable[..., Any])

ID_MAX = 2**63 - 1  # what the database can hold
LIMIT_DEFAULT = 50
LIMIT_MAX = 1_000  # a page is read whole before it is shown

as_json = click.option(
    "--json", "as_json", is_flag=True, help="One JSON object a line, fields as in the SQL views."
)
limit = click.option(
    "--limit",
    type=click.IntRange(1, LIMIT_MAX),
    default=LIMIT_DEFAULT,
    show_default=True,
    help="How many at most.",
)


class _Id(click.types.IntParamType):
    """An id that can be looked for."""

    name = "id"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        found = super().convert(value, param, ctx)
        if not 0 <= found <= ID_MAX:
            self.fail(f"{value} cannot be an id", param, ctx)
        return found


ID = _Id()


def paged(function: Callable[..., None]) -> Callable[..., None]:
    """--limit, --after and --before, handed over as one Page."""

    @limit
    @click.option("--after", type=ID, metavar="ID", help="The ones right after this one.")
    @click.option("--before", type=ID, metavar="ID", help="The ones right before this one.")
    @functools.wraps(function)
    def with_page(
        *args: object, limit: int, after: int | None, before: int | None, **kwargs: object
    ) -> None:
        function(*args, page=Page(limit=limit, after=after, before=before), **kwargs)

    return with_page


def tell_of_more(found: Sequence[Line], page: Page, by: str = "id") -> None:
    """Where a page is full there may be more, and this is how to see it."""
    if len(found) < page.limit:
        return
    where = "--before" if page.after is None else "--after"
    terminal.say(f"there may be more: {where} {found[0 if page.after is None else -1][by]}")


Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def _completing(names_in: Callable[[Settings], list[str]]) -> Complete:
    """Shell completion with names from the configuration."""

    def complete(ctx: click.Context, _: click.Parameter, begun: str) -> list[CompletionItem]:
        files = ctx.find_root().params
        try:
            names = names_in(load(*places(files.get("config"), files.get("state"))))
        except HookboxError:
            return []
        return [CompletionItem(name) for name in names if name.startswith(begun)]

    return complete


def _sources(settings: Settings) -> list[str]:
    return [source.name for source in settings.sources]


def _destinations(settings: Settings) -> list[str]:
    return [destination.name for destination in settings.destinations]


_source_names = _completing(_sources)
destination_names = _completing(_destinations)
owner_names = _completing(lambda settings: _sources(settings) + _destinations(settings))


source = click.option(
    "--source", metavar="NAME", shell_complete=_source_names, help="Only of this source."
)
source_argument = click.argument("source", shell_complete=_source_names)


def scope(told: str) -> Callable[[F], F]:
    """--scope, with what it does here."""
    return click.option("--scope", metavar="NAME", help=told)


def instant(text: str) -> str:
    """An instant as the views write it, from `2h` (that long ago) or a date, perhaps with time."""
    try:
        return views.iso(SystemClock().now() - duration(text) * 1000)
    except ConfigError:
        pass
    try:
        return views.iso(round(datetime.fromisoformat(text).astimezone().timestamp() * 1000))
    except (ValueError, OverflowError) as error:
        raise click.BadParameter(
            f'{text!r} is no time; write it like "2h", "2026-01-31" or "2026-01-31T18:00Z"'
        ) from error


def since(default: str | None = None) -> Callable[[F], F]:
    """--since, with a default or without."""
    return click.option(
        "--since",
        type=instant,
        default=default,
        show_default=default is not None,
        metavar="TIME",
        help="Not older than this: 2h, 7d, or a date with or without a time.",
    )
