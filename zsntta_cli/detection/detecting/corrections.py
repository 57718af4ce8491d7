"""Corrections as the review page exports them: they teach the detector, and become verdicts."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from zsntta_cli.detection.detector import OnlineDetector
from zsntta_cli.detection.encoding import Encoded
from zsntta_cli.detection.feature_store import FeatureStore
from zsntta_cli.detection.verdicts import CLEAN, FORMAT, JUDGED, NOISE, VerdictAnswer, VerdictRow
from zsntta_cli.errors import DatasetError, StoreError, counted, first_line, short
from zsntta_cli.files import read_input

_LARGEST = 2**28  # bytes of a file of corrections
_FIELDS: dict[str, Any] = {"source": str, "content": str | None, "noise": bool, "class": str | None}


class Correction(NamedTuple):
    """What a person said of an image."""

    noise: bool  # it belongs to none of the classes
    class_name: str | None = None  # of a clean one; None where nobody named another class
    source: str = ""
    content: str | None = None  # SHA-256 of the file, in hexadecimal; none of a cached feature

    @property
    def image(self) -> str:
        """What the image is recognised by."""
        return self.content or self.source


def read_corrections(path: Path) -> list[Correction]:
    """Read the corrections of a file; the last one of each image counts.

    Raises:
        StoreError: the file cannot be read, has no correction, or has a line that is none.
    """
    try:
        lines = read_input(path, _LARGEST).decode("utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise StoreError(f"cannot read the corrections {path} ({first_line(error)}).") from error
    numbered = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    corrections = [_parsed(line, f"{path}, line {number:,}") for number, line in numbered]
    if not corrections:
        raise StoreError(f"{path} has no corrections: the review page exports them.")
    return [*{one.image: one for one in corrections}.values()]


def _parsed(line: str, where: str) -> Correction:
    try:
        row: Any = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise StoreError(f"{where} is no JSON: must be what the review page exports.") from error
    if wrong := _wrong(row):
        raise StoreError(f"{where}: {wrong}; must be what the review page exports.")
    content = row["content"]
    return Correction(row["noise"], row["class"], row["source"], content and content.lower())


def _wrong(row: Any) -> str:
    """Why a value is no correction; empty if it is one."""
    if not isinstance(row, dict):
        return "it is no object"
    if row.get("format") != FORMAT:
        return f"its format is {short(repr(row.get('format')))}, not {FORMAT}"
    if "margin" in row:
        return "it is a verdict, and no correction"
    for name, kind in _FIELDS.items():
        if name not in row:
            return f"'{name}' is missing"
        if not isinstance(row[name], kind):
            return f"'{name}' is {short(repr(row[name]))}"
    if row["content"] is not None and not re.fullmatch("[0-9a-fA-F]{64}", row["content"]):
        return f"'content' is {short(repr(row['content']))}, no SHA-256"
    return "an image that is noise has a class" if row["noise"] and row["class"] is not None else ""


class Corrected:
    """Use corrections: the detector learns from them, and each becomes its image's verdict.

    An image is recognised by its content, wherever and however often it occurs; if a correction has
    no content, by its source. Scores and thresholds stay as they were.
    """

    def __init__(self, corrections: Sequence[Correction], classes: Sequence[str] = ()) -> None:
        """Take corrections, at most one of each image."""
        self._by_image = {one.image: one for one in corrections}
        self._used: set[str] = set()
        self._rows = self._other_classes = 0
        self._learned, self._classes = "", classes

    def teach(
        self, detector: OnlineDetector, store: FeatureStore, encoded: Iterable[Encoded] = ()
    ) -> None:
        """Have a detector learn from the images that are `encoded` or were once encoded.

        Raises:
            DatasetError: not one of the images is known.
        """
        self._classes = detector.class_names
        contents = (bytes.fromhex(one.content) for one in self._by_image.values() if one.content)
        features = {content.hex(): row for content, row in store.features(contents).items()}
        for one in encoded:
            if one.features is not None:
                features |= dict.fromkeys((one.digest.hex(), one.item.source), one.features)
        learned = [image for image in self._by_image if image in features]
        if not learned:
            raise DatasetError(
                f"nothing can be learned: not one of the {len(self._by_image):,} images that were "
                f"corrected is here, or was ever encoded."
            )
        detector.feedback(
            features=np.array([features[image] for image in learned], np.float32),
            noise=np.array([self._by_image[image].noise for image in learned]),
        )
        count = counted(len(self._by_image), "correction")
        self._learned = f"Learned from {len(learned):,} of {count}."

    def rows(self, rows: Sequence[VerdictRow]) -> list[VerdictRow]:
        """Rows with the corrections of their images applied."""
        return [self._row(row) for row in rows]

    def _row(self, row: VerdictRow) -> VerdictRow:
        if row["error"] is not None:
            return row
        names = row["content"] or "", row["source"]
        image = next((name for name in names if name in self._by_image), None)
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
        if name is not None and name in self._classes:
            judged |= {"class": name, "class_index": list(self._classes).index(name)}
        else:
            self._other_classes += name is not None
        return judged

    def notes(self) -> Iterator[str]:
        """How many corrections were learned from and applied, and how."""
        if self._learned:
            yield self._learned
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
