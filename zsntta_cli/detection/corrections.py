"""Corrections exported from the review page: they teach the detector and become verdicts."""

import json
import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from zsntta_cli.datasets.lists import decoded, table_rows
from zsntta_cli.detection.detector import Detector
from zsntta_cli.detection.encoding import Encoding
from zsntta_cli.detection.sources import Photo
from zsntta_cli.detection.verdicts import CLEAN, JUDGED, NOISE, Row
from zsntta_cli.errors import DatasetError, StoreError, counted, first_line, short
from zsntta_cli.files import read_input

_LARGEST = 2**28  # bytes of a file of corrections
_TRUTH = "truth"  # the column of a table of rows that has a person's answers
_SHA256 = re.compile("[0-9a-f]{64}")
_WORDS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


class Correction(NamedTuple):
    """What a person said of an image."""

    image: str  # what it is recognised by: SHA-256 of its content in hexadecimal, or its source
    noise: bool  # it belongs to none of the classes
    class_name: str  # of a clean one; empty where nobody named another class


def read_corrections(path: Path) -> list[Correction]:
    """The corrections of a file, in its order.

    A .csv is a table. Any other file has one JSON object per line: the page's corrections, its
    list, or rows of `detect` with answers in `truth`.

    Raises:
        StoreError: the file cannot be read, has no correction, or has an invalid line.
    """
    is_table = path.suffix.lower() == ".csv"
    try:
        data = read_input(path, _LARGEST)
        text = decoded(data) if is_table else data.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise StoreError(f"cannot read the corrections {path} ({first_line(error)}).") from error
    corrections, lines, first = [], list[Any](text.split("\n")), 1
    if is_table:
        head, *rows = table_rows(text) or [[]]
        lines, first = [dict(zip_longest(head, row, fillvalue="")) for row in rows], 2
    for number, line in enumerate(lines, first):
        if isinstance(line, str) and not line.strip():
            continue
        try:
            if correction := _said(json.loads(line) if isinstance(line, str) else line):
                corrections.append(correction)
        except (ValueError, RecursionError) as error:
            place = "row" if is_table else "line"
            raise StoreError(
                f"{path}, {place} {number:,}: {first_line(error)}; must be an export of the review "
                f"page, or a row of --output with a column '{_TRUTH}'."
            ) from error
    if not corrections:
        raise StoreError(
            f"{path} has no corrections: export them from the review page, or write {NOISE}, "
            f"{CLEAN} or a class name into a column '{_TRUTH}' of the rows that you checked."
        )
    return corrections


def _said(row: Any) -> Correction | None:
    """What a row says of its image, or ValueError; None where a person gave no answer."""
    if not isinstance(row, dict):
        raise ValueError("it is not a JSON object")
    cells = {k.strip().lower(): "" if v is None else str(v).strip() for k, v in row.items()}
    name, is_answered = cells.get("class", ""), True
    if _TRUTH in cells:
        answer = cells[_TRUTH]
        is_answered, noise = bool(answer), answer.lower() == NOISE
        name = "" if answer.lower() in (NOISE, CLEAN) else answer
    elif "judged" in cells:  # the page's list
        is_answered, noise = cells["judged"].lower() == "true", cells.get("answer") == NOISE
        name = "" if noise else name
    elif "margin" in cells:
        raise ValueError("it is a verdict, not a correction")
    elif (word := cells.get("noise", "").lower()) in _WORDS:
        noise = _WORDS[word]
    else:
        value = short(repr(row["noise"])) if "noise" in row else "missing"
        raise ValueError(f"'noise' is {value}")
    if noise and name:
        raise ValueError("it is noise and has a class")
    content, source = cells.get("content", "").lower(), row.get("source")
    if content and not _SHA256.fullmatch(content):
        raise ValueError(f"'content' is {short(repr(content))}, not a SHA-256")
    image = content or (source if isinstance(source, str) else "")
    if not image:
        raise ValueError("neither 'source' nor 'content' names its image")
    return Correction(image, noise, name) if is_answered else None


class Corrected:
    """Use corrections: the detector learns from them, and each becomes its image's verdict.

    An image is recognised by its content, wherever and however often it occurs, or by its source if
    a correction has no content. Scores and thresholds do not change.
    """

    def __init__(self, corrections: Sequence[Correction]) -> None:
        """Take corrections; the last one about an image, or about equal images, counts."""
        self._by_image = {correction.image: correction for correction in corrections}
        answers = {(correction.image, correction.noise) for correction in corrections}
        self._contradicted = len(answers) - len(self._by_image)
        self._used: set[str] = set()
        self._learned = self._rows = self._other_classes = 0

    def teach(self, detector: Detector, encoding: Encoding, photos: Sequence[Photo] = ()) -> None:
        """Have a detector learn from the images that are among `photos` or were once encoded.

        Raises:
            DatasetError: none of the images is known.
        """
        contents = [bytes.fromhex(image) for image in self._by_image if _SHA256.fullmatch(image)]
        kept = encoding.features_of(contents)
        features = {content.hex(): row for content, row in kept.items()}
        for photo in photos:
            if photo.features is not None:
                features |= dict.fromkeys((photo.content.hex(), photo.source), photo.features)
        learned = [image for image in self._by_image if image in features]
        if not learned:
            raise DatasetError(
                f"nothing can be learned: none of the corrected images ({len(self._by_image):,}) "
                f"is here or was ever encoded."
            )
        rows = np.array([features[image] for image in learned], np.float32)
        detector.feedback(rows, [self._by_image[image].noise for image in learned])
        self._learned = len(learned)

    def apply(self, rows: Sequence[Row], names: Sequence[str]) -> None:
        """Apply a person's corrections to the rows of their images."""
        for row in rows:
            images = row["content"] or "", row["source"]
            image = next((key for key in images if key in self._by_image), None)
            if image is None or row["error"] is not None:
                continue
            self._used.add(image)
            self._rows += 1
            _, noise, name = self._by_image[image]
            row |= {"answer": NOISE if noise else CLEAN, "noise": noise, "stage": JUDGED}
            if name in names:
                row |= {"class": name, "class_index": list(names).index(name)}
            else:
                self._other_classes += bool(name)

    def notes(self) -> Iterator[str]:
        """How many corrections were learned from and applied, and how."""
        count = len(self._by_image)
        if self._learned:
            yield f"Learned from {self._learned:,} of {counted(count, 'correction')}."
        used = f"{len(self._used):,} of {count:,} corrections apply to images here"
        yield f"{counted(self._rows, 'image')} judged by a person: {used}."
        if self._contradicted:
            both = "has" if self._contradicted == 1 else "have"
            yield (
                f"{counted(self._contradicted, 'image')} {both} contradictory answers, perhaps on "
                f"copies: the last answer counts."
            )
        if self._other_classes:
            yield (
                f"{counted(self._other_classes, 'image')} corrected to a class that is not one of "
                f"yours: counted only as clean."
            )
