"""Images into folders by their verdicts: copied or linked; nothing is moved, deleted, replaced."""

import contextlib
import itertools
import os
import re
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from zsntta_cli.detection.runs.detecting import Batch
from zsntta_cli.detection.runs.rows import Row
from zsntta_cli.detection.sources.item import Item
from zsntta_cli.errors import first_line, short
from zsntta_cli.files import writing
from zsntta_cli.progress import Reporter

_NOISE = "_noise"
_LONGEST = 80  # characters of a folder's name


def folder_names(classes: Sequence[str]) -> dict[str, str]:
    """Folders' names by those of the classes: safe ones, no two alike, none that of noise."""
    names: dict[str, str] = {}
    taken = {_NOISE}
    for one in classes:
        plain = re.sub(r"[^\w .-]", "_", one).strip(" .")[:_LONGEST] or "class"
        name, number = plain, 1
        while name.casefold() in taken:
            number += 1
            name = f"{plain}-{number}"
        taken.add(name.casefold())
        names[one] = name
    return names


@dataclass
class Sorter:
    """Puts images into DIR/<class>/ and DIR/_noise/."""

    root: Path
    links: bool  # or copies
    classes: Sequence[str]
    reporter: Reporter
    _left_out: int = field(default=0, init=False)

    def put(self, batch: Batch) -> None:
        """Put the images of a batch where they belong; what cannot be put is counted.

        Raises:
            StoreError: the folder cannot be written.
        """
        folders = folder_names(self.classes)
        for item, row in zip(batch.items, batch.rows, strict=True):
            if row["error"] is None:
                folder = _NOISE if row["noise"] else folders[row["class"]]
                self._put(item, row, self.root / folder)

    def _put(self, item: Item, row: Row, folder: Path) -> None:
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
        with writing(folder / name):
            _copy(content, folder, name)

    def close(self) -> None:
        """Say what could not be put anywhere."""
        if self._left_out:
            verb = "linked" if self.links else "copied"
            self.reporter.note(f"note: {self._left_out:,} not {verb}: no files of their own.")


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
        there = path.is_file() and path.stat().st_size == len(content)
        if there and path.read_bytes() == content:
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
