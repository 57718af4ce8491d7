"""Answers to questions about images: from a file, from scripts, or from a person."""

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from zsntta_cli.detection.questions import Questions
from zsntta_cli.detection.sources.item import Item
from zsntta_cli.detection.verdicts import Verdicts
from zsntta_cli.errors import StoreError, first_line
from zsntta_cli.files import read_input

Reply = Literal["yes", "no", "skip", "enough"]
# From an image, what was decided and answered, and the image's number.
Replies = Callable[[Item, Questions, int], Reply]

_LARGEST = 2**28  # bytes of a file of answers
_WORDS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_WANTED = "must have 'source' or 'content', and 'belongs' (true or false)"


@dataclass
class Interview:
    """Ask about images that were decided in hindsight, one at a time, and count the answers."""

    count: int  # of questions, at most
    replies: Replies
    answered: int = 0
    noise: int = 0  # answers by which an image belongs to none of the classes
    before: int = 0  # images flagged before the first answer
    skipped: list[str] = field(default_factory=list)  # sources of images without an answer

    def __call__(self, verdicts: Verdicts, items: Sequence[Item]) -> Verdicts:
        """The verdicts (N,) on these items with the answers."""
        questions = Questions(verdicts)
        self.before = int(verdicts.flagged.sum())
        for _ in range(min(self.count, len(items))):
            [number] = questions.next()
            reply = self.replies(items[number], questions, number)
            if reply == "enough":
                break
            if reply == "skip":
                questions.skip(number)
                self.skipped.append(items[number].place)
            else:
                questions.answer(number, reply == "yes")
        self.answered, self.noise = len(questions.truths), sum(questions.truths.values())
        return questions.verdicts()


@dataclass(frozen=True)
class FileAnswers:
    """Whether images belong to one of the classes, by their content or by their path."""

    by_content: Mapping[str, bool]  # SHA-256 of the file
    by_source: Mapping[tuple[str, int | None], bool]  # path, and the frame's number, or of all

    def reply(self, item: Item, _questions: Questions, _number: int) -> Reply:
        """The file's answer about an image: by its content, else by its path and frame."""
        of_all = self.by_source.get((item.source, None))
        belongs = self.by_source.get((item.source, item.frame), of_all)
        if self.by_content and item.file is not None:
            belongs = self.by_content.get(_digest(item), belongs)
        return "skip" if belongs is None else "yes" if belongs else "no"


def _digest(item: Item) -> str:
    """SHA-256 of an item's file; empty if it cannot be read any more."""
    try:
        return item.load().digest.hex()
    except Exception:  # of a damaged archive zipfile raises its own
        return ""


def read_answers(path: Path) -> FileAnswers:
    """Answers from a file, CSV by its ending, else JSON Lines; the later of two lines counts.

    Raises:
        StoreError: the file cannot be read, has no answer, or has a line that is none.
    """
    try:
        text = read_input(path, _LARGEST).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise StoreError(f"cannot read the answers {path} ({first_line(error)}).") from error
    by_content, by_source = dict[str, bool](), dict[tuple[str, int | None], bool]()
    for where, row in (_csv_rows if path.suffix == ".csv" else _json_rows)(path, text):
        source, frame, content, belongs = _checked(row, where)
        if content:
            by_content[content.lower()] = belongs
        if source:
            by_source[source, frame] = belongs
    if not (by_content or by_source):
        raise StoreError(f"{path} has no answers: a line {_WANTED}.")
    return FileAnswers(by_content, by_source)


def _json_rows(path: Path, text: str) -> Iterator[tuple[str, Any]]:
    for number, line in enumerate(text.split("\n"), 1):
        where = f"{path}, line {number:,}"
        if line.strip():
            try:
                yield where, json.loads(line)
            except (ValueError, RecursionError) as error:
                raise StoreError(f"{where} is no JSON: a line {_WANTED}.") from error


def _csv_rows(path: Path, text: str) -> Iterator[tuple[str, Any]]:
    try:
        for number, row in enumerate(csv.DictReader(io.StringIO(text, newline="")), 2):
            yield (
                f"{path}, line {number:,}",
                {
                    **row,
                    "belongs": _WORDS.get(str(row.get("belongs")).strip().lower()),
                    "frame": _number(row.get("frame")),
                },
            )
    except csv.Error as error:
        raise StoreError(f"{path} is no CSV ({first_line(error)}).") from error


def _number(cell: str | None) -> int | str | None:
    """A cell as a whole number if it is one, else unchanged; None if it is empty."""
    return int(cell) if cell and cell.isascii() and cell.isdecimal() else cell or None


def _checked(row: Any, where: str) -> tuple[str | None, int | None, str | None, bool]:
    """Source, frame, content and answer of a line; StoreError if it has no answer."""
    values = row if isinstance(row, dict) else {}
    keys = ("source", "frame", "content", "belongs")
    source, frame, content, belongs = map(values.get, keys)
    are_texts = isinstance(source, str | None) and isinstance(content, str | None)
    is_number = isinstance(frame, int | None) and not isinstance(frame, bool)
    if not (are_texts and is_number and (source or content) and isinstance(belongs, bool)):
        raise StoreError(f"{where} is no answer: it {_WANTED}.")
    return source, frame, content, belongs
