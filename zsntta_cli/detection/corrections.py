"""Corrections as the review page exports them, one JSON object per line, and their use."""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from zsntta_cli.detection.detecting import Batch
from zsntta_cli.detection.verdicts import CLEAN, JUDGED, NOISE, VerdictAnswer, VerdictRow
from zsntta_cli.errors import StoreError, counted, first_line, short
from zsntta_cli.files import read_input

_FORMATS = (1, 2, 3, 4)  # of rows, as the page had them that exported
_LARGEST = 2**28  # bytes of a file of corrections


class Correction(NamedTuple):
    """What an image is, and what its verdict was."""

    noise: bool  # the truth: it belongs to none of the classes
    class_name: str | None  # the truth of a clean one; None where nobody named another class
    said_noise: bool
    said_class: str
    source: str = ""
    frame: int | None = None  # number in a video
    content: str | None = None  # SHA-256 of the file, in hexadecimal; none in format 1
    is_repeated: bool = False  # what was said was an answer of a person already


def read_corrections(path: Path) -> tuple[list[Correction], int]:
    """Read the corrections of a file, and how many lines later ones replace.

    Raises:
        StoreError: the file cannot be read, has no correction, or has a line that is none.
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
    content = row.get("content")
    correction = Correction(
        row["noise"], row["class"], verdict["noise"], verdict["class"], row["source"],
        row["frame"], content and content.lower(), verdict.get("stage") == JUDGED,
    )  # fmt: skip
    return (row["source"], row["frame"]), correction


def _wrong(row: Any) -> str:
    """Why a value is no correction; empty if it is one."""
    if not isinstance(row, dict):
        return "it is no object"
    if row.get("format") not in _FORMATS or isinstance(row.get("format"), bool):
        return f"its format is none of {_FORMATS[0]} to {_FORMATS[-1]}"
    if "verdict" not in row and "margin" in row:
        return "it is a verdict, and no correction"
    verdict = row.get("verdict")
    values = verdict if isinstance(verdict, dict) else {}
    fields = [
        ("source", isinstance(row.get("source"), str)),
        ("frame", _is_whole(row.get("frame", ""))),
        ("content", _is_content(row.get("content"))),
        ("noise", isinstance(row.get("noise"), bool)),
        ("class", isinstance(row.get("class", 0), str | None)),
        ("verdict", isinstance(verdict, dict)),
        ("verdict.noise", isinstance(values.get("noise"), bool)),
        ("verdict.class", isinstance(values.get("class"), str)),
    ]
    wrong = [name for name, is_right in fields if not is_right]
    if wrong == ["noise"] and row.get("noise") is not None:
        return f"'noise' is {short(repr(row['noise']))}, must be true or false"
    if wrong:
        return f"'{wrong[0]}' is missing or of another kind"
    return "an image that is noise has a class" if row["noise"] and row["class"] is not None else ""


def _is_whole(value: Any) -> bool:
    return value is None or (isinstance(value, int) and not isinstance(value, bool))


def _is_content(value: Any) -> bool:
    return value is None or (
        isinstance(value, str) and bool(re.fullmatch(r"[0-9a-f]{64}", value, re.IGNORECASE))
    )


class Corrected:
    """Apply corrections to rows: a person's answer becomes the verdict.

    An image is recognised by its content, wherever and however often it occurs; if a correction has
    no content, by its source and frame. Scores and thresholds stay as they were.
    """

    def __init__(self, corrections: Sequence[Correction], classes: Sequence[str] = ()) -> None:
        """Take corrections; the last one of each image counts."""
        self._by_image = {_image(one.content, one.source, one.frame): one for one in corrections}
        self._used: set[object] = set()
        self._rows = self._other_classes = 0
        self.classes = classes

    def batch(self, batch: Batch) -> Batch:
        """A batch with the corrections of its images applied."""
        return Batch(batch.items, [self._row(row) for row in batch.rows])

    def _row(self, row: VerdictRow) -> VerdictRow:
        if row["error"] is not None:
            return row
        content = _image(row["content"], row["source"], row["frame"])
        place = _image(None, row["source"], row["frame"])
        image = next((i for i in (content, place) if i in self._by_image), None)
        if image is None:
            return row
        self._used.add(image)
        self._rows += 1
        correction = self._by_image[image]
        answer: VerdictAnswer = NOISE if correction.noise else CLEAN
        judged: VerdictRow = {
            **row, "answer": answer, "noise": correction.noise, "stage": JUDGED,
        }  # fmt: skip
        name = correction.class_name
        if name is not None and name in self.classes:
            judged |= {"class": name, "class_index": list(self.classes).index(name)}
        else:
            self._other_classes += name is not None
        return judged

    def notes(self) -> Iterator[str]:
        """How many corrections were applied, and how."""
        count, used = len(self._by_image), len(self._used)
        yield (
            f"{counted(self._rows, 'image')} judged by a person: "
            f"{used:,} of {count:,} corrections are of images here."
        )
        if self._other_classes:
            yield (
                f"{counted(self._other_classes, 'image')} corrected to a class that is none of "
                f"yours: only that they are clean is used."
            )


def _image(content: str | None, source: str, frame: int | None) -> object:
    return content or (source, frame)
