"""The command `zsntta`, also as `python -m zsntta_cli`, and what happens before and after it."""

import atexit
import contextlib
import gc
import io
import os
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import NoReturn

_SELDOM = 50_000  # objects between searches for cycles: with Python's 700 a replay takes 1.3 times


def main() -> None:
    """Run the command line; whatever ends the program, it says so in one line."""
    gc.set_threshold(_SELDOM)
    atexit.register(_leave)
    sys.stdout = sys.stdout or io.StringIO()  # None if it is closed, as by `>&-`
    sys.stderr = sys.stderr or io.StringIO()
    if os.name != "posix":
        sys.exit("error: zsntta runs on Linux, on macOS and in Windows' WSL: type wsl --install.")
    if isinstance(sys.stdout, io.TextIOWrapper):  # a name may have letters that the terminal lacks
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        command = _loaded()
        try:
            command()
        finally:
            sys.stdout.flush()
    except KeyboardInterrupt:  # before a command runs, while its options are made
        _stop(signal.SIGINT, None)
    except RuntimeError as error:  # as Python 3.11 wraps Ctrl-C where a class is made
        if _comes_of_interrupt(error):
            _stop(signal.SIGINT, None)
        raise
    except (OSError, MemoryError, ImportError) as error:
        if _comes_of_interrupt(error):
            _stop(signal.SIGINT, None)
        if "--debug" in sys.argv:
            raise
        _end(error)


def _leave() -> None:
    """Skip the search for cycles at the end, which takes 30 ms: all memory is freed anyway.

    With torch the search is needed, as its libraries report objects that are left over.
    """
    if "torch" not in sys.modules:
        gc.freeze()


def _loaded() -> Callable[[], None]:
    """Import the command line with the command; Ctrl-C meanwhile ends the process at once.

    As an exception, Ctrl-C would be raised amid a library's import, which may turn it into any
    other error.
    """
    is_usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_usual:  # and not ignored, as in the background
        signal.signal(signal.SIGINT, _stop)
    from zsntta_cli.cli import main as command
    from zsntta_cli.cli import program

    if not any(word.startswith("--plugin") for word in sys.argv):  # which adds options to them
        program(sys.argv[1:])
    if is_usual:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        sys.unraisablehook = _interrupt_again
    return command


def _comes_of_interrupt(error: BaseException | None) -> bool:
    """Whether a library that was being imported has made an error of Ctrl-C."""
    while error and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def _interrupt_again(unraisable: "sys.UnraisableHookArgs") -> None:
    """Repeat a Ctrl-C that came within a callback or a finaliser a moment later, by SIGALRM.

    Python cannot raise anything there: it would print a traceback and go on.
    """
    if unraisable.exc_type is KeyboardInterrupt:
        signal.setitimer(signal.ITIMER_REAL, 0.01)
    else:
        sys.__unraisablehook__(unraisable)


def _stop(_signal: int, _frame: FrameType | None) -> NoReturn:
    os.write(2, b"interrupted.\n")
    os._exit(130)


def _end(error: OSError | MemoryError | ImportError) -> NoReturn:
    """End with one line on an error that no command words: a full disk, a missing library."""
    from zsntta_cli.errors import first_line

    reason = "there is not enough memory" if isinstance(error, MemoryError) else first_line(error)
    if isinstance(error, ModuleNotFoundError):
        reason = (
            f"{error.name} is not installed: pip install zsntta installs what all commands need"
        )
    with contextlib.suppress(OSError):
        sys.stderr.write(f"error: {reason}.\n")
        sys.stderr.flush()
    os._exit(1)  # nothing more can be written, and an orderly exit would try to


if __name__ == "__main__":
    main()
