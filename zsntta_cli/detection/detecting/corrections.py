"""Corrections as the review page exports them: they teach the detector, and become verdicts."""

import json
import re
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from zsntta_cli.datasets.lists import decoded, table_rows
from zsntta_cli.detection.detector import OnlineDetector
from zsntta_cli.detection.encoding import Encoded
from zsntta_cli.detection.feature_store import FeatureStore
from zsntta_cli.detection.verdicts import CLEAN, FORMAT, JUDGED, NOISE, VerdictAnswer, VerdictRow
from zsntta_cli.errors import DatasetError, StoreError, counted, first_line, short
from zsntta_cli.files import read_input

_LARGEST = 2**28  # bytes of a file of corrections
_TRUTH = "truth"  # the column of a table of rows that has a person's answers
_ANSWERS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


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
    """Read the corrections of a file, in its order.

    A .csv is a table of rows with answers; any other file has a JSON object a line.

    Raises:
        StoreError: the file cannot be read, has no correction, or has a line that is none.
    """
    is_table = path.suffix.lower() == ".csv"
    try:
        data = read_input(path, _LARGEST)
        text = decoded(data) if is_table else data.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise StoreError(f"cannot read the corrections {path} ({first_line(error)}).") from error
    rows = _of_table(text, path) if is_table else _of_lines(text, path)
    corrections = [_checked(row, where) for row, where in rows]
    if not corrections:
        wanted = f"the column '{_TRUTH}' is empty" if is_table else "the review page exports them"
        raise StoreError(f"{path} has no corrections: {wanted}.")
    return corrections


def _of_lines(text: str, path: Path) -> Iterator[tuple[Any, str]]:
    for number, line in enumerate(text.split("\n"), 1):
        where = f"{path}, line {number:,}"
        if line.strip():
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise StoreError(
                    f"{where} is no JSON: must be what the review page exports."
                ) from error
            read = _reader(row) if isinstance(row, dict) and "margin" in row else None
            if read is None:
                yield row, where
            elif answer := read({name: "" if x is None else str(x) for name, x in row.items()}):
                yield {"source": row.get("source"), "content": row.get("content")} | answer, where


def _of_table(text: str, path: Path) -> Iterator[tuple[Any, str]]:
    """The rows of a table that have an answer.

    That is in the column `truth` (noise, clean or the name of a class), in `noise` and `class` of a
    table that a person wrote, or in the page's own list where `judged` is true.

    Raises:
        StoreError: there is no such column.
    """
    head, *lines = table_rows(text) or [[]]
    names = [name.strip().lower() for name in head]
    read = _reader(names) or (_typed if "noise" in names and "margin" not in names else None)
    if read is None:
        raise StoreError(
            f"{path} has no answers: add a column '{_TRUTH}' with {NOISE}, {CLEAN} or the name of "
            f"a class for the images that you looked at."
        )
    for number, cells in enumerate(lines, 2):
        row = dict.fromkeys(names, "") | dict(zip(names, map(str.strip, cells), strict=False))
        known = {"source": row.get("source"), "content": row.get("content") or None}
        if answer := read(row):
            yield {**known, **answer}, f"{path}, row {number:,}"


def _reader(names: Container[str]) -> Callable[[dict[str, str]], dict[str, Any]] | None:
    """What reads the answers of rows with these names, of `detect` or of the page's list."""
    return _said if _TRUTH in names else _judged if "judged" in names else None


def _said(row: dict[str, str]) -> dict[str, Any]:
    """The answer in the column `truth`; nothing where it is empty."""
    truth = row[_TRUTH]
    name = None if truth.lower() in (NOISE, CLEAN) else truth
    return {"noise": truth.lower() == NOISE, "class": name} if truth else {}


def _judged(row: dict[str, str]) -> dict[str, Any]:
    """The answer in a row of the page's own list; nothing where a person gave none."""
    is_noise = row.get("answer") == NOISE
    answer = {"noise": is_noise, "class": None if is_noise else row.get("class")}
    return answer if row["judged"].lower() == "true" else {}


def _typed(row: dict[str, str]) -> dict[str, Any]:
    """The answer that a person typed as one of a file of corrections."""
    said = _ANSWERS.get(row["noise"].lower(), row["noise"])
    return {"noise": said, "class": row.get("class") or None}


def _checked(row: Any, where: str) -> Correction:
    """A correction of a line that has `noise`, `source` or `content`, and what else it may have."""
    if wrong := _wrong(row):
        raise StoreError(f"{where}: {wrong}; must be what the review page exports.")
    content, name = row.get("content"), row.get("class")
    return Correction(row["noise"], name, row.get("source") or "", content and content.lower())


def _wrong(row: Any) -> str:
    """Why a value is no correction; empty if it is one."""
    if not isinstance(row, dict):
        return "it is no object"
    if row.get("format", FORMAT) != FORMAT:
        return f"its format is {short(repr(row['format']))}, not {FORMAT}"
    if "margin" in row:
        return "it is a verdict, and no correction"
    if not isinstance(row.get("noise"), bool):
        return f"'noise' is {short(repr(row['noise']))}" if "noise" in row else "'noise' is missing"
    for name in ("source", "content", "class"):
        if not isinstance(row.get(name), str | None):
            return f"'{name}' is {short(repr(row[name]))}"
    content = row.get("content")
    if content is not None and not re.fullmatch("[0-9a-fA-F]{64}", content):
        return f"'content' is {short(repr(content))}, no SHA-256"
    if not (content or row.get("source")):
        return "neither 'source' nor 'content' says which image it is of"
    return "an image that is noise has a class" if row["noise"] and row.get("class") else ""


class Corrected:
    """Use corrections: the detector learns from them, and each becomes its image's verdict.

    An image is recognised by its content, wherever and however often it occurs; if a correction has
    no content, by its source. Scores and thresholds stay as they were.
    """

    def __init__(self, corrections: Sequence[Correction], classes: Sequence[str] = ()) -> None:
        """Take corrections; of one image, or of equal ones, the last counts."""
        self._by_image = {one.image: one for one in corrections}
        answers = {(one.image, one.noise) for one in corrections}
        self._contradicted = len(answers) - len(self._by_image)
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
        if self._contradicted:
            both = "is answered both ways" if self._contradicted == 1 else "are answered both ways"
            yield (
                f"{counted(self._contradicted, 'image')} {both}, or have copies that are: the last "
                f"answer counts."
            )
        if self._other_classes:
            yield (
                f"{counted(self._other_classes, 'image')} corrected to a class that is none of "
                f"yours: only that they are clean is used."
            )
