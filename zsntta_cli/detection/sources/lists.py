"""Lists of image paths: in a .txt, a .csv, or on standard input."""

import codecs
import csv
import io
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from zsntta_cli.detection.sources.item import ADDRESS, Item, failed, of_file
from zsntta_cli.errors import DatasetError, first_line
from zsntta_cli.files import read_input

LISTS = (".txt", ".csv")
_LARGEST = 2**28  # bytes of a list
_COLUMNS = ("source", "path", "file", "filename", "image")  # of a .csv: the first that it has
_PIECE = 2**16  # bytes of a pipe at a time
_PICTURES = (b"\x89PNG\r\n", b"\xff\xd8\xff")  # how PNG and JPEG begin


def listed(path: Path) -> list[Item]:
    """The images of a list: one path per line, or a column of a .csv (the first without a head).

    A relative path is searched from the working folder, then from the list's folder.

    Raises:
        DatasetError: the list cannot be read, or names nothing.
    """
    try:
        data = read_input(path, _LARGEST).removeprefix(codecs.BOM_UTF8)
    except OSError as error:
        raise DatasetError(f"cannot read the list {path} ({first_line(error)}).") from error
    text = os.fsdecode(data)
    is_table = path.suffix.lower() == ".csv"
    named = _column(text) if is_table else [line.strip() for line in text.splitlines()]
    if not any(named):
        raise DatasetError(f"the list {path} names no image: must have a path a line.")
    return [_beside(path.parent, name) for name in named if name]


def _column(text: str) -> list[str]:
    rows = [row for row in csv.reader(io.StringIO(text, newline="")) if row]
    head = [cell.strip().lower() for cell in rows[0]] if rows else []
    places = [head.index(name) for name in _COLUMNS if name in head]
    at, body = (places[0], rows[1:]) if places else (0, rows)
    cells = (row[at] if at < len(row) else "" for row in body)
    return [cell if os.path.lexists(cell) else cell.strip() for cell in cells]


def _beside(folder: Path, name: str) -> Item:
    path = Path(name)
    if "://" in name:
        return named_file(name)
    if not path.is_absolute() and not path.exists() and (folder / path).exists():
        path = folder / path
    return named_file(str(path))


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
