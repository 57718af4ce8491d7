"""TPT's answers for the images of a feature file, which are kept beside it: one array that fills.

The prompt is reset before each sample, so an answer depends on the image, the class names, the
prompt and TPT's own settings, and never on a stream. Answers are filed under a digest of the
question, `features/<encoder>/<set>.<digest>.tpt`, and hold the digest of the features. A file is
written whole, one process at a time, with what others have kept meanwhile.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.cache import store
from zsntta_cli.cache.folder import locked
from zsntta_cli.cache.identity import ENCODING, machine_facts
from zsntta_cli.errors import StoreError
from zsntta_cli.files import whole_file

SUFFIX = ".tpt"
_DIGITS = 12  # digits of the question's digest in a file's name

# Of an answer: the class of the largest probability, 1 - MCM, the class of the largest logit and
# this logit (for the noise score "match"), and the entropy of the probabilities in nats.
COLUMNS = "class_index", "noise_score", "best_class", "best_logit", "entropy"
Answers = NDArray[np.float64]  # (N, 5), NaN where an answer is not known


def unknown(count: int) -> Answers:
    """Make the answers for N images, none of which is known."""
    return np.full((count, len(COLUMNS)), np.nan)


def is_known(answers: Answers) -> NDArray[np.bool_]:
    """Which of the answers are known, (N,)."""
    return ~np.isnan(answers[:, 0])


class AnswerFile:
    """The answers for one feature file to one question."""

    def __init__(
        self, features: Path, asked: Mapping[str, Any], digest: str, images: int, id_set: str
    ) -> None:
        """`asked` is all that answers depend on beside the features, whose digest is `digest`.

        `id_set` is a set with the classes of the question; other sets may have the same classes.
        """
        content = json.dumps(asked, sort_keys=True).encode()
        key = hashlib.sha256(content).hexdigest()[:_DIGITS]
        self.path = features.with_name(f"{features.stem}.{key}{SUFFIX}")
        self.images = images
        self._identity = {"asked": json.loads(content), "features": digest, "images": images}
        self._id_set = id_set

    def read(self) -> Answers:
        """Read the answers (N, 5); none is known without a file, or if it is for other features.

        Raises:
            StoreError: the file is broken.
        """
        if not self.path.exists():
            return unknown(self.images)
        header, answers = _read(self.path)
        is_ours = all(header[key] == value for key, value in self._identity.items())
        return answers if is_ours else unknown(self.images)

    def save(self, answers: Answers) -> None:
        """Keep answers (N, 5), and those that another process has kept meanwhile.

        Raises:
            StoreError: the file cannot be written, or is broken.
        """
        with locked(self.path, lambda _: None):  # for the moment that a file takes
            kept = self.read()
            both = np.where(is_known(kept)[:, None], kept, answers)
            header = self._identity | {
                "id_set": self._id_set, "answered": int(is_known(both).sum()),
                "machine": machine_facts(ENCODING), "created": store.now(),
            }  # fmt: skip
            with whole_file(self.path) as temporary, temporary.open("wb") as file:
                np.savez(file, header=np.array(json.dumps(header)), answers=both)


def _read(path: Path) -> tuple[dict[str, Any], Answers]:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as content:
            header, answers = json.loads(str(content["header"])), content["answers"]
        if answers.dtype != np.float64 or answers.shape != (header["images"], len(COLUMNS)):
            raise ValueError("its answers are not for its images")
    except Exception as error:  # a damaged file may fail in any part of its reading
        raise StoreError(
            f"{path} holds no whole answers of TPT ({error}): delete it, the next live "
            f"run of TPT makes them again."
        ) from error
    return header, answers


@dataclass(frozen=True)
class StoredAnswers:
    """A file of answers in a features folder."""

    path: Path
    size: int  # bytes
    header: Mapping[str, Any]  # empty if the file is broken
    problem: str = ""  # why it cannot be used

    @property
    def name(self) -> str:
        """The set that its images belong to."""
        return Path(self.path.stem).stem

    @property
    def state(self) -> str:
        """Its content in words, or what is wrong with it."""
        if self.problem:
            return self.problem
        asked = self.header["asked"]
        settings = ", ".join(f"{k} {v}" for k, v in dict(asked.get("settings", {})).items())
        return (
            f"{self.header['answered']:,} of {self.header['images']:,} images, classes of "
            f"{self.header['id_set']}, '{asked.get('prompt')}', {settings}"
        )


def stored_answers(path: Path) -> StoredAnswers:
    """Read a file of answers, and say what is wrong with it."""
    size = path.stat().st_size
    try:
        header, _ = _read(path)
        features = path.with_name(f"{Path(path.stem).stem}.h5")
        now = store.read(features, rows=False)
    except StoreError as error:
        return StoredAnswers(path, size, {}, str(error))
    problem = ""
    if (header["features"], header["images"]) != (now.digest, len(now)):
        problem = f"answers on other features than {features.name} has now: delete it"
    return StoredAnswers(path, size, header, problem)
