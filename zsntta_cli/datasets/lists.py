"""Lists of images with labels: CSV, JSON Lines, OpenOOD's image lists, CoOp's split files.

`--dataset mine=LIST` reads one. A row names an image and, if it can, its class, by a name or by a
number. Paths are relative to the list, or to a folder beside it or up to two folders above, as
OpenOOD's are: the first that has all of them is taken.
"""

import csv
import io
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from zsntta_cli.datasets.images import ImageSet, file_set
from zsntta_cli.datasets.names import LISTS
from zsntta_cli.datasets.tree import File
from zsntta_cli.errors import DatasetError, counted, first_line, short
from zsntta_cli.files import read_input

TABLES, OBJECTS = (".csv", ".tsv"), (".jsonl", ".ndjson")
ENDINGS = (*TABLES, *OBJECTS, ".json", ".txt")
PATHS = (
    "path",
    "file_name",
    "filename",
    "file",
    "filepath",
    "image_path",
    "image",
    "img",
    "source",
)
_LABELS = ("label", "labels", "class", "category", "target", "cls", "class_id", "label_id")
_NAMES = ("class_name", "classname", "label_name", "category_name")
_LARGEST = 2**28  # bytes of a list
_GLANCE = 2**24  # bytes of a list that is looked into though nobody named it
_ABOVE = 2  # folders above the list's, beside which images are looked for
_SPLIT = "test"  # of a file that has several


class Row(NamedTuple):
    """An image of a list: its path as it stands there, its label and the name of its class."""

    path: str
    label: str = ""  # a name or a number; empty without one
    name: str = ""  # of the class, where the label is a number and a name stands beside it


def is_list(path: Path) -> bool:
    """Whether a path is a list by its ending."""
    return path.suffix.lower() in ENDINGS and path.is_file()


def read_list(path: Path, label: str = "") -> list[Row]:
    """The rows of a list; `label` names the column or field of its labels.

    Raises:
        DatasetError: it cannot be read, is of no known form, or has no rows or no such column.
    """
    try:
        rows = list(_rows(path, read_input(path, _LARGEST).decode("utf-8-sig"), label))
    except (OSError, UnicodeDecodeError, csv.Error, RecursionError) as error:
        raise DatasetError(f"cannot read the list {path} ({first_line(error)}).") from error
    except (ValueError, TypeError, LookupError) as error:
        raise DatasetError(
            f"{path} is no list of images ({first_line(error)}): must be a CSV or JSON lines with "
            f"'path' and 'label', lines of a path and a number, or CoOp's split file."
        ) from error
    rows = [row for row in rows if row.path]
    if not rows:
        raise DatasetError(f"the list {path} names no image.")
    return rows


def _rows(path: Path, text: str, label: str) -> Iterator[Row]:
    ending = path.suffix.lower()
    if ending in TABLES:
        separator = "\t" if ending == ".tsv" or "\t" in text.partition("\n")[0] else ","
        table = [
            row for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator) if row
        ]
        head = [cell.strip().lower() for cell in table[0]] if table else []
        if set(PATHS) & set(head) or label:
            yield from _of_fields((dict(zip(head, row, strict=False)) for row in table[1:]), label)
        else:
            yield from (Row(*(cell.strip() for cell in row[:3])) for row in table)
    elif ending in OBJECTS:
        yield from _of_fields(
            (json.loads(line) for line in text.splitlines() if line.strip()), label
        )
    elif ending == ".json":
        content = json.loads(text)
        listed = content[_SPLIT] if isinstance(content, dict) else content
        if all(isinstance(row, dict) for row in listed):
            yield from _of_fields(listed, label)
        else:  # CoOp's [path, label, class name]
            yield from (Row(*(_word(value) for value in row[:3])) for row in listed)
    else:
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        pairs = [line.rsplit(maxsplit=1) for line in lines]
        are_labelled = all(len(pair) == 2 and _number(pair[1]) is not None for pair in pairs)
        yield from (Row(*pair) for pair in pairs) if are_labelled else map(Row, lines)


def _of_fields(rows: Iterable[Mapping[str, Any]], label: str) -> Iterator[Row]:
    """Rows of fields by their names, in lower case or as they are."""
    for values in rows:
        fields = {key.strip().lower(): _word(value) for key, value in values.items()}
        if not {*PATHS} & {*fields} or label.lower() not in {"", *fields}:
            lacking = label if {*PATHS} & {*fields} else "path"
            raise LookupError(f"there is no '{lacking}' among {', '.join(fields)}")
        path = _first(fields, PATHS)
        told = fields[label.lower()] if label else _first(fields, _LABELS)
        yield Row(path, told or _first(fields, _NAMES), _first(fields, _NAMES))


def _first(fields: Mapping[str, str], names: Sequence[str]) -> str:
    return next((fields[name] for name in names if fields.get(name)), "")


def _word(value: object) -> str:
    if isinstance(value, dict | list):
        raise TypeError(f"{short(str(value))} is no single value")
    return "" if value is None else str(value).strip()


def _number(text: str) -> int | None:
    """A label as a number, as pandas writes them, too: `3`, `3.0`, `-1`; None of a name."""
    try:
        return int(float(text)) if float(text).is_integer() else None
    except (ValueError, OverflowError):
        return None


def list_set(name: str, path: Path, label: str = "") -> ImageSet:
    """The images of a list, in its order, with its labels.

    Raises:
        DatasetError: it cannot be read, an image is not there, or its labels do not fit each other.
    """
    rows = list(dict.fromkeys(read_list(path, label)))
    paths = [row.path for row in rows]
    [(most, times)] = Counter(paths).most_common(1)
    if times > 1:
        raise DatasetError(f"data set '{name}': {path} has two labels for {short(most)}.")
    base = _base(name, path, paths)
    labels, class_names = _labelled(name, path, rows)
    files = []
    for row in rows:
        file = base / row.path
        parts = tuple(part for part in Path(row.path).parts if part != "/")
        files.append(File(parts, file.stat().st_size, file.read_bytes))
    images = file_set(name, files, labels, class_names)
    is_beside = base != path.parent and not Path(paths[0]).is_absolute()
    return replace(
        images,
        labels_from=f"list {path.name}" if max(labels) >= 0 else "",
        facts={LISTS: {path.name: sha256(path.read_bytes()).hexdigest()}},
        notes=[f"{name}: the images of {path.name} are read from {base}"] * is_beside,
    )


def _base(name: str, path: Path, paths: Sequence[str]) -> Path:
    """The folder to which the paths of a list are relative: the first that has all of them.

    Above the list's folder, only paths with a folder are looked for: `1.jpg` is anywhere.

    Raises:
        DatasetError: none has; it names the first that is missing.
    """
    here = path.absolute().parent
    above = [*here.parents[:_ABOVE]] if all("/" in one for one in paths) else []
    missing = list(paths)
    for folder in (here, *above):
        beside = sorted(p for p in folder.iterdir() if p.is_dir() and not p.name.startswith("."))
        for base in (folder, *beside):
            lacking = [one for one in paths if not (base / one).is_file()]
            if not lacking:
                return path.parent if base == here else base
            missing = min(missing, lacking, key=len)
    raise DatasetError(
        f"data set '{name}': {len(missing):,} of {counted(len(paths), 'image')} of {path} are not "
        f"there, such as {short(missing[0])}: paths are relative to the list's folder, or to one "
        f"folder beside it."
    )


def _labelled(name: str, path: Path, rows: Sequence[Row]) -> tuple[list[int], list[str]]:
    """Labels, -1 without one, and class names: those beside numbers, or texts in their order.

    Raises:
        DatasetError: numbers and texts are mixed, or a number has two names.
    """
    numbers = [_number(row.label) if row.label else -1 for row in rows]
    if None in numbers:
        if any(row.label and number is not None for row, number in zip(rows, numbers, strict=True)):
            raise DatasetError(f"data set '{name}': labels in {path} are numbers and texts.")
        class_names = sorted({row.label for row in rows if row.label})
        index = {class_name: i for i, class_name in enumerate(class_names)}
        return [index[row.label] if row.label else -1 for row in rows], class_names
    labels = [max(number or 0, -1) for number in numbers]
    named: dict[int, str] = {}
    for label, row in zip(labels, rows, strict=True):
        if label >= 0 and row.name and named.setdefault(label, row.name) != row.name:
            raise DatasetError(
                f"data set '{name}': in {path} the label {label} is called '{short(named[label])}' "
                f"and '{short(row.name)}'."
            )
    if not named:
        return labels, []
    # A split may lack images of a class: its name is its number then, and no image has it.
    return labels, [named.get(label, str(label)) for label in range(max(named) + 1)]


def unused_list(name: str, folder: Path) -> Path | None:
    """A list with labels of images that lie in a folder, which was read by its folders instead."""
    for path in sorted(folder.iterdir()):
        is_one = path.suffix.lower() in (*TABLES, *OBJECTS, ".json") and path.is_file()
        if is_one and path.stat().st_size < _GLANCE:
            try:
                rows = read_list(path)
                _base(name, path, [row.path for row in rows])
            except DatasetError:
                continue
            if any(row.label for row in rows):
                return path
    return None
