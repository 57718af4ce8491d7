"""Lists of images, with labels or without: tables, JSON, OpenOOD's image lists, CoOp's split files.

`--dataset mine=LIST` reads one as a set, and `detect LIST` the paths of one. A row names an image
and, if it can, its class, by a name or by a number. Lists are read as spreadsheets, shells and
programs write them: UTF-16, `;` or tabs between cells, quotes, slashes of Windows, accents of Macs.
"""

import codecs
import csv
import io
import json
import os
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from zsntta_cli.datasets.class_names import labels_told
from zsntta_cli.datasets.images import ImageSet, file_set, with_lists
from zsntta_cli.datasets.tree import SUFFIXES, File
from zsntta_cli.errors import DatasetError, counted, first_line, first_of, short
from zsntta_cli.files import read_input

OF_PHOTOS = (".csv", ".tsv", ".txt", ".jsonl")  # among photos, a .json says something of one
ENDINGS = (*OF_PHOTOS, ".json", ".ndjson")
# Columns in any case and without _ and spaces; of these the first that a list has.
_PATHS = (
    "path", "filename", "file", "filepath", "fullpath", "imagepath", "imagefile", "imgpath",
    "image", "img", "photo", "location", "source",
)  # fmt: skip
_LABELS = ("label", "labels", "class", "category", "target", "cls", "classid", "labelid")
_NAMES = ("classname", "labelname", "categoryname")
_SEPARATORS = ",;\t"
_LARGEST = 2**28  # bytes of a list
_GLANCE = 2**24  # bytes of a list that is looked into though nobody named it
_ABOVE = 2  # folders above the list's, beside which images are looked for
_SPLIT = "test"  # of a file that has several


class Row(NamedTuple):
    """An image of a list: its path as it stands there, its label and the name of its class."""

    path: str
    label: Any = ""  # a name or a number; empty without one
    name: Any = ""  # of the class, where the label is a number and a name stands beside it


def is_list(path: Path) -> bool:
    """Whether a path is a list by its ending."""
    return path.suffix.lower() in ENDINGS and path.is_file()


def read_list(path: Path, label: str = "") -> list[Row]:
    """The rows of a list; `label` names the column or field of its labels.

    Raises:
        DatasetError: it cannot be read, is of no known form, or has no rows or no such column.
    """
    try:
        text = decoded(read_input(path, _LARGEST))
        rows = _lines(text) if path.suffix.lower() == ".txt" else _of_columns(path, text, label)
    except (OSError, UnicodeError, csv.Error, RecursionError) as error:
        raise DatasetError(f"cannot read the list {path} ({first_line(error)}).") from error
    except (ValueError, TypeError, LookupError) as error:
        raise DatasetError(
            f"{path} is no list of images ({first_line(error)}): must be a CSV or JSON lines with "
            f"'path' and 'label', lines of a path and a number, or CoOp's split file."
        ) from error
    rows = [row for row in rows if row.path]
    if not rows:
        raise DatasetError(f"the list {path} names no image: must have a path a line.")
    return rows


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


def _lines(text: str) -> list[Row]:
    """A path a line, in quotes or not; where a number is behind each, it is the label."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    pairs = [line.rsplit(maxsplit=1) for line in lines]
    if all(len(p) == 2 and _is_image(p[0]) and _number(p[1]) is not None for p in pairs):
        return [Row(*pair) for pair in pairs]
    return [Row(line[1:-1] if line[0] in "\"'" and line[0] == line[-1] else line) for line in lines]


def _of_columns(path: Path, text: str, label: str) -> list[Row]:
    """The rows of a table or of JSON."""
    if path.suffix.lower() in (".csv", ".tsv"):
        rows = _of_table(table_rows(text), path.parent, bool(label))
    elif path.suffix.lower() == ".json":
        content = json.loads(text)
        listed = content[_SPLIT] if isinstance(content, dict) else content
        rows = [row if isinstance(row, dict) else _placed(row) for row in listed]
    else:
        rows = [json.loads(line) for line in text.splitlines() if line.strip()]
    cells = [{_plain(name): value for name, value in row.items()} for row in rows]
    columns = dict.fromkeys(name for row in cells for name in row)
    for wanted in ([_plain(label)] if label else [], _PATHS):
        if wanted and rows and not columns.keys() & {*wanted}:
            raise LookupError(f"there is no '{wanted[0]}' among {', '.join(map(short, columns))}")
    labels = [_plain(label)] if label else [*_LABELS, *_NAMES]
    told = [[_first(row, names) for names in (_PATHS, labels, _NAMES)] for row in cells]
    return [Row(str(at).strip(), value, name) for at, value, name in told]


def _of_table(table: list[list[str]], folder: Path, has_head: bool) -> list[dict[str, Any]]:
    """The rows of a table by its head; without one by their places, the first a file or an image.

    Raises:
        LookupError: it has several columns, and none of them names files.
    """
    head = table[0] if table else []
    if has_head or {*map(_plain, head)} & {*_PATHS}:
        return [dict(zip(head, row, strict=False)) for row in table[1:]]
    columns = range(max(map(len, table), default=0))
    cells = ((at, row[at].strip()) for at in columns for row in table if at < len(row))
    at = next((at for at, cell in cells if _is_image(cell) or found(folder, cell)), None)
    if at is None and len(head) > 1:
        names = first_of([short(cell) for cell in head])
        raise LookupError(
            f"it has the columns {names}, and none is known to name files: call one of them path"
        )
    return [_placed(row[at or 0 :]) for row in table]


def _placed(row: Sequence[Any]) -> dict[str, Any]:
    """A row without names, as CoOp's [path, label, class name]."""
    return dict(zip(("path", "label", "classname"), row, strict=False))


def _plain(name: str) -> str:
    return name.strip().lower().replace("_", "").replace(" ", "")


def _first(row: dict[str, Any], names: Sequence[str]) -> Any:
    """What the first of some columns has that has something."""
    return next((row[name] for name in names if row.get(name) not in (None, "")), "")


def _is_image(name: str) -> bool:
    return Path(name).suffix.lower() in SUFFIXES


def _number(text: str) -> int | None:
    """A label as a number, as pandas writes them, too: `3`, `3.0`, `-1`; None of a name."""
    try:
        return int(float(text)) if float(text).is_integer() else None
    except (ValueError, OverflowError):
        return None


def found(folder: Path, name: str) -> Path | None:
    """The file that a list means in a folder, None where there is none.

    It is searched as written, and in the other forms of the same name: accents composed and not, as
    Macs write them, and with the slashes of Windows.
    """
    if not name or "\0" in name:
        return None
    if (path := folder / name).exists():
        return path
    forms = [name, *(unicodedata.normalize(form, name) for form in ("NFC", "NFD"))]
    paths = (folder / form for form in (*forms, *(form.replace("\\", "/") for form in forms)))
    return next((path for path in paths if path.exists()), None)


# --- A list as a set ---


def list_set(name: str, path: Path, label: str = "") -> ImageSet:
    """The images of a list, in its order, with its labels.

    Paths are relative to the list, or to a folder beside it or up to two folders above, as
    OpenOOD's are: the first that has all of them is taken.

    Raises:
        DatasetError: it cannot be read, an image is not there, or its labels do not fit each other.
    """
    listed = read_list(path, label)
    rows = [Row(row.path, _told(path, row.label), _told(path, row.name)) for row in listed]
    rows = list(dict.fromkeys(rows))
    [(most, times)] = Counter(row.path for row in rows).most_common(1)
    if times > 1:
        raise DatasetError(f"{path} has two labels for {short(most)}.")
    base, paths = _placed_files(path, [row.path for row in rows])
    labels, class_names, notes = _labelled(path, rows)
    files = []
    for row, place in zip(rows, paths, strict=True):
        parts = tuple(part for part in Path(row.path).parts if part != "/")
        files.append(File(parts, place.stat().st_size, place.read_bytes))
    if base.absolute() != path.absolute().parent and not Path(rows[0].path).is_absolute():
        notes = [f"the images of {path.name} are read from {base}", *notes]
    images = with_lists(file_set(name, files, labels, class_names), [path])
    teller = f"list {path.name}" if max(labels) >= 0 else ""
    return replace(images, labels_from=teller, notes=notes)


def _told(path: Path, value: object) -> str:
    """What tells a class, as text.

    Raises:
        DatasetError: it is several values, or no text in UTF-8.
    """
    if isinstance(value, dict | list):
        raise DatasetError(f"{short(str(value))} in {path} is no single value, and no label.")
    try:
        str(value).encode()
    except UnicodeEncodeError as error:
        raise DatasetError(f"the label {value!a} in {path} is no UTF-8 text.") from error
    return str(value).strip()


def _placed_files(path: Path, paths: Sequence[str]) -> tuple[Path, list[Path]]:
    """The first folder that has all images of a list, and their files.

    Above the list's folder, only paths with a folder are looked for: `1.jpg` is anywhere.

    Raises:
        DatasetError: none has; it names the first that is missing.
    """
    here = path.absolute().parent
    above = [*here.parents[:_ABOVE]] if all("/" in one for one in paths) else []
    missing = list(paths)
    for folder in (path.parent, *above):
        beside = sorted(p for p in folder.iterdir() if p.is_dir() and not p.name.startswith("."))
        for base in (folder, *beside):
            places = {
                one: place for one in paths if (place := found(base, one)) and place.is_file()
            }
            if len(places) == len(paths):
                return base, list(places.values())
            missing = min(missing, [one for one in paths if one not in places], key=len)
    raise DatasetError(
        f"{len(missing):,} of {counted(len(paths), 'image')} of {path} are not "
        f"there, such as {short(missing[0])}: paths are relative to the list's folder, or to one "
        f"folder beside it."
    )


def _labelled(path: Path, rows: Sequence[Row]) -> tuple[list[int], list[str], Sequence[str]]:
    """Labels, -1 without one, class names, those beside numbers or texts in their order, and notes.

    Raises:
        DatasetError: numbers and texts are mixed, or a number has two names.
    """
    numbers = [_number(row.label) if row.label else -1 for row in rows]
    if None in numbers:
        told = [
            row.label or None if n in (None, -1) else n
            for n, row in zip(numbers, rows, strict=True)
        ]
        return *labels_told(path, told), []
    labels = [max(number or 0, -1) for number in numbers]
    named: dict[int, str] = {}
    for label, row in zip(labels, rows, strict=True):
        if label >= 0 and row.name and named.setdefault(label, row.name) != row.name:
            raise DatasetError(
                f"in {path} the label {label} is called '{short(named[label])}' "
                f"and '{short(row.name)}'."
            )
    if not named:
        return labels, [], []
    notes = []
    if min(named) == 1 and 0 not in labels:
        labels = [label - 1 if label > 0 else label for label in labels]
        named = {label - 1: class_name for label, class_name in named.items()}
        notes = [f"labels of {path.name} count from 1, which is '{short(named[0])}'"]
    # A split may lack images of a class: its name is its number then, and no image has it.
    return labels, [named.get(label, str(label)) for label in range(max(named) + 1)], notes


def unused_list(folder: Path) -> Path | None:
    """A list with labels of images that lie in a folder, which was read by its folders instead."""
    for path in sorted(folder.iterdir()):
        ending = path.suffix.lower()
        if (
            ending in ENDINGS
            and ending != ".txt"
            and path.is_file()
            and (path.stat().st_size < _GLANCE)
        ):
            try:
                rows = read_list(path)
                _placed_files(path, [row.path for row in rows])
            except DatasetError:
                continue
            if any(row.label for row in rows):
                return path
    return None
