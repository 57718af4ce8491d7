"""Paths of images that a list names, or that come through a pipe."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from zsntta_cli.datasets.lists import found, read_list
from zsntta_cli.detection.sources.item import ADDRESS, Item, failed, of_file
from zsntta_cli.errors import DatasetError

_PIECE = 2**16  # bytes of a pipe at a time
_PICTURES = (b"\x89PNG\r\n", b"\xff\xd8\xff")  # how PNG and JPEG begin


def listed(path: Path) -> list[Item]:
    """The images of a list; a relative path is searched from the working folder, then its own.

    Raises:
        DatasetError: the list cannot be read, or names nothing.
    """
    items = []
    for name, *_ in read_list(path):
        place = None if "://" in name else found(Path(), name) or found(path.parent, name)
        items.append(named_file(str(place or name)))
    return items


def named_file(name: str) -> Item:
    """A file that a list names; folders are refused."""
    path = Path(name)
    if "\0" in name:
        return failed(name, "it is no path")
    if "://" in name:
        return failed(name, ADDRESS)
    return failed(name, "it is a folder, not an image") if path.is_dir() else of_file(path)


def piped(read: Callable[[int], bytes]) -> Iterator[list[Item]]:
    """The images whose paths come through a pipe, as they come: on lines, or separated by NULs.

    Raises:
        DatasetError: pictures come, and no paths.
    """
    begun, mark = b"", b""  # of the last line, what has come
    is_first = True
    while piece := read(_PIECE):
        if is_first and piece.startswith(_PICTURES):
            raise DatasetError("standard input has pictures, and '-' reads paths: name the files.")
        is_first = False
        mark = mark or (b"\0" if b"\0" in piece else b"\n" if b"\n" in piece else b"")
        *whole, begun = (begun + piece).split(mark) if mark else (begun + piece,)
        if items := _named(whole, mark):
            yield items
    if items := _named([begun], mark):
        yield items


def _named(names: list[bytes], mark: bytes) -> list[Item]:
    kept = (name if mark == b"\0" else name.rstrip(b"\r") for name in names)
    return [named_file(os.fsdecode(name)) for name in kept if name.strip()]
