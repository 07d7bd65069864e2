"""The program: the commands, with the web door handed to the one that serves.

Above both doors, which never import each other; so that commands which do not serve never load the
web framework.
"""

from collections.abc import Callable

from hookbox import cli
from hookbox.settings import Settings


def _serve(settings: Settings, load: Callable[[], Settings]) -> int:
    from hookbox.web.serve import serve

    return serve(settings, load)


def main() -> None:
    """The `hookbox` command."""
    cli.main(serve=_serve)


if __name__ == "__main__":
    main()
