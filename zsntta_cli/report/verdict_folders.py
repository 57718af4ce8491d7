"""Copies of images in a new folder, one folder a class, with a list of which image each is of.

The folder is absent or complete: it takes its name once everything lies in it, and none that exists
is ever written to.
"""

import contextlib
import csv
import errno
import hashlib
import io
import itertools
import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from zsntta_cli.detection.detecting.run import Batch, DetectRun, RowSink
from zsntta_cli.detection.sources.item import Item
from zsntta_cli.detection.verdicts import NOISE, UNSURE, VerdictRow
from zsntta_cli.errors import StoreError, printable, short
from zsntta_cli.files import scratch, sync, take_name, writing
from zsntta_cli.progress import Reporter

LIST = "verdicts.csv"
COLUMNS = ("source", "copy", "answer", "class", "margin")
_FOLDERS = {NOISE: "_noise", UNSURE: "_unsure"}  # of what is not said to be of a class
_LONGEST = 80  # characters of a folder's name
_LONGEST_NAME = 255  # bytes of a file's name, on most file systems
_LONGEST_ENDING = 40  # bytes of an ending, as far as it is kept
_SHORT_NAME = 60  # characters of a name that was made writable
_PRIVATE = 0o600  # permissions of a file while it is written
# Why images are not copied, with their number.
_NO_FILE = "no files of their own"
_CHANGED = "changed after they were judged"
_GONE = "gone after they were judged"


def check_is_new(root: Path) -> None:
    """Refuse a folder that has anything in it, before an image is judged.

    Raises:
        StoreError: there is something, which is not replaced.
    """
    with writing(root):
        is_empty = root.is_dir() and not any(root.iterdir())
    if os.path.lexists(root) and not is_empty:
        raise StoreError(
            f"{root} is there already, and copies make a new folder: name another one, or remove "
            f"it first."
        )


def folder_names(classes: Sequence[str]) -> dict[str, str]:
    """The folders' names by class: safe, all different, and unlike the reserved names."""
    folders: dict[str, str] = {}
    used = {*_FOLDERS.values(), LIST}
    for name in classes:
        plain = re.sub(r"[^\w .-]", "_", name).strip(" .")[:_LONGEST] or "class"
        numbered = (f"{plain}-{number}" for number in itertools.count(2))
        folder = next(f for f in itertools.chain([plain], numbered) if f.casefold() not in used)
        used.add(folder.casefold())
        folders[name] = folder
    return folders


@dataclass
class Copies(RowSink):
    """Copy images to DIR/<class>/, DIR/_noise/ and DIR/_unsure/, where DIR is new."""

    root: Path
    reporter: Reporter
    _images: list[tuple[Item, VerdictRow]] = field(default_factory=list, init=False)
    _numbers: dict[str, int] = field(default_factory=dict, init=False)  # the next one of a name
    _left: dict[str, list[str]] = field(default_factory=dict, init=False)  # sources, by the reason

    def open(self, run: DetectRun) -> None:
        """Name the folders of the classes; StoreError if DIR has anything in it."""
        check_is_new(self.root)
        self._folders = folder_names(run.detector.class_names)

    def take(self, batch: Batch) -> None:
        """Note images and their verdicts; what could not be read has none."""
        self._images += (pair for pair in zip(*batch, strict=True) if pair[1]["error"] is None)

    def close(self) -> None:
        """Make the folder.

        Raises:
            StoreError: it cannot be written, or something came to its place meanwhile.
        """
        target = Path(os.path.realpath(self.root))
        with writing(self.root):
            target.parent.mkdir(parents=True, exist_ok=True)
            with scratch(target.parent, is_folder=True) as folder:
                rows = self._copied(folder)
                if rows:
                    _write_list(folder / LIST, rows)
                    check_is_new(self.root)
                    take_name(folder, target)
        self.reporter.note(f"{self.root}: {len(rows):,} copied.")
        for reason, sources in self._left.items():
            first = f", the first: {short(sources[0], 200)}" if reason != _NO_FILE else ""
            self.reporter.note(printable(f"note: {len(sources):,} not copied: {reason}{first}."))

    def _copied(self, folder: Path) -> list[Sequence[str]]:
        """Copy all images; the rows of the list."""
        rows: list[Sequence[str]] = []
        with self.reporter.track("copies", len(self._images)) as advance:
            for item, row in self._images:
                if copy := self._copy(item, row, folder):
                    source, margin = os.path.abspath(item.source), str(row["margin"])
                    rows.append((source, copy, row["answer"], row["class"], margin))
                advance(1)
        return rows

    def _copy(self, item: Item, row: VerdictRow, root: Path) -> str | None:
        """Copy an image, and give its place below the folder; None if it cannot be copied."""
        if item.file is None or row["content"] is None:
            self._leave(_NO_FILE, item)
            return None
        try:
            content = item.load().data
        except OSError:
            self._leave(_GONE, item)
            return None
        if hashlib.sha256(content).hexdigest() != row["content"]:
            self._leave(_CHANGED, item)
            return None
        folder = _FOLDERS.get(row["answer"]) or self._folders[row["class"]]
        (root / folder).mkdir(exist_ok=True)
        name = PurePath(item.source).name
        rights = item.file, not item.member
        try:
            return self._written(content, root, f"{folder}/{name}", *rights)
        except OSError as error:
            if error.errno not in (errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ):
                raise
            plain = writable_name(name, row["content"])
            return self._written(content, root, f"{folder}/{plain}", *rights)

    def _written(
        self, content: bytes, root: Path, place: str, original: Path, is_whole: bool
    ) -> str:
        """Write a copy at a place, or with a number where its name is taken; its place."""
        folder, _, name = place.rpartition("/")
        key = place.casefold()  # some file systems tell no cases apart
        while True:
            number = self._numbers[key] = self._numbers.get(key, 0) + 1
            copy = place if number == 1 else f"{folder}/{numbered_name(name, number)}"
            with contextlib.suppress(FileExistsError):
                write_copy(content, root / copy, original, is_whole)
                return copy

    def _leave(self, reason: str, item: Item) -> None:
        self._left.setdefault(reason, []).append(item.source)


def _write_list(path: Path, rows: Sequence[Sequence[str]]) -> None:
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\r\n")  # so that either of the two is quoted in a name
    lines.writerows([COLUMNS, *rows])
    path.write_bytes(os.fsencode(text.getvalue()))
    sync(path)


def write_copy(content: bytes, path: Path, original: Path, is_whole: bool) -> None:
    """Write a new file that nobody sees more of than of its original, as old if it is all of that.

    A member of an archive has the archive's permissions and the current time. A file system that
    knows no permissions, or no times, as FAT, refuses to set them.

    Raises:
        FileExistsError: the name is taken. OSError: the file cannot be written.
    """
    with open(path, "xb", opener=_private) as file:
        file.write(content)
    with contextlib.suppress(OSError):
        (shutil.copystat if is_whole else shutil.copymode)(original, path)
        path.chmod(path.stat().st_mode & 0o777)  # none that a program would have
    sync(path)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, _PRIVATE)


def numbered_name(name: str, number: int) -> str:
    """A file's name with a number, shortened before the number if it would be too long."""
    stem, suffix = os.path.splitext(name)
    end = f"-{number}{_cut(suffix, _LONGEST_ENDING)}"
    return f"{_cut(stem, _LONGEST_NAME - len(os.fsencode(end)))}{end}"


def writable_name(name: str, digest: str) -> str:
    """A name that any file system takes: short, of plain characters, with digits of the content."""
    stem, suffix = os.path.splitext(name)
    plain_stem, plain_suffix = (re.sub(r"[^A-Za-z0-9_.-]+", "_", text) for text in (stem, suffix))
    begin = plain_stem[:_SHORT_NAME].strip("._") or "image"
    return f"{begin}-{digest[:12]}{plain_suffix[:8].rstrip('.')}"


def _cut(text: str, most: int) -> str:
    """The beginning of a text that takes at most `most` bytes in a file's name."""
    while text and len(os.fsencode(text)) > most:
        text = text[:-1]
    return text
