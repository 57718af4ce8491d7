"""Corrections as the review page exports them: they teach the detector, and become verdicts."""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.cache.hdf5 import read_sample_ids
from zsntta_cli.detection.detecting.run import Batch, DetectRun
from zsntta_cli.detection.encoding import Encoding
from zsntta_cli.detection.sources.item import of_file
from zsntta_cli.detection.verdicts import CLEAN, JUDGED, NOISE, VerdictAnswer, VerdictRow
from zsntta_cli.errors import DatasetError, StoreError, counted, first_line, short
from zsntta_cli.files import read_input

_FORMATS = (1, 2, 3, 4)  # of rows, as the page had them that exported
_LARGEST = 2**28  # bytes of a file of corrections


class Correction(NamedTuple):
    """What a person said of an image."""

    noise: bool  # it belongs to none of the classes
    class_name: str | None = None  # of a clean one; None where nobody named another class
    source: str = ""
    content: str | None = None  # SHA-256 of the file, in hexadecimal; none in format 1


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
    last = {one.source: one for one in corrections}
    return [one for one in corrections if last[one.source] is one]


def _parsed(line: str, where: str) -> Correction:
    try:
        row: Any = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise StoreError(f"{where} is no JSON: must be what the review page exports.") from error
    if wrong := _wrong(row):
        raise StoreError(f"{where}: {wrong}; must be what the review page exports.")
    content = row.get("content")
    return Correction(row["noise"], row["class"], row["source"], content and content.lower())


def _wrong(row: Any) -> str:
    """Why a value is no correction; empty if it is one."""
    if not isinstance(row, dict):
        return "it is no object"
    if row.get("format") not in _FORMATS or isinstance(row.get("format"), bool):
        return f"its format is none of {_FORMATS[0]} to {_FORMATS[-1]}"
    if "verdict" not in row and "margin" in row:
        return "it is a verdict, and no correction"
    fields = [
        ("source", isinstance(row.get("source"), str)),
        ("content", _is_content(row.get("content"))),
        ("noise", isinstance(row.get("noise"), bool)),
        ("class", isinstance(row.get("class", 0), str | None)),
        ("verdict", isinstance(row.get("verdict"), dict)),
    ]
    wrong = [name for name, is_right in fields if not is_right]
    if wrong == ["noise"] and row.get("noise") is not None:
        return f"'noise' is {short(repr(row['noise']))}, must be true or false"
    if wrong:
        return f"'{wrong[0]}' is missing or of another kind"
    return "an image that is noise has a class" if row["noise"] and row["class"] is not None else ""


def _is_content(value: Any) -> bool:
    return value is None or (
        isinstance(value, str) and bool(re.fullmatch(r"[0-9a-f]{64}", value, re.IGNORECASE))
    )


class Corrected:
    """Use corrections: the detector learns from them, and each becomes its image's verdict.

    An image is recognised by its content, wherever and however often it occurs; if a correction has
    no content, by its source. Scores and thresholds stay as they were.
    """

    def __init__(self, corrections: Sequence[Correction], classes: Sequence[str] = ()) -> None:
        """Take corrections; the last one of each image counts."""
        self._corrections = corrections
        self._by_image = {one.content or one.source: one for one in corrections}
        self._used: set[str] = set()
        self._rows = self._other_classes = 0
        self._learned, self._classes = "", classes

    def teach(self, run: DetectRun) -> None:
        """Have a run's detector learn from all images that can be had.

        Raises:
            DatasetError: not one of the images can be had.
        """
        self._classes = run.detector.class_names
        images = self._corrections
        features = _of_set(run, images) if run.cached else _of_files(run.encoding, images)
        pairs = zip(features, images, strict=True)
        rows = [(row, one.noise) for row, one in pairs if row is not None]
        if not rows:
            raise DatasetError(
                f"nothing can be learned: not one of the {len(images):,} images that were "
                f"corrected is here."
            )
        run.detector.feedback(
            features=np.array([row for row, _ in rows], np.float32),
            noise=np.array([noise for _, noise in rows]),
        )
        self._learned = f"Learned from {len(rows):,} of {counted(len(images), 'correction')}."

    def batch(self, batch: Batch) -> Batch:
        """A batch with the corrections of its images applied."""
        return Batch(batch.items, [self._row(row) for row in batch.rows])

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


def _of_set(run: DetectRun, images: Sequence[Correction]) -> list[NDArray[np.floating] | None]:
    """Features of the images of a cached set, by their ids."""
    assert run.cached
    numbers = {name: i for i, name in enumerate(read_sample_ids(run.cached.path))}
    rows = run.cached.image_features
    places = (numbers.get(one.source) for one in images)
    return [None if i is None else rows[i] for i in places]


def _of_files(
    encoding: Encoding, images: Sequence[Correction]
) -> list[NDArray[np.floating] | None]:
    """Features of files, by their content, or encoded from their old places."""
    digests = [bytes.fromhex(one.content or "") for one in images]
    kept = encoding.store.features({digest for digest in digests if digest})
    rows: list[NDArray[np.floating] | None] = [kept.get(digest) for digest in digests]
    are_here = ((i, rows[i] is None and _is_here(one)) for i, one in enumerate(images))
    lacking = [i for i, is_here in are_here if is_here]
    encoded = encoding.images([of_file(Path(images[i].source)) for i in lacking])
    for i, image in zip(lacking, encoded, strict=True):
        rows[i] = image.features
    return rows


def _is_here(image: Correction) -> bool:
    """Whether an image is still at its place, with the content that a person saw."""
    path = Path(image.source)
    if not path.is_file():
        return False
    if image.content is None:
        return True
    try:
        return of_file(path).load().digest.hex() == image.content
    except OSError:
        return False
