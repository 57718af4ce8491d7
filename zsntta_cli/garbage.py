"""When Python searches for cycles of objects: seldom in a command, and afterwards as before it."""

import atexit
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_SELDOM = 50_000  # objects; at the usual threshold the search takes a tenth of a replay's time
_held = list[bool]()  # one a command that is being loaded or run


@contextmanager
def held_back() -> Iterator[None]:
    """Search for no cycles until `search_seldom`; at the end all is as it was before."""
    was_on, thresholds, frozen = gc.isenabled(), gc.get_threshold(), gc.get_freeze_count()
    gc.disable()
    _held.append(not frozen)  # who has frozen something could not tell ours from theirs
    atexit.unregister(_leave)
    atexit.register(_leave)
    try:
        yield
    finally:
        if _held.pop():
            gc.unfreeze()
        gc.set_threshold(*thresholds)
        (gc.enable if was_on else gc.disable)()


def search_seldom() -> None:
    """Search again within `held_back`, and not in what was imported meanwhile, which stays."""
    if _held and not gc.isenabled():
        if _held[-1]:
            gc.freeze()
        gc.set_threshold(_SELDOM)
        gc.enable()


def _leave() -> None:
    """Let go of the search, 30 ms, that ends a process: all goes with it.

    Not with torch, whose libraries tell of what they find left over.
    """
    if "torch" not in sys.modules:
        gc.freeze()
