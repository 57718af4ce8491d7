"""TPT's answers for the images of a feature file, which are kept beside it.

The prompt is reset before each sample, so an answer depends on the image, the class names, the
prompt and TPT's own settings, and never on a stream. Answers are filed under a digest of the
question, `features/ENCODER/SET.DIGEST.tpt`: rows (n, 7) that are written behind each other as the
answers are computed, each with the number of its image and a checksum of itself.
"""

import hashlib
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.cache import store
from zsntta_cli.cache.folder import locked
from zsntta_cli.cache.unfinished import Unfinished, said_of
from zsntta_cli.errors import StoreError

SUFFIX = ".tpt"
_DIGITS = 12  # digits of the question's digest in a file's name

# Of an answer: the class of the largest probability, 1 - MCM, the class of the largest logit and
# this logit (for the noise score "match"), and the entropy of the probabilities in nats.
COLUMNS = "class_index", "noise_score", "best_class", "best_logit", "entropy"
Answers = NDArray[np.float64]  # (N, 5), NaN where an answer is not known
_WIDTH = 2 + len(COLUMNS)


def unknown(count: int) -> Answers:
    """Make the answers for N images, none of which is known."""
    return np.full((count, len(COLUMNS)), np.nan)


def is_known(answers: Answers) -> NDArray[np.bool_]:
    """Which of the answers are known, (N,)."""
    return ~np.isnan(answers[:, 0])


class AnswerFile:
    """The answers for one feature file to one question."""

    def __init__(self, features: Path, asked: Mapping[str, Any], digest: str, images: int) -> None:
        """`asked` is all that answers depend on beside the features, whose digest is `digest`."""
        key = hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:_DIGITS]
        self.path = features.with_name(f"{features.stem}.{key}{SUFFIX}")
        self.images = images
        self._of = {"asked": asked, "features": digest, "images": images}

    def read(self) -> Answers:
        """Read the answers (N, 5), as far as there are any for these features.

        Rows that are damaged are no answers.
        """
        return self._read(self._rows())

    def _rows(self) -> Unfinished:
        return Unfinished(self.path, self._of, _WIDTH, "float64")

    def _read(self, kept: Unfinished) -> Answers:
        answers, rows = unknown(self.images), np.array(kept.rows)
        rows = rows[rows[:, -1] == _checksums(rows[:, :-1])]
        answers[rows[:, 0].astype(int)] = rows[:, 1:-1]
        return answers

    def save(self, answers: Answers) -> None:
        """Keep those of the answers (N, 5) that no process has kept yet.

        Raises:
            StoreError: they cannot be written.
        """
        with locked(self.path, lambda _: None):  # for the moment that this takes
            kept = self._rows()
            new = np.flatnonzero(is_known(answers) & ~is_known(self._read(kept)))
            rows = np.column_stack([new, answers[new]])
            kept.append(np.column_stack([rows, _checksums(rows)]))


def _checksums(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """The CRC-32 of each row, (n,)."""
    return np.array([zlib.crc32(row.tobytes()) for row in rows], np.float64)


@dataclass(frozen=True)
class StoredAnswers:
    """A file of answers in a features folder."""

    path: Path
    state: str  # its content in words, or what is wrong with it
    is_bad: bool = False
    images: int | None = None

    @property
    def name(self) -> str:
        """The set that its images belong to."""
        return Path(self.path.stem).stem

    @property
    def size(self) -> int:
        """The bytes of the file."""
        return self.path.stat().st_size

    @property
    def created(self) -> str:
        """The day of the last answer."""
        return datetime.fromtimestamp(self.path.stat().st_mtime, UTC).date().isoformat()


def stored_answers(path: Path) -> StoredAnswers:
    """Read a file of answers, and say what is wrong with it."""
    features = path.with_name(f"{Path(path.stem).stem}.h5")
    try:
        said = json.loads(said_of(path).read_bytes())
        asked, images, digest = dict(said["asked"]), int(said["images"]), said["features"]
        now = store.read(features, rows=False)
    except StoreError as error:
        return StoredAnswers(path, str(error), is_bad=True)
    except (OSError, ValueError, KeyError, TypeError):
        return StoredAnswers(path, f"does not say what it is of: delete {path}", is_bad=True)
    if (digest, images) != (now.digest, len(now)):
        other = f"answers on other features than {features.name} has now: delete it"
        return StoredAnswers(path, other, is_bad=True)
    answered = is_known(AnswerFile(features, asked, digest, images).read()).sum()
    settings = ", ".join(f"{k} {v}" for k, v in dict(asked.get("settings", {})).items())
    state = f"{answered:,} of {images:,} images, '{asked.get('prompt')}', {settings}"
    return StoredAnswers(path, state, images=images)
