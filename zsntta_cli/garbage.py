"""Python's search for cycles of objects: seldom during a command, and afterwards as before it."""

import atexit
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_SELDOM = 50_000  # objects; at the usual threshold the search takes a tenth of a replay's time
# One item for each command that is loaded or run: whether the frozen objects are ours alone.
_held = list[bool]()


@contextmanager
def held_back() -> Iterator[None]:
    """Search for no cycles until `search_seldom`; restore the collector's state at the end."""
    was_on, thresholds, frozen = gc.isenabled(), gc.get_threshold(), gc.get_freeze_count()
    gc.disable()
    _held.append(not frozen)  # unfreezing at the end would also unfreeze what the caller has frozen
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
    """Search again within `held_back`, but not in what was imported meanwhile, as that stays."""
    if _held and not gc.isenabled():
        if _held[-1]:
            gc.freeze()
        gc.set_threshold(_SELDOM)
        gc.enable()


def _leave() -> None:
    """Skip the search at the end of a process, which takes 30 ms: all memory is freed anyway.

    With torch the search is needed, as its libraries report objects that are left over.
    """
    if "torch" not in sys.modules:
        gc.freeze()
