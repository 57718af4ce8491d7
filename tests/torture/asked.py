"""What forks of a process answer that has imported all of the command line but torch."""

import os
import resource
import signal
import sys
import traceback
from pathlib import Path

import zsntta_cli.__main__
from zsntta_cli.cache import npz, store  # noqa: F401
from zsntta_cli.cli import program
from zsntta_cli.methods import METHODS
from zsntta_cli.report import items, lists, tables  # noqa: F401
from zsntta_cli.results import runner  # noqa: F401

MEMORY = 8 << 30  # bytes of address space: what wants more meets a MemoryError, and not the machine

assert program().commands  # imported, with all that their options need
assert all(METHODS.values())


def answer(words, cwd, place) -> None:
    """Answer a question; its output and the peak memory are files of a folder."""
    place = Path(place)
    os.chdir(cwd)
    for stream, name in ((0, os.devnull), (1, place / "stdout"), (2, place / "stderr")):
        flags = os.O_RDONLY if stream == 0 else os.O_WRONLY | os.O_CREAT
        os.dup2(os.open(name, flags), stream)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout, sys.stderr = (
        os.fdopen(fd, "w", closefd=False, errors=errors)
        for fd, errors in ((1, "strict"), (2, "backslashreplace"))
    )
    sys.argv, code = ["zsntta", *words], 1
    try:
        zsntta_cli.__main__.main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    (place / "peak").write_text(str(peak))
    os._exit(code)
