"""TPT on a stream: the items on which the prompt is tuned, and the answers for them. No torch.

The prompt is reset before each sample, so an answer depends on the image and not on the stream:
answers that were kept for the images of a pool serve all its streams. The stream determines, by the
filter, on which of its items the prompt is tuned.
"""

import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.cache.answers import AnswerFile, is_known, unknown
from zsntta_cli.errors import StoreError
from zsntta_cli.methods.base import Decisions, StreamData
from zsntta_cli.methods.live.settings import TPT
from zsntta_cli.methods.scores import Floats, Mask
from zsntta_cli.methods.threshold import OnlineThreshold
from zsntta_cli.settings import ThresholdSettings

_SECONDS = 20.0  # after which new answers are written: a kill loses no more
Items = NDArray[np.int64]


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
        """Item t is image `rows[t]` (T,) of those of all files, one below the other.

        Without files each item has its own answer, and none is known.
        """
        items, u = np.arange(len(stream)), stream.noise_score
        self._stream, self._online = stream, OnlineThreshold(threshold)
        is_noise = u >= OnlineThreshold(threshold)(u)  # the filter drops u >= λ, as published
        self.is_tuned = adapts_on(stream, options.pipeline, items, is_noise, truly_clean)
        self._files, self._rows = files, items if rows is None else rows
        kept = [file.read() for file in files]
        self._answers = np.concatenate(kept) if kept else unknown(len(stream))
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
