"""Find the finished and new images of folders, again and again at little cost.

A folder is listed when its time stamp changed, and for some seconds after that, as time stamps are
coarse; a large folder is listed less often, to limit the cost. An image that is overwritten in
place does not change its folder, so known images are checked in turns, a fixed number each time.
Unfinished images are checked each time. Folders are listed in turns as well: some file systems have
no time stamps of folders, and the target of a link may appear only later.
"""

import math
import os
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from zsntta_cli.detection.sources import SKIPPED, Scan, is_folder
from zsntta_cli.detection.sources.item import PHOTOS, Item, of_file

_STILL = 2  # looks in a row at which a file is as it was at the one before
_SETTLED = 4.0  # seconds for which a folder that changed is listed: FAT's stamps have two seconds
# Files and folders that are looked at in a second, whatever there is: 1 % of a core each.
_FILES, _FOLDERS = 3072, 2048
_LISTED = 512  # entries of quiet folders that are listed in a second, in turns: 0.3 % of a core
_BUSY = 16_384  # entries of a changing folder that are listed in a second: 10 % of a core

Status = tuple[int, int]  # size, time of the content in nanoseconds


class WatchedPlace(NamedTuple):
    """The place of an image: the number of its watched folder, and its path within that."""

    folder: int
    path: str


@dataclass
class _Listed:
    """A folder that is watched, or is within a watched one."""

    place: WatchedPlace
    path: Path
    key: tuple[int, int] | None = None  # device and inode of what is looked into by this path
    changed: int = -1  # its time stamp when it was listed
    looks: int = 0  # for which it is listed, whatever its time stamp
    entries: int = 0  # that were listed
    rest: int = 0  # looks at which it is not listed, as it is so large


@dataclass
class _Waiting:
    """An image that does not count as finished yet."""

    path: Path
    status: Status
    still: int = 0  # looks in a row


class Growing:
    """The images of some folders that are finished and were not taken before."""

    def __init__(
        self,
        folders: Mapping[int, Path],
        seen: dict[WatchedPlace, Status] | None = None,
        interval: float = 1,
        scan: Scan | None = None,
        earlier: Mapping[int, str] | None = None,
    ) -> None:
        """Watch folders by their numbers; `seen` are images as they were when they were taken.

        `interval` is the time between two looks in seconds; a look may take only a share of it.
        `earlier` are the folders that were watched before, whose images `seen` has too.
        """
        self.seen = {} if seen is None else seen
        self._folders = {number: os.fspath(path) for number, path in folders.items()}
        roots = {**(earlier or {}), **self._folders}
        self._real_roots = {number: os.path.realpath(path) for number, path in roots.items()}
        self._roots = [_Listed(WatchedPlace(number, ""), path) for number, path in folders.items()]
        self._listed: dict[tuple[int, int], _Listed] = {}  # by device and inode
        self._folder_turns: deque[tuple[int, int]] = deque()
        self._list_turns: deque[tuple[int, int]] = deque()
        self._credit = 0.0  # entries of quiet folders that may be listed now
        self._inodes: dict[WatchedPlace, int] = {}  # of images that are there and were taken
        self._turns: deque[WatchedPlace] = deque()  # those, in the order of the looks at them
        self._scan = scan or Scan()
        self._waiting: dict[WatchedPlace, _Waiting] = {}
        self._ready: dict[str, WatchedPlace] = {}  # by source
        self._owners: dict[str, WatchedPlace] = {}  # by the path that links lead to
        self.again = 0  # images that are there by another name as well
        self._hot = max(2, math.ceil(_SETTLED / max(interval, 1e-3)))
        self._per_look, self._folders_per_look, self._listed_per_look, self._busy = (
            max(64, math.ceil(most * interval)) for most in (_FILES, _FOLDERS, _LISTED, _BUSY)
        )
        for number, path in folders.items():  # what was moved from there, by a run that was killed
            for item in self._scan.moved_below(path):
                within = os.path.relpath(item.source, path)
                self._add_image(WatchedPlace(number, within), -1)

    def look(self) -> list[Item]:
        """Images that no longer change, the older first; each is given until it is taken.

        An image that changes after it was taken counts as a new one. An empty file is not finished.
        """
        before = {place: waiting.status for place, waiting in self._waiting.items()}
        for listed in self._due_folders():
            self._look_into(listed)
        self._list_in_turns()
        for _ in range(min(self._per_look, len(self._turns))):
            self._take_turn(self._turns.popleft())
        for place, status in before.items():
            self._look_again(place, status)
        ready = sorted(
            (waiting.status[1], waiting.path.is_symlink(), str(waiting.path), place)
            for place, waiting in self._waiting.items()
            if waiting.still >= _STILL
        )
        self._ready = {source: place for *_, source, place in ready if self._owns(place)}
        return [self._scan.current(of_file(Path(source))) for source in self._ready]

    def take(self, items: Sequence[Item]) -> list[tuple[WatchedPlace, Status]]:
        """Remember finished images as judged, with their state at the last look."""
        statuses = []
        for item in items:
            place = self._ready.pop(item.source)
            waiting = self._waiting.pop(place)
            self.seen[place] = waiting.status
            self._keep(place)
            statuses.append((place, waiting.status))
        return statuses

    def _owns(self, place: WatchedPlace) -> bool:
        """Whether no other name owns the file of a finished image.

        The first name that is judged owns a file, as long as it leads there; of those that are
        finished at one time, a link comes last, since it cannot be moved.
        """
        real = os.path.realpath(self._path(place))
        owner = self._owners.setdefault(real, place)
        owner_path = self._path(owner)
        leads_there = os.path.lexists(owner_path) and os.path.realpath(owner_path) == real
        is_first = owner == place or not leads_there
        if is_first and not self._was_taken(place, real):
            self._owners[real] = place
            return True
        self.seen[place] = self._waiting.pop(place).status
        self._keep(place)
        self.again += 1
        return False

    def _was_taken(self, place: WatchedPlace, real: str) -> bool:
        """Whether a watch before took the image, as it is now, in another of its folders."""
        status = self._waiting[place].status
        others = (
            WatchedPlace(number, os.path.relpath(real, root))
            for number, root in self._real_roots.items()
            if real.startswith(os.path.join(root, ""))
        )
        return any(other != place and self.seen.get(other) == status for other in others)

    def place(self, item: Item) -> WatchedPlace:
        """The place of an image of the last look."""
        return self._ready[item.source]

    def _keep(self, place: WatchedPlace, inode: int | None = None) -> None:
        """Check an image that was taken in its turn from now on."""
        if place not in self._inodes:
            self._turns.append(place)
        self._inodes[place] = _inode(self._path(place)) if inode is None else inode

    def _path(self, place: WatchedPlace) -> str:
        folder, within = place
        return f"{self._folders[folder]}/{within}"

    def _due_folders(self) -> Iterator[_Listed]:
        """Folders to check now: the watched ones, recently changed ones, and some others."""
        yield from self._roots
        due = [key for key, listed in self._listed.items() if listed.looks]
        for _ in range(min(self._folders_per_look, len(self._folder_turns))):
            key = self._folder_turns.popleft()
            if key in self._listed:
                self._folder_turns.append(key)
                due.append(key)
        for key in dict.fromkeys(due):
            if (listed := self._listed.get(key)) and listed.place.path:
                yield listed

    def _look_into(self, listed: _Listed) -> None:
        """List a folder if it may have changed, and forget one that is gone or replaced."""
        try:
            status = os.stat(listed.path)
        except OSError:
            status = None
        key = (status.st_dev, status.st_ino) if status else None
        if listed.key is not None and key != listed.key:
            self._listed.pop(listed.key, None)
            listed.key, listed.changed = None, -1
        if status and self._scan.leaves_out(status):
            return
        if key is None or status is None or not self._claim(key, listed):
            return
        if listed.rest:
            listed.rest -= 1
            listed.looks = max(min(listed.looks, 1), listed.looks - 1)  # 1: once more at the end
            return
        if status.st_mtime_ns != listed.changed:
            listed.changed, listed.looks = status.st_mtime_ns, self._hot
        elif listed.looks:
            listed.looks -= 1
        else:
            return
        self._list(listed)
        listed.rest = listed.entries // self._busy

    def _claim(self, key: tuple[int, int], listed: _Listed) -> bool:
        """Whether a folder is listed under this path: each is under one, so loops of links end."""
        other = self._listed.get(key)
        if other is listed:
            return True
        if other is not None and other.path.exists() and _key(other.path) == key:
            return False
        self._listed[key], listed.key = listed, key
        self._folder_turns.append(key)
        self._list_turns.append(key)
        return True

    def _list_in_turns(self) -> None:
        """List some folders whatever their time stamps say; all of them if they are small."""
        self._credit = min(self._credit + self._listed_per_look, self._listed_per_look)
        for _ in range(len(self._list_turns)):
            if self._credit <= 0:
                return
            key = self._list_turns.popleft()
            if (listed := self._listed.get(key)) is None:
                continue
            self._list_turns.append(key)
            if not listed.looks:  # else it is listed anyway
                self._list(listed)
            self._credit -= 1 + listed.entries

    def _list(self, listed: _Listed) -> None:
        try:
            with os.scandir(listed.path) as entries:
                visible = [
                    e for e in entries if not e.name.startswith(".") and e.name not in SKIPPED
                ]
        except OSError:
            return
        listed.entries = len(visible)
        folder, within = listed.place
        for entry in sorted(visible, key=lambda entry: entry.name):
            place = WatchedPlace(folder, f"{within}/{entry.name}" if within else entry.name)
            if is_folder(entry):
                self._add_folder(place, listed.path / entry.name)
            elif os.path.splitext(entry.name)[1].lower() in PHOTOS:
                self._add_image(place, entry.inode())

    def _add_folder(self, place: WatchedPlace, path: Path) -> None:
        key = _key(path)
        if key is None:
            return
        other = self._listed.get(key)
        if other is None or (other.path != path and _key(other.path) != key):
            self._look_into(_Listed(place, path))

    def _add_image(self, place: WatchedPlace, inode: int) -> None:
        """Wait for an image of a folder, if it is new or another file than before."""
        if place in self._waiting or self._inodes.get(place) == inode:
            return
        path = self._path(place)
        now = self._status(path)
        if now is None:  # a link to what is not there yet
            return
        if self.seen.get(place) == now:
            self._keep(place, inode)
            self._owners.setdefault(os.path.realpath(path), place)
        else:
            self._waiting[place] = _Waiting(Path(path), now)

    def _take_turn(self, place: WatchedPlace) -> None:
        """Check whether an image that was taken is unchanged."""
        if place in self._waiting:
            self._forget(place)
            return
        path = self._path(place)
        now = self._status(path)
        if now == self.seen.get(place):
            self._turns.append(place)
            return
        self._forget(place)
        if now is not None:
            self._waiting[place] = _Waiting(Path(path), now)

    def _status(self, path: Path | str) -> Status | None:
        """Size and time of a file at its current place."""
        if not self._scan.moved:  # each look asks this of thousands of files
            return _status(path)
        return _status(self._scan.current(of_file(Path(path))).file or path)

    def _forget(self, place: WatchedPlace) -> None:
        self._inodes.pop(place, None)

    def _look_again(self, place: WatchedPlace, before: Status) -> None:
        """Count the looks at which an image was unchanged."""
        waiting = self._waiting.get(place)
        if waiting is None:
            return
        now = self._status(waiting.path)
        if now is None or now == self.seen.get(place):
            del self._waiting[place]
            if now is not None:
                self._keep(place)
            return
        waiting.still = waiting.still + 1 if now == before and now[0] else 0
        waiting.status = now


def _key(path: Path) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _inode(path: str) -> int:
    try:
        return os.lstat(path).st_ino  # as the entry of its folder has it
    except OSError:
        return -1


def _status(path: Path | str) -> Status | None:
    """Size and time of a file; None if it does not exist (any more)."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns
