"""All images below a folder, in order, however its links run."""

import os
from collections.abc import Iterator
from pathlib import Path

from zsntta_cli.detection.sources.item import PHOTOS, Item, failed, of_file
from zsntta_cli.errors import first_line

_LEFT_OUT = {"__MACOSX", "@eaDir", "node_modules"}  # what systems and tools put beside images


def images_below(root: Path) -> Iterator[Item]:
    """The images of a folder and of those within, by the parts of their paths.

    What is hidden is left out. Links are followed, and each folder is looked into once. One that
    cannot be looked into is an item of its own, which cannot be read.
    """
    yield from _below(root, set())


def _below(folder: Path, seen: set[tuple[int, int]]) -> Iterator[Item]:
    try:
        status = folder.stat()
        if (status.st_dev, status.st_ino) in seen:
            return
        seen.add((status.st_dev, status.st_ino))
        with os.scandir(folder) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        yield failed(str(folder), first_line(error))
        return
    for entry in found:
        if entry.name.startswith(".") or entry.name in _LEFT_OUT:
            continue
        path = folder / entry.name
        if _is_folder(entry):
            yield from _below(path, seen)
        elif path.suffix.lower() in PHOTOS:
            yield of_file(path)


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads to itself
        return False
