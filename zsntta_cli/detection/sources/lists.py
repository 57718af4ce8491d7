"""Lists of image paths: in a .txt, a table, JSON Lines, or on standard input."""

import codecs
import csv
import io
import json
import os
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from zsntta_cli.detection.sources.item import ADDRESS, Item, failed, of_file
from zsntta_cli.errors import DatasetError, first_line, first_of, short
from zsntta_cli.files import read_input

LISTS = (".txt", ".csv", ".tsv", ".jsonl")
_LARGEST = 2**28  # bytes of a list
# Of a table the first column that it has of these, in any case and with any _ or space.
_COLUMNS = (
    "source", "path", "file", "filename", "filepath", "fullpath", "image", "imagepath", "imagefile",
    "img", "imgpath", "photo", "location",
)  # fmt: skip
_SEPARATORS = ",;\t"
_PIECE = 2**16  # bytes of a pipe at a time
_PICTURES = (b"\x89PNG\r\n", b"\xff\xd8\xff")  # how PNG and JPEG begin


def listed(path: Path) -> list[Item]:
    """The images of a list: a path a line, or a column of a table or of JSON Lines.

    A relative path is searched from the working folder, then from the list's folder.

    Raises:
        DatasetError: the list cannot be read, or names nothing.
    """
    try:
        text = decoded(read_input(path, _LARGEST))
    except (OSError, UnicodeDecodeError) as error:
        raise DatasetError(f"cannot read the list {path} ({first_line(error)}).") from error
    ending = path.suffix.lower()
    if ending == ".txt":
        named = [_unquoted(line.strip()) for line in text.splitlines()]
    else:
        rows = _objects(text, path) if ending == ".jsonl" else table_rows(text)
        named = _column(rows, path)
    if not any(named):
        raise DatasetError(f"the list {path} names no image: must have a path a line.")
    return [_beside(path.parent, name) for name in named if name]


def decoded(data: bytes) -> str:
    """The text of a list: UTF-16 where it begins so, else as the names of files are.

    Raises:
        UnicodeDecodeError: it begins as UTF-16, and is none.
    """
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16")
    return os.fsdecode(data.removeprefix(codecs.BOM_UTF8))


def table_rows(text: str) -> list[list[str]]:
    """The rows of a table, whose cells are between commas, semicolons or tabs: what its head has.

    A first line `sep=;` of a spreadsheet says it, too.
    """
    first, _, rest = text.partition("\n")
    if first.lower().startswith("sep=") and len(first.strip()) <= len("sep=;"):
        text, separator = rest, first.strip()[4:] or "\t"
    else:
        separator = max(_SEPARATORS, key=first.count)
    return [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator) if row]


def _objects(text: str, path: Path) -> list[list[str]]:
    """JSON Lines as the rows of a table with a head of all their keys."""
    try:
        rows: list[Any] = [json.loads(line) for line in text.split("\n") if line.strip()]
    except (ValueError, RecursionError) as error:
        raise DatasetError(f"the list {path} is no JSON Lines ({first_line(error)}).") from error
    if not all(isinstance(row, dict) for row in rows):
        raise DatasetError(f"the list {path} must have an object a line.")
    head = list(dict.fromkeys(key for row in rows for key in row))
    return [head, *([str(row.get(key) or "") for key in head] for row in rows)]


def _column(rows: list[list[str]], path: Path) -> list[str]:
    """The cells that name images; DatasetError if no column of several is known to.

    Without a head that is known it is the first column that names a file in one of its rows.
    """
    head = [_plain(cell) for cell in rows[0]] if rows else []
    known = [head.index(name) for name in _COLUMNS if name in head]
    body = rows[1:] if known else rows
    at = known[0] if known else _of_files(rows, path.parent)
    if at is None and len(head) > 1:
        names = first_of([short(cell) for cell in rows[0]])
        raise DatasetError(
            f"the list {path} has the columns {names}, and none is known to name files: call one "
            f"of them path."
        )
    at = at or 0
    cells = (row[at] if at < len(row) else "" for row in body)
    return [cell if os.path.lexists(cell) else cell.strip() for cell in cells]


def _of_files(rows: list[list[str]], folder: Path) -> int | None:
    """The first column that names a file which is there, in one of its rows."""
    widest = max(map(len, rows), default=0)
    named = ((at, row[at]) for at in range(widest) for row in rows if at < len(row))
    return next((at for at, cell in named if _found(folder, cell)), None)


def _plain(cell: str) -> str:
    return cell.strip().lower().replace("_", "").replace(" ", "")


def _unquoted(line: str) -> str:
    """A line without the quotes around it, as a shell writes a path with a space."""
    is_quoted = len(line) > 1 and line[0] == line[-1] and line[0] in "\"'"
    return line[1:-1] if is_quoted and not os.path.lexists(line) else line


def _found(folder: Path, name: str) -> Path | None:
    """The file that a list means, from the working folder or from the list's.

    It is searched as written, and in the other forms of the same name: accents composed and not, as
    Macs write them, and with the slashes of Windows.
    """
    forms = (name, *(unicodedata.normalize(form, name) for form in ("NFC", "NFD")))
    for form in dict.fromkeys((*forms, *(form.replace("\\", "/") for form in forms))):
        for path in (Path(form), folder / form):
            if form and "\0" not in form and os.path.exists(path):
                return path
    return None


def _beside(folder: Path, name: str) -> Item:
    if "://" in name:
        return named_file(name)
    return named_file(str(_found(folder, name) or name))


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
