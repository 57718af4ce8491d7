"""Other processes of this machine: who ends them, and when they end by themselves."""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator

_SECONDS_A_LOOK = 0.5  # at whether the parent is there


@contextlib.contextmanager
def ctrl_c_ignored() -> Iterator[None]:
    """Let processes started within ignore Ctrl-C from the beginning: they are stopped instead."""
    if threading.current_thread() is not threading.main_thread():  # has no say in signals
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def end_with_parent() -> None:
    """Let this process end when the one that started it does, even by a kill."""
    threading.Thread(target=_wait_and_end, args=(os.getppid(),), daemon=True).start()


def _wait_and_end(parent: int) -> None:
    while os.getppid() == parent:  # else another process has taken this one over
        time.sleep(_SECONDS_A_LOOK)
    os._exit(1)
