"""Lists of images, with labels or without: tables, JSON, OpenOOD's image lists, CoOp's split files.

`--dataset mine=LIST` reads one as a set, and `detect LIST` reads its paths. A row names an image
and optionally its class, by name or number. Lists may be written by spreadsheets, shells and other
programs, with UTF-16, `;` or tabs as separators, quotes, Windows' slashes or Macs' accents.
"""

import codecs
import contextlib
import csv
import io
import json
import os
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from zsntta_cli.datasets.class_names import labels_told
from zsntta_cli.datasets.images import ImageSet, with_lists
from zsntta_cli.datasets.known_sets import listed
from zsntta_cli.datasets.tree import SUFFIXES
from zsntta_cli.errors import DatasetError, counted, first_line, first_of, short
from zsntta_cli.files import read_input

OF_PHOTOS = (".csv", ".tsv", ".txt", ".jsonl")  # among photos, a .json says something of one
ENDINGS = (*OF_PHOTOS, ".json")
# Columns in any case and without _ and spaces; of these the first that a row has something in.
_PATHS = (
    "path", "filename", "file", "filepath", "fullpath", "imagepath", "imagefile", "imgpath",
    "image", "img", "photo", "location", "source",
)  # fmt: skip
_LABELS = ("label", "labels", "class", "category", "target", "cls", "classid", "labelid")
_NAMES = ("classname", "labelname", "categoryname")
_PLACES = ("path", "label", "classname")  # of a row without names, as CoOp's
_LARGEST = 2**28  # bytes of a list
_GLANCE = 2**24  # bytes of one that is looked into though nobody named it
_ABOVE = 2  # folders above the list's, beside which images are looked for


class Row(NamedTuple):
    """An image of a list: its path as written there, its label and the name of its class."""

    path: str
    label: Any = ""  # a name or a number; empty without one
    name: Any = ""  # of the class, where the label is a number and a name stands beside it


def is_list(path: Path) -> bool:
    """Whether a path has the ending of a list."""
    return path.suffix.lower() in ENDINGS and path.is_file()


def decoded(data: bytes) -> str:
    """The text of a list, in UTF-8 or, as PowerShell writes it, in UTF-16 with its mark.

    Bytes that are not UTF-8 are kept as surrogates, as in file names.

    Raises:
        UnicodeDecodeError: it begins like UTF-16 but is not.
    """
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16")
    return data.decode("utf-8-sig", "surrogateescape")


def table_rows(text: str) -> list[list[str]]:
    """The rows of a table, separated by commas, semicolons or tabs as in its header.

    The first line of a spreadsheet may name the separator, as in `sep=;`.
    """
    head, _, rest = text.partition("\n")
    separator = max(",;\t", key=head.count)
    if said := re.fullmatch(r"sep=([,;\t])\s*", head, re.IGNORECASE):
        text, separator = rest, said[1]
    return [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator) if row]


def read_list(path: Path, label: str = "") -> list[Row]:
    """The rows of a list; `label` names the column or field of its labels.

    Raises:
        DatasetError: it cannot be read, has an unknown format, no rows, or no such column.
    """
    try:
        text = decoded(read_input(path, _LARGEST))
        rows = _lines(text) if path.suffix.lower() == ".txt" else _named(path, text, label)
    except (OSError, csv.Error, RecursionError) as error:
        raise DatasetError(f"cannot read the list {path} ({first_line(error)}).") from error
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise DatasetError(
            f"{path} is not a list of images ({first_line(error)}): must be CSV or JSON lines with "
            f"'path' and 'label', lines of a path and a number, or CoOp's split file."
        ) from error
    rows = [row for row in rows if row.path]
    if not rows:
        raise DatasetError(f"the list {path} names no image: must have one path per line.")
    return rows


def _lines(text: str) -> list[Row]:
    """One path per line, in quotes or not; if a number follows each path, it is the label."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    pairs = [line.rsplit(maxsplit=1) for line in lines]
    if all(len(p) == 2 and _is_image(p[0]) and _number(p[1]) is not None for p in pairs):
        return [Row(*pair) for pair in pairs]
    return [Row(line[1:-1] if line[0] in "\"'" and line[0] == line[-1] else line) for line in lines]


def _named(path: Path, text: str, label: str) -> list[Row]:
    """The rows of a table or of JSON, by column name or, without names, by position.

    Raises:
        LookupError: no column is known to name files, or the label column is missing.
    """
    rows: list[Any]
    if path.suffix.lower() in (".csv", ".tsv"):
        head, *rows = table_rows(text) or [[""]]
        if _is_image(head[0]):
            head, rows = [*_PLACES], [head, *rows]
        rows = [dict(zip(head, row, strict=False)) for row in rows]
    elif path.suffix.lower() == ".json":
        content = json.loads(text)
        rows = content["test"] if isinstance(content, dict) else content
        rows = [r if isinstance(r, dict) else dict(zip(_PLACES, r, strict=False)) for r in rows]
    else:
        rows = [json.loads(line) for line in text.splitlines() if line.strip()]
    rows = [{_plain(name): value for name, value in row.items()} for row in rows]
    columns = dict.fromkeys(name for row in rows for name in row)
    labels = (_plain(label),) if label else (*_LABELS, *_NAMES)
    for wanted in (labels if label else (), _PATHS):
        if rows and wanted and not columns.keys() & {*wanted}:
            named = first_of([*map(short, columns)])
            raise LookupError(f"no column is named '{wanted[0]}', of {named}: rename one")
    told = [[_first(row, names) for names in (_PATHS, labels, _NAMES)] for row in rows]
    return [Row(str(at).strip(), value, name) for at, value, name in told]


def _plain(name: str) -> str:
    return name.strip().lower().replace("_", "").replace(" ", "")


def _first(row: dict[str, Any], names: Sequence[str]) -> Any:
    """The value of the first of some columns that is not empty."""
    return next((row[name] for name in names if row.get(name) not in (None, "")), "")


def _is_image(name: str) -> bool:
    return Path(name).suffix.lower() in SUFFIXES


def _number(text: str) -> int | None:
    """A label as a number, also as pandas writes it: `3`, `3.0`, `-1`; None for a name."""
    try:
        return int(float(text)) if float(text).is_integer() else None
    except (ValueError, OverflowError):
        return None


def found(folder: Path, name: str) -> str:
    """The path of a list's image as stored in a folder; empty if it is not there.

    It is searched as written, and in other forms of the same name: with accents composed or
    decomposed, as Macs write them, and with Windows' slashes replaced.
    """
    for path in (name, name.replace("\\", "/")):
        for form in (path, *(unicodedata.normalize(kind, path) for kind in ("NFC", "NFD"))):
            if form and os.path.exists(folder / form):  # False of a NUL and of what is too long
                return form
    return ""


def list_set(name: str, path: Path, label: str = "") -> ImageSet:
    """The images of a list, in its order, with its labels.

    Paths are relative to the list's folder, to one beside it, or to one up to two levels above, as
    in OpenOOD's lists: the first that has all images is used.

    Raises:
        DatasetError: it cannot be read, an image is missing, or its labels contradict each other.
    """
    rows = list(dict.fromkeys(_of_texts(path, row) for row in read_list(path, label)))
    paths = [row.path for row in rows]
    if len({*paths}) < len(paths):
        twice = next(path for i, path in enumerate(paths) if path in paths[:i])
        raise DatasetError(f"{path} has two labels for {short(twice)}.")
    lacks = paths
    for base in _bases(path, all("/" in one or "\\" in one for one in paths)):
        there = [found(base, one) for one in paths]
        missing = [p for p, at in zip(paths, there, strict=True) if not (base / at).is_file()]
        if not missing:
            break
        lacks = min(lacks, missing, key=len)
    else:
        raise DatasetError(
            f"{len(lacks):,} of {counted(len(paths), 'image')} in {path} are missing, such as "
            f"{short(lacks[0])}: paths are relative to the list's folder, or to one beside it."
        )
    labels, class_names = _labelled(path, rows)
    is_elsewhere = base != path.absolute().parent and not Path(paths[0]).is_absolute()
    return replace(
        with_lists(listed(name, base, there, labels, class_names), [path]),
        labels_from=f"list {path.name}" if max(labels) >= 0 else "",
        notes=[f"the images of {path.name} are read from {base}"] if is_elsewhere else [],
    )


def unused_list(folder: Path) -> Path | None:
    """A list with labels for images of a folder, which was read by class folders instead."""
    for path in sorted(folder.iterdir()):
        if is_list(path) and path.suffix.lower() != ".txt" and path.stat().st_size < _GLANCE:
            with contextlib.suppress(DatasetError):
                if list_set("list", path).labels.max() >= 0:
                    return path
    return None


def _bases(path: Path, have_folders: bool) -> Iterator[Path]:
    """The folders to which a list's paths may be relative: its own, parents, and their subfolders.

    Parents are only used for paths that `have_folders`: `1.jpg` could be anywhere.
    """
    here = path.absolute().parent
    for folder in (here, *here.parents[: _ABOVE if have_folders else 0]):
        yield folder
        yield from sorted(p for p in folder.iterdir() if p.is_dir() and p.name[0] != ".")


def _of_texts(path: Path, row: Row) -> Row:
    """A row with its label and class name as texts.

    Raises:
        DatasetError: one of them has several values, or is not UTF-8 text.
    """
    for value in row[1:]:
        if isinstance(value, dict | list) or any("\ud800" <= c <= "\udfff" for c in str(value)):
            raise DatasetError(
                f"the label {short(ascii(value))} in {path} must be a single text or number."
            )
    return Row(row.path, str(row.label).strip(), str(row.name).strip())


def _labelled(path: Path, rows: Sequence[Row]) -> tuple[list[int], list[str]]:
    """Labels, -1 without one, and class names: names beside numbers follow their order.

    Raises:
        DatasetError: numbers and texts are mixed, or a number has two names.
    """
    numbers = [_number(row.label) if row.label else -1 for row in rows]
    if None in numbers:
        pairs = zip(numbers, rows, strict=True)
        told = [row.label or None if n in (None, -1) else n for n, row in pairs]
        return labels_told(path, told)
    labels, named = [max(number or 0, -1) for number in numbers], dict[int, str]()
    for label, row in zip(labels, rows, strict=True):
        if label >= 0 and row.name and named.setdefault(label, row.name) != row.name:
            raise DatasetError(
                f"in {path} the label {label} is named both '{short(named[label])}' and "
                f"'{short(row.name)}'."
            )
    if not named:
        return labels, []
    order = sorted({*labels} - {-1})
    index = {number: label for label, number in enumerate(order)}
    return [index.get(label, -1) for label in labels], [named.get(n, str(n)) for n in order]
