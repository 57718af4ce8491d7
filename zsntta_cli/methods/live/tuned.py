"""TPT on a stream: the items on which the prompt is tuned, and the answers for them. No torch.

The prompt is reset before each sample, so an answer depends on the image, the class names, the
prompt and TPT's own settings; the stream only determines, by the filter, on which items the prompt
is tuned. Answers are kept beside the features of the images, in `features/ENCODER/SET.DIGEST.tpt`,
and serve all streams; the digest is that of all that they depend on. The file is a .npz archive,
and zip's checksums tell whether it is damaged.
"""

import contextlib
import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.cache.folder import ANSWERS, locked
from zsntta_cli.errors import StoreError
from zsntta_cli.files import whole_file
from zsntta_cli.methods.base import Decisions, StreamData
from zsntta_cli.methods.live.settings import TPT
from zsntta_cli.methods.scores import Floats, Mask
from zsntta_cli.methods.threshold import OnlineThreshold
from zsntta_cli.settings import ThresholdSettings

_SECONDS = 20.0  # after which new answers are written: a kill loses no more
_DIGITS = 12  # digits of the question's digest in a file's name

Answers = NDArray[np.float64]  # (N, 2) classes and u = 1 - MCM, NaN where no answer is known
Items = NDArray[np.int64]


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
        answers = np.full((self.images, 2), np.nan)
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


class TunedStream:
    """The decisions on a stream, whose answers are read from files, and filled in by a live run."""

    def __init__(
        self,
        stream: StreamData,
        options: TPT.Settings,
        threshold: ThresholdSettings,
        truly_clean: Mask | None = None,
        files: Sequence[AnswerFile] = (),
        rows: Items | None = None,
    ) -> None:
        """Item t is image `rows[t]` (T,) among the images of all files, file after file.

        Without files each item has its own answer, and none is known.
        """
        items, u = np.arange(len(stream)), stream.noise_score
        self._stream, self._online = stream, OnlineThreshold(threshold)
        is_noise = u >= OnlineThreshold(threshold)(u)  # the filter drops u >= λ, as published
        self.is_tuned = adapts_on(stream, options.pipeline, items, is_noise, truly_clean)
        self._files, self._rows = files, items if rows is None else rows
        kept = [file.read() for file in files]
        self._answers = np.concatenate(kept or [np.full((len(stream), 2), np.nan)])
        self._written, self.problem = time.monotonic(), ""  # why new answers are not kept

    @property
    def lacking(self) -> Items:
        """The items without an answer on which the prompt is tuned: each image at its first one."""
        lacking = np.flatnonzero(self.is_tuned & ~is_known(self._answers[self._rows]))
        _, first = np.unique(self._rows[lacking], return_index=True)
        return lacking[np.sort(first)]

    def add(self, item: int, class_index: NDArray[np.int32], u: Floats) -> None:
        """Add the answer for an item's image, its class (1,) and noise score (1,)."""
        self._answers[self._rows[item]] = *class_index, *u
        if time.monotonic() - self._written >= _SECONDS:
            self.close()

    def decide(self, items: slice) -> Decisions:
        """Decide on the next items, which no longer lack answers."""
        class_index = self._stream.class_index[items].copy()
        u, is_tuned = self._stream.noise_score[items].copy(), self.is_tuned[items]
        class_index[is_tuned], u[is_tuned] = self._answers[self._rows[items][is_tuned]].T
        thresholds = self._online(u)
        return Decisions(class_index, u > thresholds, 1 - u, thresholds)

    def close(self) -> None:
        """Write the answers that are not in the files yet."""
        ends = np.cumsum([file.images for file in self._files])
        try:
            for file, answers in zip(self._files, np.split(self._answers, ends), strict=False):
                if is_known(answers).any():
                    file.save(answers)
        except StoreError as error:
            self.problem = str(error)
        self._written = time.monotonic()


def adapts_on(
    stream: StreamData, pipeline: str, items: Items, is_noise: Mask | None, truly_clean: Mask | None
) -> Mask:
    """The items, as a mask (B,), on which a method adapts, given its noise decisions (B,), Sec. 3.

    "normal" takes the items that it calls clean, "gt" those of the mask `truly_clean` (T,), and
    "all" takes all items.
    """
    if pipeline == "all":
        return np.ones(len(items), bool)
    if pipeline == "gt":
        assert truly_clean is not None
        return truly_clean[items]
    assert is_noise is not None
    return ~is_noise & ~stream.injected[items]
