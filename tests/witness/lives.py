"""`hookbox poll agent --once`, once for each line on stdin, in a process of its own each time.

They are forked from one that has imported everything, so that two hundred of them take a minute.
Prints each one's process id, and its exit code when it has ended. An argument names a module that
plants a fault.
"""

import importlib
import os
import sys

import httpx  # noqa: F401  (what a life needs is there before it begins)

import hookbox.alone
import hookbox.cli.poll  # noqa: F401
from hookbox.__main__ import main


def live() -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    sys.argv = ["hookbox", "poll", "agent", "--once"]
    main()


for planted in sys.argv[1:]:
    importlib.import_module(planted)
for _ in sys.stdin:
    pid = os.fork()
    if not pid:
        live()
    print(pid, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
