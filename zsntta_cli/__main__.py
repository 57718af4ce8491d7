"""The command `zsntta`, also as `python -m zsntta_cli`, and what happens before and after it."""

import os
import signal
import sys

TYPE_CHECKING = False  # nothing that takes time to import before Ctrl-C is taken care of
if TYPE_CHECKING:
    from types import FrameType
    from typing import NoReturn

_SELDOM = 50_000  # objects between searches for cycles: with Python's 700 a replay takes 1.3 times


def _stop(_signal: int = 0, _frame: "FrameType | None" = None) -> "NoReturn":
    os.write(2, b"interrupted.\n")
    os._exit(130)


# Until a command runs, Ctrl-C ends the process at once: as an exception it would be raised amid the
# import of a library, which may turn it into any other error.
_IS_USUAL = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # and not ignored
if _IS_USUAL:
    signal.signal(signal.SIGINT, _stop)


def main() -> None:
    """Run the command line; an error that ends the program is reported in one line."""
    import atexit
    import gc
    import io

    gc.set_threshold(_SELDOM)
    # The search for cycles at the end takes 30 ms, and all memory is freed anyway; with torch it is
    # needed, as its libraries report objects that are left over.
    atexit.register(lambda: None if "torch" in sys.modules else gc.freeze())
    # None if it is closed, as by `>&-`; some of what is printed is bytes
    sys.stdout = sys.stdout or io.TextIOWrapper(io.BytesIO())
    sys.stderr = sys.stderr or io.StringIO()
    if os.name != "posix":
        sys.exit("error: zsntta runs on Linux, macOS and WSL on Windows: type wsl --install.")
    if isinstance(sys.stdout, io.TextIOWrapper):  # a name may have letters that the terminal lacks
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        from zsntta_cli.cli import main as command
        from zsntta_cli.cli import program

        program(sys.argv[1:])
        if _IS_USUAL:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            signal.signal(signal.SIGALRM, signal.default_int_handler)
            sys.unraisablehook = _interrupt_again
        try:
            command()
        finally:
            sys.stdout.flush()
    except (Exception, KeyboardInterrupt) as error:
        cause: BaseException | None = error
        while cause and not isinstance(cause, KeyboardInterrupt):  # a library made an error of it
            cause = cause.__cause__ or cause.__context__
        if cause:
            _stop()
        if "--debug" in sys.argv or not isinstance(error, OSError | MemoryError | ImportError):
            raise
        _end(error)


def _interrupt_again(unraisable: "sys.UnraisableHookArgs") -> None:
    """Repeat a Ctrl-C that came within a callback or a finaliser a moment later, by SIGALRM.

    Python cannot raise anything there: it would print a traceback and go on.
    """
    if unraisable.exc_type is KeyboardInterrupt:
        signal.setitimer(signal.ITIMER_REAL, 0.01)
    else:
        sys.__unraisablehook__(unraisable)


def _end(error: Exception) -> "NoReturn":
    """End with one line on an error that no command explains: a full disk, a missing library."""
    import contextlib

    from zsntta_cli.errors import first_line

    reason = "there is not enough memory" if isinstance(error, MemoryError) else first_line(error)
    if isinstance(error, ModuleNotFoundError):
        reason = f"{error.name} is not installed: type pip install zsntta, which installs it"
    with contextlib.suppress(OSError):
        sys.stderr.write(f"error: {reason}.\n")
        sys.stderr.flush()
    os._exit(1)  # nothing more can be written, and an orderly exit would try to


if __name__ == "__main__":
    main()
