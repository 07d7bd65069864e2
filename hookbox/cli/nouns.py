"""Groups of commands about one noun."""

import click

SENTENCE_MAX = 200


class Noun(click.Group):
    """A noun alone lists: `hookbox events --since 2h` is `hookbox events list --since 2h`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        first = args[0] if args else ""
        if not first or (first.startswith("-") and first not in ctx.help_option_names):
            args = ["list", *args]
        return super().parse_args(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """First sentences whole, over several lines where they need them."""
        rows = [
            (name, found.get_short_help_str(limit=SENTENCE_MAX))
            for name in self.list_commands(ctx)
            if (found := self.get_command(ctx, name)) is not None
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)
