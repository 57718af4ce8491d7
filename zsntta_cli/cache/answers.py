"""TPT's answers for the images of a feature file, stored beside it.

The prompt is reset before each sample, so an answer depends on the image, the class names, the
prompt and TPT's own settings, and never on a stream. The file name contains a digest of the
question, `features/ENCODER/SET.DIGEST.tpt`. Its rows (n, 7) are appended as the answers are
computed, each with the number of its image and its own checksum.
"""

import hashlib
import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.cache.folder import ANSWERS, locked
from zsntta_cli.cache.unfinished import Unfinished

_DIGITS = 12  # digits of the question's digest in a file's name

# Of an answer: the class of the largest probability, 1 - MCM, the class of the largest logit and
# this logit (for the noise score "match"), and the entropy of the probabilities in nats.
COLUMNS = "class_index", "noise_score", "best_class", "best_logit", "entropy"
Answers = NDArray[np.float64]  # (N, 5), NaN where an answer is not known


def unknown(count: int) -> Answers:
    """Make answers for N images, all unknown."""
    return np.full((count, len(COLUMNS)), np.nan)


def is_known(answers: Answers) -> NDArray[np.bool_]:
    """Which of the answers are known, (N,)."""
    return ~np.isnan(answers[:, 0])


class AnswerFile:
    """The answers for one feature file to one question."""

    def __init__(self, features: Path, asked: Mapping[str, Any], digest: str, images: int) -> None:
        """`asked` is all that answers depend on besides the features, whose digest is `digest`."""
        key = hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:_DIGITS]
        self.path = features.with_name(f"{features.stem}.{key}{ANSWERS}")
        self.images = images
        self._of = {"asked": asked, "features": digest, "images": images}

    def _kept(self) -> tuple[Unfinished, Answers]:
        """The file, and the answers (N, 5) in it; rows that are damaged are none."""
        file = Unfinished(self.path, self._of, 2 + len(COLUMNS), "float64")
        rows, answers = np.array(file.rows), unknown(self.images)
        rows = rows[rows[:, -1] == _checksums(rows[:, :-1])]
        answers[rows[:, 0].astype(int)] = rows[:, 1:-1]
        return file, answers

    def read(self) -> Answers:
        """Read the answers (N, 5) that exist for these features."""
        return self._kept()[1]

    def save(self, answers: Answers) -> None:
        """Store those of the answers (N, 5) that no process has stored yet.

        Raises:
            StoreError: they cannot be written.
        """
        with locked(self.path, lambda _: None):  # for the moment that this takes
            file, kept = self._kept()
            new = np.flatnonzero(is_known(answers) & ~is_known(kept))
            rows = np.column_stack([new, answers[new]])
            file.append(np.column_stack([rows, _checksums(rows)]))


def _checksums(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """The CRC-32 of each row, (n,)."""
    return np.array([zlib.crc32(row.tobytes()) for row in rows], np.float64)
