"""DIR/verdicts.csv, the list of the images that were put into a folder, with its lock.

An image is listed before it is put, so that a killed process leaves no file that the list lacks.
The list is whole or absent. Between two times that it is written, new rows are appended to a second
file beside it, which belongs to one state of the list and is removed at the end.
"""

import contextlib
import csv
import fcntl
import hashlib
import io
import json
import os
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from zsntta_cli.errors import StoreError, first_line
from zsntta_cli.files import read_input, sync, write_whole, writing

LIST = "verdicts.csv"
_MORE = ".verdicts.more"  # rows that the list does not have yet
_LARGEST = 2**30  # bytes of a list
_SHARE = 9  # times as long as the list takes to write, rows go beside it before the next


def folders_above(place: str) -> list[str]:
    """The folders above a place, the deepest first."""
    folders = []
    while "/" in place:
        place = place.rpartition("/")[0]
        folders.append(place)
    return folders


class PlacedImage(NamedTuple):
    """An image that is in the folder, or is about to be."""

    source: str  # where it is from: an absolute path
    copy: str  # where it lies, below the folder
    answer: str
    class_name: str
    margin: str
    content: str  # SHA-256 of what was put
    made: str  # how many of the folders above it were made for images

    @property
    def folder(self) -> str:
        """The folder that the image is in."""
        return self.copy.rpartition("/")[0]


COLUMNS = ("source", "copy", "answer", "class", "margin", "content", "made")


@dataclass(frozen=True)
class _Read:
    """The content of the list and the file beside it."""

    images: list[PlacedImage]
    digest: str  # of the list


class PlacedList:
    """The images that were put into a folder, by their places in it."""

    def __init__(self, root: Path) -> None:
        """Lock a folder until the end, and read its list.

        Raises:
            StoreError: the file is no such list, or another process works on the folder.
        """
        self.root, self.path, self._more = root, root / LIST, root / _MORE
        self.was_there = os.path.lexists(root)
        self.unlock = _locked(self)
        read = _read(self.path, self._more)
        self.is_new = not self.path.exists() and not read.images
        self.images = {image.copy: image for image in read.images}
        # Folders that were made for images: those that are listed, and those that come.
        self.made = {
            folder
            for image in read.images
            for folder in folders_above(image.copy)[: int(image.made)]
        }
        self._digest, self._due = read.digest, 0.0

    def _begin_more(self) -> None:
        write_whole(self._more, json.dumps({"list": self._digest}).encode() + b"\n")

    def add(self, images: Sequence[PlacedImage]) -> None:
        """List images that are about to be put; they replace images at the same places."""
        self.images |= {image.copy: image for image in images}
        if time.monotonic() >= self._due:
            self.write()
            self._begin_more()
            return
        line = json.dumps(images).encode() + b"\n"
        with writing(self._more), self._more.open("ab") as file:
            file.write(line)
            file.flush()
            os.fsync(file.fileno())

    def write(self) -> None:
        """Write the list as it is now."""
        began = time.monotonic()
        content = _lines(self.images.values())
        write_whole(self.path, content)
        self._digest = hashlib.sha256(content).hexdigest()
        now = time.monotonic()
        self._due = now + _SHARE * (now - began)

    def end(self) -> None:
        """Write the list of the images that are there, and remove the file beside it."""
        self.images = {copy: one for copy, one in self.images.items() if self.has(one)}
        self.write()
        with writing(self._more):
            self._more.unlink(missing_ok=True)
            sync(self.root)
        self.unlock()

    def has(self, image: PlacedImage) -> bool:
        """Whether anything is at an image's place."""
        return os.path.lexists(self.root / image.copy)

    def remove_empty_folders(self) -> None:
        """Remove empty folders that were made for images."""
        for folder in sorted(self.made, key=lambda name: name.count("/"), reverse=True):
            with contextlib.suppress(OSError):
                (self.root / folder).rmdir()
            if not os.path.lexists(self.root / folder):
                self.made.discard(folder)


def _locked(placed: PlacedList) -> Callable[[], object]:
    """Lock a folder, which is made if necessary, and return the function that unlocks it.

    Raises:
        StoreError: another process has locked it, or it cannot be made.
    """
    with writing(placed.root):
        placed.root.mkdir(parents=True, exist_ok=True)
        folder = os.open(placed.root, os.O_RDONLY | os.O_DIRECTORY)
    unlock = weakref.finalize(placed, os.close, folder)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        unlock()
        raise StoreError(
            f"{placed.root} is being filled by another zsntta: wait until it ends, or name "
            f"another folder."
        ) from None
    except OSError:  # a file system without locks
        return unlock
    return unlock


def _lines(images: Iterable[PlacedImage]) -> bytes:
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\r\n")  # so that either of the two is quoted in a name
    rows.writerow(COLUMNS)
    rows.writerows(images)
    return os.fsencode(text.getvalue())


def _read(path: Path, more: Path) -> _Read:
    content = _content(path)
    digest = hashlib.sha256(content).hexdigest()
    images = list(_listed(path, content)) if content else []
    images += _come_since(path, _content(more), digest)
    return _Read(images, digest)


def _content(path: Path) -> bytes:
    try:
        return read_input(path, _LARGEST)
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise StoreError(f"cannot read {path} ({first_line(error)}).") from error


def _listed(path: Path, content: bytes) -> Iterator[PlacedImage]:
    text = os.fsdecode(content.removeprefix(b"\xef\xbb\xbf"))
    try:
        head, *rows = csv.reader(io.StringIO(text, newline=""))
    except (ValueError, csv.Error):
        raise _no_list(path) from None
    if tuple(head) != COLUMNS:
        raise _no_list(path)
    for row in rows:
        yield _image(path, row)


def _come_since(path: Path, content: bytes, digest: str) -> Iterator[PlacedImage]:
    """The rows of the file beside the list; none if it belongs to an older state of the list."""
    lines = content.split(b"\n")[:-1]  # the last one is empty, or was cut off
    try:
        head, *parts = map(json.loads, lines) if lines else [{}]
        rows = [row for part in parts for row in part] if head == {"list": digest} else []
    except (ValueError, TypeError):
        raise _no_list(path) from None
    for row in rows:
        yield _image(path, row)


def _image(path: Path, row: Sequence[str]) -> PlacedImage:
    """A row, checked before it is used: the file may come from anyone."""
    is_whole = len(row) == len(COLUMNS) and all(isinstance(cell, str) for cell in row)
    if not is_whole or "\0" in "".join(row):
        raise _no_list(path)
    image = PlacedImage(*row)
    place = PurePosixPath(image.copy)
    inside = len(place.parts) > 1 and not place.is_absolute() and ".." not in place.parts
    if not inside or not image.made.isdecimal():
        raise _no_list(path)
    return image


def _no_list(path: Path) -> StoreError:
    return StoreError(
        f"{path} is no list of images that zsntta put there: move it away, or name another folder."
    )
