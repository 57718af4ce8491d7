"""TPT's answers for the images of a feature file, stored beside it.

The prompt is reset before each sample, so an answer depends on the image, the class names, the
prompt and TPT's own settings, and never on a stream. The file name contains a digest of the
question, `features/ENCODER/SET.DIGEST.tpt`. The file is a .npz archive: it says what the answers
depend on, and zip's checksums tell whether it is damaged.
"""

import contextlib
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.cache.folder import ANSWERS, locked
from zsntta_cli.files import whole_file

_DIGITS = 12  # digits of the question's digest in a file's name

Answers = NDArray[np.float64]  # (N, 2) classes and u = 1 - MCM, NaN where no answer is known


def unknown(count: int) -> Answers:
    """Make answers for N images, all unknown."""
    return np.full((count, 2), np.nan)


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
        self._of = json.dumps({"asked": asked, "features": digest}, sort_keys=True)

    def read(self) -> Answers:
        """Read the answers (N, 2) that exist for these features; a damaged file has none."""
        answers = unknown(self.images)
        with (
            contextlib.suppress(Exception),  # of a damaged file zipfile and NumPy raise anything
            self.path.open("rb") as file,
            np.load(file) as kept,
        ):
            answers = kept["answers"] if str(kept["of"]) == self._of else answers
        return answers

    def save(self, answers: Answers) -> None:
        """Store the answers (N, 2) that are known, beside those that another process has stored.

        Raises:
            StoreError: they cannot be written.
        """
        with locked(self.path, lambda _: None):  # for the moment that this takes
            every = np.where(is_known(answers)[:, None], answers, self.read())
            with whole_file(self.path) as temporary, temporary.open("wb") as file:
                np.savez(file, of=np.array(self._of), answers=every)
