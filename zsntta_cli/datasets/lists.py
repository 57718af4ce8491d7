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
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from zsntta_cli.datasets.class_names import RawLabel, class_labels
from zsntta_cli.datasets.images import ImageSet, with_lists
from zsntta_cli.datasets.known_sets import listed
from zsntta_cli.datasets.tree import SUFFIXES
from zsntta_cli.errors import DatasetError, counted, first_line, first_of, short
from zsntta_cli.files import read_input

OF_PHOTOS = (".csv", ".tsv", ".txt", ".jsonl")  # a .json among photos describes one of them
# Names of columns in lower case, without _ and spaces. A row's first one with a value is used.
_PATHS = (
    "path", "filename", "file", "filepath", "fullpath", "imagepath", "imagefile", "imgpath",
    "image", "img", "photo", "location", "source",
)  # fmt: skip
_LABELS = ("label", "labels", "class", "category", "target", "cls", "classid", "labelid")
_NAMES = ("classname", "labelname", "categoryname")
_COLUMNS = ("path", "label", "classname")  # of rows without column names, such as CoOp's
_LARGEST = 2**28  # bytes of a list
_GLANCE = 2**24  # bytes of one that nobody named
_ABOVE = 2  # folders above the list's that are searched, too


class Row(NamedTuple):
    """An image of a list: its path as written there, its label and the name of its class."""

    path: str
    label: Any = ""  # a name or a number; empty without one
    name: Any = ""  # of the class, if it is beside a number


def is_list(path: Path) -> bool:
    """Whether a path has the ending of a list."""
    return path.suffix.lower() in (*OF_PHOTOS, ".json") and path.is_file()


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
    head = text.partition("\n")[0]
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=head.count))
    return [row for row in lines if row][head.lower().startswith("sep=") :]


def read_list(path: Path, label: str = "") -> list[Row]:
    """The rows of a list; `label` names the column or field of its labels.

    Raises:
        DatasetError: it cannot be read, has an unknown format, no rows, or no such column.
    """
    try:
        text, kind = decoded(read_input(path, _LARGEST)), path.suffix.lower()
        rows = _lines(text) if kind == ".txt" else _named(_fields(text, kind), label)
    except (
        OSError, csv.Error, RecursionError, ValueError, TypeError, LookupError, AttributeError
    ) as error:  # fmt: skip
        raise DatasetError(
            f"cannot read the list {path} ({first_line(error)}): must be CSV or JSON lines with "
            f"'path' and 'label', lines of a path and a number, or CoOp's split file."
        ) from error
    if not any(row.path for row in rows):
        raise DatasetError(f"the list {path} names no image: must have one path per line.")
    return [row for row in rows if row.path]


def _lines(text: str) -> list[Row]:
    """One path per line, in quotes or not; if a number follows each path, it is the label."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    pairs = [line.rsplit(maxsplit=1) for line in lines]
    if all(len(p) == 2 and _is_image(p[0]) and isinstance(_raw_label(p[1]), int) for p in pairs):
        return [Row(*pair) for pair in pairs]
    return [Row(re.sub(r"""^(["'])(.*)\1$""", r"\2", line)) for line in lines]


def _fields(text: str, kind: str) -> list[dict[str, Any]]:
    """The rows of a table or of JSON by column name or, without names, by position."""
    rows: list[Any]
    columns: Sequence[str] = _COLUMNS
    if kind in (".csv", ".tsv"):
        rows = table_rows(text)
        if rows and not _is_image(rows[0][0]):
            columns = rows.pop(0)
    elif kind == ".json":
        content = json.loads(text)
        rows = content["test"] if isinstance(content, dict) else content
    else:
        rows = [json.loads(line) for line in text.splitlines() if line.strip()]
    return [r if isinstance(r, dict) else dict(zip(columns, r, strict=False)) for r in rows]


def _named(fields: Sequence[dict[str, Any]], label: str) -> list[Row]:
    """The paths, labels and class names of fields; LookupError if there is no such column."""
    rows = [{_plain(name): value for name, value in row.items()} for row in fields]
    columns = dict.fromkeys(name for row in rows for name in row)
    labels = (_plain(label),) if label else (*_LABELS, *_NAMES)
    for wanted in (labels if label else _PATHS, _PATHS):
        if rows and not columns.keys() & {*wanted}:
            named = first_of([*map(short, columns)])
            raise LookupError(f"no column is named '{wanted[0]}', of {named}: rename one")

    def first(row: dict[str, Any], names: Sequence[str]) -> Any:
        return next((row[name] for name in names if row.get(name) not in (None, "")), "")

    return [Row(str(first(r, _PATHS)).strip(), first(r, labels), first(r, _NAMES)) for r in rows]


def _plain(name: str) -> str:
    return name.strip().lower().replace("_", "").replace(" ", "")


def _is_image(name: str) -> bool:
    return Path(name).suffix.lower() in SUFFIXES


def _raw_label(label: str) -> RawLabel:
    """A label as a number, also as pandas writes it: `3`, `3.0`, `-1`; or as the name it is."""
    try:
        return max(-1, int(float(label))) if float(label).is_integer() else label
    except (ValueError, OverflowError):
        return label or None


def found(folder: Path, name: str) -> str:
    """The path of a list's image as stored in a folder; empty if it is not there.

    It is searched as written, and in other forms of the same name: with accents composed or
    decomposed, as Macs write them, and with Windows' slashes replaced.
    """
    for path in (name, name.replace("\\", "/")):
        for form in (path, *(unicodedata.normalize(kind, path) for kind in ("NFC", "NFD"))):
            if form and os.path.exists(folder / form):  # False for a NUL or too long a name
                return form
    return ""


def list_set(name: str, path: Path, label: str = "") -> ImageSet:
    """The images of a list, in its order, with its labels.

    Paths are relative to the list's folder, to one beside it, or to one up to two levels above, as
    in OpenOOD's lists: the first that has all images is used.

    Raises:
        DatasetError: it cannot be read, an image is missing, or its labels contradict each other.
    """
    rows = list(dict.fromkeys(Row(row.path, *_texts(path, row)) for row in read_list(path, label)))
    paths = [row.path for row in rows]
    if twice := [name for name, count in Counter(paths).items() if count > 1]:
        raise DatasetError(f"{path} has two labels for {short(twice[0])}.")
    lacking = paths
    for base in _bases(path, all(re.search(r"[/\\]", image) for image in paths)):
        stored = [found(base, image) for image in paths]
        missing = [p for p, at in zip(paths, stored, strict=True) if not (base / at).is_file()]
        if not missing:
            break
        lacking = min(lacking, missing, key=len)
    else:
        raise DatasetError(
            f"{path} lists {counted(len(paths), 'image')}, of which {len(lacking):,} cannot be "
            f"found, such as {short(lacking[0])}: paths are relative to the list's folder, or to "
            f"one beside it."
        )
    labels, class_names = _labelled(path, rows)
    is_elsewhere = base != path.absolute().parent and not Path(paths[0]).is_absolute()
    return replace(
        with_lists(listed(name, base, stored, labels, class_names), [path]),
        labels_from=f"list {path.name}" if max(labels) >= 0 else "",
        notes=[f"the images of {path.name} are read from {base}"] if is_elsewhere else [],
    )


def unused_list(folder: Path) -> Path | None:
    """A list with labels for images of a folder, which was read by class folders instead."""
    for path in sorted(folder.iterdir()):
        if is_list(path) and path.suffix.lower() != ".txt" and path.stat().st_size < _GLANCE:
            with contextlib.suppress(DatasetError):
                if list_set("list", path).labels_from:
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


def _texts(path: Path, row: Row) -> Iterator[str]:
    """A row's label and class name; DatasetError if one has several values or is not UTF-8."""
    for value in row[1:]:
        if isinstance(value, dict | list) or any("\ud800" <= c <= "\udfff" for c in str(value)):
            label = short(ascii(value))
            raise DatasetError(f"the label {label} in {path} must be a single text or number.")
        yield str(value).strip()


def _labelled(path: Path, rows: Sequence[Row]) -> tuple[list[int], list[str]]:
    """Labels, -1 without one, and class names: names beside numbers follow their order."""
    raw, names = [_raw_label(row.label) for row in rows], dict[int, str]()
    for label, row in zip(raw, rows, strict=True):
        if isinstance(label, int) and label >= 0:
            names[label] = names.get(label) or row.name
            if row.name not in ("", names[label]):
                both = f"both '{short(names[label])}' and '{short(row.name)}'"
                raise DatasetError(f"in {path} the label {label} is named {both}.")
    if not any(names.values()) or any(isinstance(label, str) for label in raw):
        return class_labels(path, raw)
    index: dict[RawLabel, int] = {number: label for label, number in enumerate(sorted(names))}
    return [index.get(label, -1) for label in raw], [names[n] or str(n) for n in sorted(names)]
