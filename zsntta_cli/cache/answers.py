"""What TPT's tuned prompts say of the images of a feature file: kept beside it, once an image.

The prompt is reset before each sample, so an answer depends on the image, the class names, the
prompt and TPT's own settings: never on a stream. Answers are filed under a digest of what was
asked, `features/<encoder>/<set>.<digest>.tpt`, with the digest of the features they are on.

New answers come in parts, in a folder beside that file: each is absent or whole under a name of its
own, so several processes may add some in turns and a kill loses none that was added. Now and then
the parts are merged into the file, which appears by a rename before they go: whoever reads the
parts first and the file then misses nothing.
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
_DIGITS = 12  # of the digest of what was asked, in a file's name
_ROWS = "rows"


class Answers(NamedTuple):
    """The answers for N images, each by the prompt that was tuned on its views."""

    class_index: NDArray[np.int32]  # (N,) of the largest probability
    noise_score: NDArray[np.float64]  # (N,) 1 - MCM
    best_class: NDArray[np.int32]  # (N,) of the largest logit, for the noise score "match"
    best_logit: NDArray[np.float64]  # (N,)
    entropy: NDArray[np.float64]  # (N,) of the probabilities, in nats

    @classmethod
    def empty(cls, count: int) -> "Answers":
        """Room for `count` answers."""
        columns: list[Any] = [np.zeros(count, dtype) for dtype in _TYPES]
        return cls(*columns)

    @classmethod
    def joined(cls, parts: "Sequence[Answers]") -> "Answers":
        """Join answers, one below the other."""
        return cls(*map(np.concatenate, zip(cls.empty(0), *parts, strict=True)))

    def at(self, rows: NDArray[np.integer]) -> "Answers":
        """The answers in some rows."""
        return Answers(*(column[rows] for column in self))


_TYPES = (np.int32, np.float64, np.int32, np.float64, np.float64)
RowAnswers = tuple[NDArray[np.int64], Answers]  # rows of a feature file, and their answers


@dataclass(frozen=True)
class AnswersHeader:
    """What a file of answers says of itself."""

    answered: int
    images: int
    asked: dict[str, Any]
    id_set: str  # with the classes that were asked for
    features: str  # digest of the features that the answers are on
    created: str


class AnswerFile:
    """The answers on one feature file to one question, and where further ones are kept."""

    def __init__(
        self, features: Path, asked: Mapping[str, Any], digest: str, images: int, id_set: str
    ) -> None:
        """`asked`: all that answers depend on beside the features, whose digest is `digest`.

        `id_set` is a set with the classes that are asked for; others may have the same ones.
        """
        content = json.dumps(asked, sort_keys=True).encode()
        key = hashlib.sha256(content).hexdigest()[:_DIGITS]
        self.path = features.with_name(f"{features.stem}.{key}{SUFFIX}")
        self._asked, self._digest, self._images = dict(asked), digest, images
        self._id_set = id_set

    def read(self) -> RowAnswers:
        """The answers that there are, by rows in order; those on other features are none.

        Raises:
            StoreError: a file is broken.
        """
        parts = [self._read(path) for path in _parts(self.path)]  # before the file
        return _in_order([self._read(self.path), *parts])

    def is_complete(self) -> bool:
        """Whether the file itself has an answer for each image."""
        with contextlib.suppress(StoreError):
            header = read_answers_header(self.path)
            return header.features == self._digest and header.answered == self._images
        return False

    def add(self, rows: NDArray[np.int64], answers: Answers) -> None:
        """Keep further answers, durably.

        Raises:
            StoreError: they cannot be written.
        """
        if len(rows):
            part = f"{secrets.token_hex(8)}{SUFFIX}"
            with self._alone():
                self._write(parts_folder(self.path) / part, rows, answers)

    def merge(self) -> None:
        """Bring the parts into the file.

        Raises:
            StoreError: it cannot be written, or a part is broken.
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
            sweep(folder)  # of what killed writers began
            with contextlib.suppress(OSError):
                folder.rmdir()

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Be the only process that writes: a part needs the folder that a merge removes."""
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
        """The answers in a file or a part; none where it is gone, or on other features."""
        try:
            header, rows, answers = _read_whole(path)
        except StoreError:
            if path.exists():
                raise
            return np.empty(0, np.int64), Answers.empty(0)  # or merged by another process
        if (header.asked, header.features, header.images) != (
            self._asked, self._digest, self._images,
        ):  # fmt: skip
            return np.empty(0, np.int64), Answers.empty(0)
        return rows, answers


def parts_folder(path: Path) -> Path:
    """Where further answers wait until they are merged into a file."""
    return path.with_name(f".{path.stem}{_PARTS}")


def file_of_parts(folder: Path) -> Path | None:
    """The file that the parts in a folder belong to; None where it is no such folder."""
    is_of_parts = folder.name.startswith(".") and folder.suffix == _PARTS
    return folder.with_name(f"{folder.stem[1:]}{SUFFIX}") if is_of_parts else None


def _parts(path: Path) -> list[Path]:
    return sorted(parts_folder(path).glob(f"*{SUFFIX}"))


def _in_order(parts: Sequence[RowAnswers]) -> RowAnswers:
    """Answers of several files by rows in order; of one row the first one."""
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
            f"{path} holds no whole answers of TPT ({error}): delete it, `zsntta extract --tpt` "
            f"makes them again."
        ) from error
    return header, rows, Answers(**arrays)


def _header(raw: Mapping[str, Any]) -> AnswersHeader:
    return AnswersHeader(
        int(raw["answered"]), int(raw["images"]), dict(raw["asked"]), str(raw["id_set"]),
        str(raw["features"]), str(raw["created"]),
    )  # fmt: skip


def read_answers_header(path: Path) -> AnswersHeader:
    """What a file of answers says of itself: StoreError where it is broken."""
    with hdf5.open_checked(path, "state") as file:
        try:
            return _header(file.mapping("header"))
        except (KeyError, TypeError) as error:
            raise ValueError(f"no header of answers: {error}") from error


@dataclass(frozen=True)
class StoredAnswers:
    """A file of answers as it lies there, or one of which there are only parts yet."""

    path: Path
    size: int  # bytes, with its parts
    parts: int
    header: AnswersHeader | None = None  # of the file, or else of one part
    problem: str = ""  # why it is of no use

    @property
    def name(self) -> str:
        """The set that its images are of."""
        return Path(self.path.stem).stem

    @property
    def state(self) -> str:
        """What it holds, in words."""
        if self.header is None or self.problem:
            return self.problem
        asked, parts = self.header.asked, f" and {self.parts} parts" * bool(self.parts)
        settings = ", ".join(f"{k} {v}" for k, v in dict(asked.get("settings", {})).items())
        return (
            f"{self.header.answered:,} of {self.header.images:,} images{parts}, classes of "
            f"{self.header.id_set}, '{asked.get('prompt')}', {settings}"
        )


def stored_answers(path: Path) -> StoredAnswers:
    """What lies of a file of answers."""
    parts = _parts(path)
    files = [path, *parts] if path.exists() else parts
    size = sum(file.stat().st_size for file in files)
    try:
        header = read_answers_header(files[0])
    except (StoreError, IndexError):
        return StoredAnswers(path, size, len(parts), problem="broken: delete it, extract --tpt")
    problem = _staleness(path, header)
    return StoredAnswers(path, size, len(parts), header, problem)


def answer_problems(path: Path) -> list[str]:
    """What is wrong with a file of answers and its parts, read whole."""
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
    """Why answers are on no features that are there now; nothing where they are."""
    features = path.with_name(f"{Path(path.stem).stem}.h5")
    try:
        now = hdf5.read_header(features)
    except StoreError as error:
        return str(error)
    if (header.features, header.images) == (now.digest, now.images):
        return ""
    return f"answers on other features than {features.name} has now: delete it, extract --tpt"
