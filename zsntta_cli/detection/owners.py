"""The writer of a state file: one process at a time, from its first write on.

When a process ends, for whatever reason, the system releases its locks.
"""

import os
import threading
import weakref
from pathlib import Path

from filelock import BaseFileLock, Timeout

from zsntta_cli.errors import StoreError
from zsntta_cli.files import check_target, lock_at, writing


class _Owned:
    """A state file that this process owns, with the number of its writers."""

    def __init__(self, lock: BaseFileLock) -> None:
        self.lock, self.writers = lock, 0


_LOCK = threading.RLock()  # a finalizer may come within
_OWNED: dict[tuple[int, str], _Owned] = {}  # by process (a fork owns nothing) and path
_OF_DETECTORS: "weakref.WeakKeyDictionary[object, set[str]]" = weakref.WeakKeyDictionary()


def own(path: Path) -> str:
    """Become a writer of a state file, and return what `disown` needs.

    Raises:
        StoreError: another process writes it.
    """
    place = os.path.realpath(path)
    with _LOCK:
        owned_file = _OWNED.get((os.getpid(), place)) or _Owned(_acquired(path, Path(place)))
        owned_file.writers += 1
        _OWNED[os.getpid(), place] = owned_file
    return place


def _acquired(path: Path, place: Path) -> BaseFileLock:
    with writing(path):
        place.parent.mkdir(parents=True, exist_ok=True)
        lock = lock_at(place.with_name(f".{place.name}.lock"), thread_local=False)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            raise StoreError(
                f"{path} is written by another process that runs: end that, or name another file."
            ) from None
    return lock


def disown(place: str) -> None:
    """Stop being a writer of a state file."""
    with _LOCK:
        owned_file = _OWNED.get((os.getpid(), place))
        if owned_file is None:  # of the process that forked this one
            return
        owned_file.writers -= 1
        if not owned_file.writers:
            del _OWNED[os.getpid(), place]
            owned_file.lock.release()


def own_as_long_as(detector: object, path: Path) -> None:
    """Become a writer of a state file for as long as a detector exists.

    A pipe or a device has no owner.
    """
    if check_target(path):
        return
    with _LOCK:
        places = _OF_DETECTORS.setdefault(detector, set())
        place = os.path.realpath(path)
        if place not in places or (os.getpid(), place) not in _OWNED:
            places.add(own(path))
            weakref.finalize(detector, disown, place)
