"""Corrections as the review page exports them: a JSON object a line."""

import json
from pathlib import Path
from typing import Any, NamedTuple

from zsntta_cli.errors import StoreError, first_line
from zsntta_cli.files import read_input

_FORMATS = (1, 2)  # of rows, as the page had them that exported
_LARGEST = 2**28  # bytes of a file of corrections


class Correction(NamedTuple):
    """What an image is, and what was said of it."""

    noise: bool  # the truth: it belongs to none of the classes
    class_name: str | None  # the truth of a clean one; None where nobody named another class
    said_noise: bool
    said_class: str


def read_corrections(path: Path) -> tuple[list[Correction], int]:
    """Corrections of a file, and how many of its lines a later one of the same image replaces.

    Raises:
        StoreError: it cannot be read, has no correction, or holds something else (which line).
    """
    try:
        lines = read_input(path, _LARGEST).decode("utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise StoreError(f"cannot read the corrections {path} ({first_line(error)}).") from error
    numbered = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    corrections: dict[tuple[str, int | None], Correction] = {}
    for number, line in numbered:
        place, correction = _parsed(line, f"{path}, line {number:,}")
        corrections.pop(place, None)
        corrections[place] = correction
    if not corrections:
        raise StoreError(f"{path} has no corrections: the review page exports them.")
    return list(corrections.values()), len(numbered) - len(corrections)


def _parsed(line: str, where: str) -> tuple[tuple[str, int | None], Correction]:
    try:
        row: Any = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise StoreError(f"{where} is no JSON: must be what the review page exports.") from error
    if wrong := _wrong(row):
        raise StoreError(f"{where}: {wrong}; must be what the review page exports.")
    verdict = row["verdict"]
    correction = Correction(row["noise"], row["class"], verdict["noise"], verdict["class"])
    return (row["source"], row["frame"]), correction


def _wrong(row: Any) -> str:
    """What keeps a value from being a correction; nothing where it is one."""
    if not isinstance(row, dict):
        return "it is no object"
    if row.get("format") not in _FORMATS or isinstance(row.get("format"), bool):
        return f"its format is none of {_FORMATS[0]} and {_FORMATS[1]}"
    if "verdict" not in row and "margin" in row:
        return "it is a verdict, and no correction"
    verdict = row.get("verdict")
    values = verdict if isinstance(verdict, dict) else {}
    fields = [
        ("source", isinstance(row.get("source"), str)),
        ("frame", _is_whole(row.get("frame", ""))),
        ("noise", isinstance(row.get("noise"), bool)),
        ("class", isinstance(row.get("class", 0), str | None)),
        ("verdict", isinstance(verdict, dict)),
        ("verdict.noise", isinstance(values.get("noise"), bool)),
        ("verdict.class", isinstance(values.get("class"), str)),
    ]
    wrong = [name for name, is_right in fields if not is_right]
    if wrong:
        return f"'{wrong[0]}' is missing or of another kind"
    return "noise has a class" if row["noise"] and row["class"] is not None else ""


def _is_whole(value: Any) -> bool:
    return value is None or (isinstance(value, int) and not isinstance(value, bool))
