"""The program: the commands, with the web door handed to the one that serves.

Above both doors, which never import each other; so that commands which do not serve never load the
web framework.
"""

import os
import signal
from collections.abc import Callable

from hookbox import cli
from hookbox.settings import Settings


def _serve(settings: Settings, load: Callable[[], Settings]) -> int:
    for number in (signal.SIGHUP, signal.SIGUSR1):
        signal.signal(number, signal.SIG_IGN)  # until it is understood, it must not kill
    from hookbox.web.serve import serve

    _log_to_stderr()
    return serve(settings, load)


def _log_to_stderr() -> None:
    """One line per outcome, event then fields; the journal adds the time by itself."""
    import logging
    import time

    formatter = logging.Formatter("%(levelname)s %(message)s")
    if "JOURNAL_STREAM" not in os.environ:
        formatter = logging.Formatter(
            "%(asctime)s %(levelname)s %(message)s", datefmt="%Y-%m-%dT%H:%M:%SZ"
        )
        formatter.converter = time.gmtime
    stream = logging.StreamHandler()
    stream.setFormatter(formatter)
    logging.basicConfig(level=logging.INFO, handlers=[stream])


def main() -> None:
    """The `hookbox` command."""
    cli.main(serve=_serve)


if __name__ == "__main__":
    main()
