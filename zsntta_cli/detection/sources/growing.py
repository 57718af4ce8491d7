"""Folders that fill up: looked at again and again, which works on any file system."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from zsntta_cli.detection.sources.folders import images_below
from zsntta_cli.detection.sources.item import Item

_STILL = 2  # looks in a row at which a file is as it was at the one before

Seen = dict[str, tuple[int, int]]  # path -> size, time of its content in nanoseconds


class Growing:
    """Which images of some folders are finished, and were not taken before."""

    def __init__(self, folders: Sequence[Path], seen: Seen | None = None) -> None:
        self.seen: Seen = {} if seen is None else seen  # as they were when they were taken
        self._folders = folders
        self._waiting: dict[str, tuple[tuple[int, int], int]] = {}

    def look(self) -> list[Item]:
        """Images that stand still, the older first; each until it is taken.

        One that changes after it was taken is another one. An empty file is not finished.
        """
        waiting, ready = {}, []
        for item in self._all():
            path, now = os.path.abspath(item.source), _status(item)
            if now is None or now[0] == 0 or self.seen.get(path) == now:
                continue
            before, still = self._waiting.get(path, (None, 0))
            still = still + 1 if before == now else 0
            waiting[path] = (now, still)
            if still >= _STILL:
                ready.append((now[1], path, item))
        self._waiting = waiting
        return [item for *_, item in sorted(ready, key=lambda one: one[:2])]

    def _all(self) -> Iterable[Item]:
        return (item for folder in self._folders for item in images_below(folder))

    def take(self, items: Sequence[Item]) -> None:
        """Some of those that stood still were judged, as they were at the last look."""
        for item in items:
            path = os.path.abspath(item.source)
            self.seen[path], _ = self._waiting.pop(path)


def _status(item: Item) -> tuple[int, int] | None:
    """Size and time of an item's file; None where there is none (any more)."""
    if item.file is None:
        return None
    try:
        status = os.stat(item.file)
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns
