"""TPT's answers for the images of a feature file, which are kept beside it, one for each image.

The prompt is reset before each sample, so an answer depends on the image, the class names, the
prompt and TPT's own settings, and never on a stream. Answers are filed under a digest of the
question, `features/<encoder>/<set>.<digest>.tpt`, and hold the digest of the features.

New answers are written as parts, in a folder beside that file. A part is absent or whole and has a
name of its own, so several processes can add parts in turns, and a kill loses none of them. The
parts are merged into the file from time to time. The merged file appears by a rename before the
parts are removed, so a reader who reads the parts first and the file second misses no answer.
"""

import contextlib
import hashlib
import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray

from zsntta_cli.cache import hdf5
from zsntta_cli.cache.origin import ENCODING, machine_facts
from zsntta_cli.errors import StoreError
from zsntta_cli.files import sweep, writing

SUFFIX, _PARTS = ".tpt", ".tpt-parts"
_DIGITS = 12  # digits of the question's digest in a file's name
_ROWS = "rows"


class Answers(NamedTuple):
    """The answers for N images, each from the prompt that was tuned on the image's views."""

    class_index: NDArray[np.int32]  # (N,) of the largest probability
    noise_score: NDArray[np.float64]  # (N,) 1 - MCM
    best_class: NDArray[np.int32]  # (N,) of the largest logit, for the noise score "match"
    best_logit: NDArray[np.float64]  # (N,)
    entropy: NDArray[np.float64]  # (N,) of the probabilities, in nats

    @classmethod
    def empty(cls, count: int) -> "Answers":
        """Make `count` answers whose values are all 0, to be filled."""
        columns: list[Any] = [np.zeros(count, dtype) for dtype in _TYPES]
        return cls(*columns)

    @classmethod
    def joined(cls, parts: "Sequence[Answers]") -> "Answers":
        """Join answers, those of each part below those of the one before."""
        return cls(*map(np.concatenate, zip(cls.empty(0), *parts, strict=True)))

    def at(self, rows: NDArray[np.integer]) -> "Answers":
        """The answers in some rows."""
        return Answers(*(column[rows] for column in self))


_TYPES = (np.int32, np.float64, np.int32, np.float64, np.float64)
RowAnswers = tuple[NDArray[np.int64], Answers]  # rows of a feature file, and their answers


@dataclass(frozen=True)
class AnswersHeader:
    """The header of a file of answers."""

    answered: int
    images: int
    asked: dict[str, Any]
    id_set: str  # a set that has the classes of the question
    features: str  # digest of the features that the answers belong to
    created: str


class AnswerFile:
    """The answers for one feature file to one question, and the parts with further answers."""

    def __init__(
        self, features: Path, asked: Mapping[str, Any], digest: str, images: int, id_set: str
    ) -> None:
        """`asked` is all that answers depend on beside the features, whose digest is `digest`.

        `id_set` is a set with the classes of the question; other sets may have the same classes.
        """
        content = json.dumps(asked, sort_keys=True).encode()
        key = hashlib.sha256(content).hexdigest()[:_DIGITS]
        self.path = features.with_name(f"{features.stem}.{key}{SUFFIX}")
        self._asked, self._digest, self._images = dict(asked), digest, images
        self._id_set = id_set

    def read(self) -> RowAnswers:
        """Read all answers that are kept, in the order of rows; skip those for other features.

        Raises:
            StoreError: a file is broken.
        """
        # Parts before the file: a merge renames the file into place before it removes the parts.
        parts = [self._read(path) for path in _parts(self.path)]
        return _in_order([self._read(self.path), *parts])

    def is_complete(self) -> bool:
        """Whether the file itself, without its parts, has an answer for each image."""
        with contextlib.suppress(StoreError):
            header = read_answers_header(self.path)
            return header.features == self._digest and header.answered == self._images
        return False

    def add(self, rows: NDArray[np.int64], answers: Answers) -> None:
        """Write further answers as a part, durably.

        Raises:
            StoreError: the part cannot be written.
        """
        if len(rows):
            part = f"{secrets.token_hex(8)}{SUFFIX}"
            with self._alone():
                self._write(parts_folder(self.path) / part, rows, answers)

    def merge(self) -> None:
        """Merge the parts into the file.

        Raises:
            StoreError: the file cannot be written, or a part is broken.
        """
        folder = parts_folder(self.path)
        if not folder.is_dir():
            return
        with self._alone():
            parts = _parts(self.path)
            if parts:
                every = [self._read(path) for path in (self.path, *parts)]
                self._write(self.path, *_in_order(every))
            for part in parts:
                part.unlink()
            sweep(folder)  # remove what killed writers left unfinished
            with contextlib.suppress(OSError):
                folder.rmdir()

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Let one process write at a time: a merge removes the folder that a part is written to."""
        with writing(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self.path.with_name(f".{self.path.name}.lock"))
            lock.acquire()
        try:
            with writing(self.path):
                yield
        finally:
            lock.release()

    def _write(self, path: Path, rows: NDArray[np.int64], answers: Answers) -> None:
        columns = {_ROWS: rows, **answers._asdict()}
        header = {
            "asked": self._asked, "id_set": self._id_set, "features": self._digest,
            "images": self._images, "answered": len(rows), "digest": _digest(columns),
            "machine": machine_facts(ENCODING),
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
        }  # fmt: skip
        hdf5.write_table(path, columns, header)

    def _read(self, path: Path) -> RowAnswers:
        """Read the answers of a file or a part; none if it is gone or is for other features."""
        try:
            header, rows, answers = _read_whole(path)
        except StoreError:
            if path.exists():
                raise
            # There is no file yet, or another process has merged this part meanwhile.
            return np.empty(0, np.int64), Answers.empty(0)
        if (header.asked, header.features, header.images) != (
            self._asked, self._digest, self._images,
        ):  # fmt: skip
            return np.empty(0, np.int64), Answers.empty(0)
        return rows, answers


def parts_folder(path: Path) -> Path:
    """The folder in which further answers wait until they are merged into a file."""
    return path.with_name(f".{path.stem}{_PARTS}")


def file_of_parts(folder: Path) -> Path | None:
    """The file that the parts in a folder belong to; None if it is no folder of parts."""
    is_of_parts = folder.name.startswith(".") and folder.suffix == _PARTS
    return folder.with_name(f"{folder.stem[1:]}{SUFFIX}") if is_of_parts else None


def _parts(path: Path) -> list[Path]:
    return sorted(parts_folder(path).glob(f"*{SUFFIX}"))


def _in_order(parts: Sequence[RowAnswers]) -> RowAnswers:
    """Join answers of several files in the order of rows; the first answer to a row counts."""
    rows = np.concatenate([rows for rows, _ in parts])
    answers = Answers.joined([answers for _, answers in parts])
    unique, first = np.unique(rows, return_index=True)
    return unique, answers.at(first)


def _digest(columns: Mapping[str, NDArray[Any]]) -> str:
    digest = hashlib.sha256()
    for name in (_ROWS, *Answers._fields):
        digest.update(np.ascontiguousarray(columns[name]).data)
    return digest.hexdigest()


def _read_whole(path: Path) -> tuple[AnswersHeader, NDArray[np.int64], Answers]:
    raw, columns = hdf5.read_state(path)
    try:
        header = _header(raw)
        dtypes = dict(zip((_ROWS, *Answers._fields), (np.int64, *_TYPES), strict=True))
        arrays = {name: np.asarray(columns[name]) for name in dtypes}
        fits = all(
            array.dtype == dtypes[name] and array.shape == (header.answered,)
            for name, array in arrays.items()
        )
        if not fits or _digest(arrays) != raw["digest"]:
            raise ValueError("its content does not match its digest")
        rows = arrays.pop(_ROWS)
        if len(rows) and not 0 <= rows.min() <= rows.max() < header.images:
            raise ValueError("an answer is for no image")
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError(
            f"{path} holds no whole answers of TPT ({error}): delete it, the next live "
            f"run of TPT makes them again."
        ) from error
    return header, rows, Answers(**arrays)


def _header(raw: Mapping[str, Any]) -> AnswersHeader:
    return AnswersHeader(
        int(raw["answered"]), int(raw["images"]), dict(raw["asked"]), str(raw["id_set"]),
        str(raw["features"]), str(raw["created"]),
    )  # fmt: skip


def read_answers_header(path: Path) -> AnswersHeader:
    """Read the header of a file of answers: StoreError if it is broken."""
    with hdf5.open_checked(path, "state") as file:
        try:
            return _header(file.mapping("header"))
        except (KeyError, TypeError) as error:
            raise ValueError(f"no header of answers: {error}") from error


@dataclass(frozen=True)
class StoredAnswers:
    """A file of answers in a features folder, or one of which there are only parts yet."""

    path: Path
    size: int  # bytes, with its parts
    parts: int
    header: AnswersHeader | None = None  # of the file, or else of one part
    problem: str = ""  # why it cannot be used

    @property
    def name(self) -> str:
        """The set that its images belong to."""
        return Path(self.path.stem).stem

    @property
    def state(self) -> str:
        """Its content in words, or what is wrong with it."""
        if self.header is None or self.problem:
            return self.problem
        asked, parts = self.header.asked, f" and {self.parts} parts" * bool(self.parts)
        settings = ", ".join(f"{k} {v}" for k, v in dict(asked.get("settings", {})).items())
        return (
            f"{self.header.answered:,} of {self.header.images:,} images{parts}, classes of "
            f"{self.header.id_set}, '{asked.get('prompt')}', {settings}"
        )


def stored_answers(path: Path) -> StoredAnswers:
    """Look at a file of answers and its parts, without reading the answers."""
    parts = _parts(path)
    files = [path, *parts] if path.exists() else parts
    size = sum(file.stat().st_size for file in files)
    try:
        header = read_answers_header(files[0])
    except (StoreError, IndexError):
        return StoredAnswers(path, size, len(parts), problem="broken: delete it")
    problem = _staleness(path, header)
    return StoredAnswers(path, size, len(parts), header, problem)


def answer_problems(path: Path) -> list[str]:
    """Read a file of answers and its parts whole, and list what is wrong with them."""
    problems = []
    for file in (path, *_parts(path)):
        try:
            header, _, _ = _read_whole(file)
        except StoreError as error:
            problems += [str(error)] if file.exists() else []
        else:
            problems += [problem] if (problem := _staleness(path, header)) else []
    return list(dict.fromkeys(problems))


def _staleness(path: Path, header: AnswersHeader) -> str:
    """Why answers do not belong to the features that are there now; empty if they do."""
    features = path.with_name(f"{Path(path.stem).stem}.h5")
    try:
        now = hdf5.read_header(features)
    except StoreError as error:
        return str(error)
    if (header.features, header.images) == (now.digest, now.images):
        return ""
    return f"answers on other features than {features.name} has now: delete it"
