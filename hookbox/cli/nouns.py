"""Groups of commands about one noun."""

import click


class Noun(click.Group):
    """A noun alone lists: `hookbox events --since 2h` is `hookbox events list --since 2h`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        first = args[0] if args else ""
        if not first or (first.startswith("-") and first not in ctx.help_option_names):
            args = ["list", *args]
        return super().parse_args(ctx, args)
