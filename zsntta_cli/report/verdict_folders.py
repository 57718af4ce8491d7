"""Images into folders by their verdicts: copied or linked; nothing is moved, deleted, replaced."""

import contextlib
import itertools
import os
import re
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from zsntta_cli.detection.runs.detecting import Batch, DetectRun, RowSink
from zsntta_cli.detection.sources.item import Item
from zsntta_cli.detection.verdicts import NOISE, UNSURE, VerdictRow
from zsntta_cli.errors import first_line, short
from zsntta_cli.files import writing
from zsntta_cli.progress import Reporter
from zsntta_cli.report.verdict_frames import FrameFiles, frame_name

_FOLDERS = {NOISE: "_noise", UNSURE: "_unsure"}  # of what is not said to be of a class
_LONGEST = 80  # characters of a folder's name


def folder_names(classes: Sequence[str]) -> dict[str, str]:
    """Folders' names by those of the classes: safe ones, no two alike, and not the others'."""
    folders: dict[str, str] = {}
    used = {*_FOLDERS.values()}
    for name in classes:
        plain = re.sub(r"[^\w .-]", "_", name).strip(" .")[:_LONGEST] or "class"
        numbered = (f"{plain}-{number}" for number in itertools.count(2))
        folder = next(f for f in itertools.chain([plain], numbered) if f.casefold() not in used)
        used.add(folder.casefold())
        folders[name] = folder
    return folders


@dataclass
class Sorter(RowSink):
    """Puts images into DIR/<class>/, DIR/_noise/ and DIR/_unsure/."""

    root: Path
    links: bool  # or copies
    reporter: Reporter
    _folders: dict[str, str] = field(default_factory=dict, init=False)  # by class
    _left_out: int = field(default=0, init=False)
    _frames: FrameFiles = field(init=False)

    def open(self, run: DetectRun) -> None:
        """Name the folders of the classes."""
        self._folders = folder_names(run.detector.class_names)
        self._frames = FrameFiles(saves=not self.links)

    def take(self, batch: Batch) -> None:
        """Put the images of a batch where they belong; what cannot be put is counted.

        Raises:
            StoreError: the folder cannot be written.
        """
        for item, row in zip(*batch, strict=True):
            if row["error"] is None and item.frame is None:
                self._put(item, row, self._folder(row))
        for item, row in self._frames.of(batch):
            self._put_content(item.load().data, self._folder(row), frame_name(item))

    def _folder(self, row: VerdictRow) -> Path:
        return self.root / (_FOLDERS.get(row["answer"]) or self._folders[row["class"]])

    def _put(self, item: Item, row: VerdictRow, folder: Path) -> None:
        if item.file is None or (self.links and item.member):
            self._left_out += 1
            return
        name = Path(item.member or item.file).name
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
        if self.links:
            with writing(folder / name):
                _link(item.file.absolute(), folder, name)
            return
        try:
            content = item.load().data
        except OSError as error:
            self.reporter.note(
                f"note: {short(row['source'], 200)} is left out: {first_line(error)}"
            )
            return
        self._put_content(content, folder, name)

    def _put_content(self, content: bytes, folder: Path, name: str) -> None:
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
        with writing(folder / name):
            _copy(content, folder, name)

    def close(self) -> None:
        """Say what could not be put anywhere."""
        if self._left_out:
            verb = "linked" if self.links else "copied"
            self.reporter.note(f"note: {self._left_out:,} not {verb}: no files of their own.")
        for text in self._frames.notes():
            self.reporter.note(f"note: {text}")


def _link(target: Path, folder: Path, name: str) -> None:
    for path in _free(folder, name):
        if path.is_symlink() and os.readlink(path) == str(target):
            return  # of an earlier run
        with contextlib.suppress(FileExistsError):
            path.symlink_to(target)
            return


def _copy(content: bytes, folder: Path, name: str) -> None:
    """A copy under the first name that is free, or has this content already."""
    for path in _free(folder, name):
        is_like = path.is_file() and path.stat().st_size == len(content)
        if is_like and path.read_bytes() == content:
            return  # of an earlier run
        if not os.path.lexists(path) and _placed(content, path):
            return


def _placed(content: bytes, path: Path) -> bool:
    """Write a new file, whole or not at all; False where something took its name meanwhile."""
    temporary = path.with_name(f".{secrets.token_hex(8)}")
    try:
        temporary.write_bytes(content)
        os.link(temporary, path)  # and not rename, which would replace
    except FileExistsError:
        return False
    finally:
        temporary.unlink(missing_ok=True)
    return True


def _free(folder: Path, name: str) -> Iterator[Path]:
    stem, suffix = os.path.splitext(name)
    yield folder / name
    yield from (folder / f"{stem}-{number}{suffix}" for number in itertools.count(2))
