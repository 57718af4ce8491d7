"""An image that is to be judged: its name, and how its content is loaded."""

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import NoReturn

from zsntta_cli.datasets.tree import SUFFIXES
from zsntta_cli.files import read_input

ADDRESS = "it is an address: download it, and name the file"  # a path would lose a slash of it
PIPE = "-"  # the source that is standard input
LARGEST = 2**30  # bytes of a file: more is no image
# Photos as a camera's sensor has them; Pillow would read the small preview at their beginning.
RAW = {
    ".3fr", ".arw", ".cr2", ".cr3", ".crw", ".dng", ".erf", ".iiq", ".kdc", ".mrw", ".nef", ".nrw",
    ".orf", ".pef", ".raf", ".raw", ".rw2", ".rwl", ".sr2", ".srf", ".srw", ".x3f",
}  # fmt: skip
# What calls itself a picture is a row, and one that says why where it cannot be read.
PHOTOS = SUFFIXES | RAW | {
    ".jfif", ".jpe", ".mpo", ".apng", ".heic", ".heif", ".avif", ".jxl", ".jp2",
}  # fmt: skip


@dataclass(frozen=True)
class Content:
    """The content of an image: as it lies on disk, and the digest under which features are kept."""

    digest: bytes
    data: bytes


@dataclass(frozen=True)
class Item:
    """One image of a source."""

    source: str  # what a row calls it
    load: Callable[[], Content]  # OSError where it cannot be read
    file: Path | None = None  # the file it lies in, which tells whether it is still the same
    member: str = ""  # its path within an archive

    @cached_property
    def key(self) -> bytes:
        """The key under which its stamp is kept."""
        return os.fsencode(f"{self.file and os.path.abspath(self.file)}\0{self.member}")


def of_file(path: Path) -> Item:
    """An item for a file, whatever its content."""
    return Item(str(path), partial(_read, path), path)


def failed(source: str, error: str) -> Item:
    """An item that cannot be read; `error` says why."""
    return Item(source, partial(refuse, error))


def content_of(data: bytes) -> Content:
    """The content of an image file."""
    return Content(hashlib.sha256(data).digest(), data)


def check_not_raw(name: str) -> None:
    """Refuse a RAW photo by its name; OSError says what to do."""
    if os.path.splitext(name)[1].lower() in RAW:
        refuse("it is a RAW photo: develop it, or name the JPEG beside it")


def _read(path: Path) -> Content:
    check_not_raw(path.name)
    return content_of(read_input(path, LARGEST))


def refuse(error: str) -> NoReturn:
    """The loading function of an item that cannot be read."""
    raise OSError(error)
