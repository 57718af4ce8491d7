"""Kernels compiled by Numba, and kept for the next process wherever there is a place for them.

Numba keeps them beside the module or under HOME. Where neither can be written (a read-only
container, a service user) they go to a temporary folder of the user's own; where there is none
either, or it is full, they are compiled in memory. Whichever it is, the machine code is the same.
"""

import contextlib
import functools
import os
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba


def compiled(function: Callable[..., Any], nogil: bool = False) -> Callable[..., Any]:
    """The function as machine code; what it calls itself is `numba.njit`.

    With `nogil` other threads of Python run beside it.
    """
    njit = functools.partial(numba.njit, nogil=nogil)
    kernel = _kept(function, njit)

    @functools.wraps(function)
    def call(*values: Any) -> Any:
        nonlocal kernel
        with _ctrl_c_waits():
            try:
                return kernel(*values)
            except Exception:  # its file is damaged or cannot be written; kernels raise none
                kernel = njit(function)
                return kernel(*values)

    return call


@contextlib.contextmanager
def _ctrl_c_waits() -> Iterator[None]:
    """Hold Ctrl-C back for a moment: in the midst of LLVM it would be a traceback, and be lost."""
    before, held = signal.getsignal(signal.SIGINT), list[int]()
    if before is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, lambda number, _: held.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if held:
            signal.raise_signal(signal.SIGINT)


def _kept(function: Callable[..., Any], njit: Callable[..., Any]) -> Any:
    try:
        return njit(cache=True)(function)
    except RuntimeError:  # "no locator available"
        folder = _own_folder()
    if folder is None:
        return njit(function)
    numba.config.CACHE_DIR = str(folder)  # type: ignore[attr-defined]
    try:
        return njit(cache=True)(function)
    except RuntimeError:
        return njit(function)


def _own_folder() -> Path | None:
    """A temporary folder that nobody else can write to: what lies in it is run."""
    try:
        folder = Path(tempfile.gettempdir()) / f"zsntta-kernels-{os.getuid()}"
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError:
        return None
    own = status.st_uid == os.getuid() and not status.st_mode & 0o077
    return folder if own and folder.is_dir() and not folder.is_symlink() else None
