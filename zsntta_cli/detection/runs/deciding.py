"""Encoded images to verdict rows: on arrival, or in hindsight."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.detection.detector import OnlineDetector
from zsntta_cli.detection.encoding import Encoded
from zsntta_cli.detection.runs.flags import Decided, Flag, Ranking, decided
from zsntta_cli.detection.sources.item import Item
from zsntta_cli.detection.verdicts import FIELDS, FORMAT, Verdict, VerdictRow, Verdicts

_SAME = 0.99  # cosine from which on a frame of a video repeats the one that was last judged

# From features (N, D) of the images that are to be judged.
Decide = Callable[[NDArray[np.float32]], tuple[Verdicts, Decided]]


def matrix(encoded: Sequence[Encoded], dim: int) -> NDArray[np.float32]:
    """Features (N, D) of items that have some."""
    rows = [one.features for one in encoded if one.features is not None]
    return np.stack(rows).astype(np.float32) if rows else np.empty((0, dim), np.float32)


@dataclass
class Repeats:
    """Which frames of a video look like the last one that was judged: they bring nothing new."""

    _source: str = ""
    _last: NDArray[np.float32] | None = None  # (D,) of unit norm

    def among(self, encoded: Sequence[Encoded]) -> list[bool]:
        """Whether each of the next items (N,) is such a frame."""
        return [self._is_repeat(one) for one in encoded]

    def _is_repeat(self, one: Encoded) -> bool:
        if one.item.frame is None or one.features is None:
            return False
        features = one.features.astype(np.float32)
        unit = features / max(float(np.linalg.norm(features)), 1e-12)
        if one.item.source == self._source and self._last is not None and unit @ self._last > _SAME:
            return True
        self._source, self._last = one.item.source, unit
        return False


@dataclass
class RowMaker:
    """Makes the rows of images in their order.

    What cannot be read has an error and no verdict; a frame that repeats takes over the row of the
    frame before it.
    """

    encoder_name: str
    dim: int  # of features
    _repeats: Repeats = field(default_factory=Repeats)
    _last: VerdictRow | None = None  # of the image that was last judged

    def rows(self, encoded: Sequence[Encoded], decide: Decide) -> list[VerdictRow]:
        """Rows of the next images (N,); `decide` is given those that are to be judged."""
        repeats = self._repeats.among(encoded)
        new = [one for one, again in zip(encoded, repeats, strict=True) if not again]
        verdicts, decision = decide(matrix(new, self.dim))
        judged = zip(verdicts, *(column.tolist() for column in decision), strict=True)
        rows = []
        for one, again in zip(encoded, repeats, strict=True):
            if one.features is None:
                rows.append(self._unreadable(one.item, one.error))
                continue
            if not again:
                self._last = self._judged(*next(judged))
            rows.append(cast(VerdictRow, {**(self._last or {}), **_place(one.item)}))
        return rows

    def _judged(self, verdict: Verdict, noise: bool, threshold: float, rank: int) -> VerdictRow:
        return {
            "format": FORMAT,
            "source": "", "frame": None, "time_s": None,
            "class": verdict.class_name,
            "class_index": verdict.class_index,
            "noise": noise,
            "rank": rank,
            "score": verdict.score,
            "threshold": threshold,
            "margin": verdict.score - threshold,
            "stage": verdict.stage,
            "top": [{"class": name, "score": score} for name, score in verdict.top],
            "error": None,
            "encoder": self.encoder_name,
        }  # fmt: skip

    def _unreadable(self, item: Item, error: str) -> VerdictRow:
        ends = {"format": FORMAT, "error": error, "encoder": self.encoder_name}
        return cast(VerdictRow, {**dict.fromkeys(FIELDS), **_place(item), **ends})


def _place(item: Item) -> dict[str, Any]:
    return {"source": item.source, "frame": item.frame, "time_s": item.time_s}


def in_hindsight(
    encoded: Sequence[Encoded],
    detector: OnlineDetector,
    flag: Flag,
    seed: int,
    encoder_name: str,
    clean: NDArray[np.float32] | None = None,
) -> list[VerdictRow]:
    """Rows of all images, in their order, each decided by what all of them have in common.

    `clean` (M, D) are features of images known to be clean: they are shown with the others.
    """

    def decide(features: NDArray[np.float32]) -> tuple[Verdicts, Decided]:
        everything = features if clean is None else np.concatenate([features, clean])
        verdicts, count = detector.decide_all(everything, seed=seed), len(features)
        return verdicts[:count], decided(verdicts[:count], flag, verdicts[count:].margin)

    return RowMaker(encoder_name, detector.text_features.shape[1]).rows(encoded, decide)


class Arrivals:
    """Decides on images as they come, and learns from each."""

    def __init__(
        self,
        detector: OnlineDetector,
        flag: Flag,
        encoder_name: str,
        margins: Sequence[float] = (),
    ) -> None:
        """`margins` are those of the images before, where a watch goes on."""
        self.ranking = Ranking(margins)
        self._detector, self._flag = detector, flag
        self._maker = RowMaker(encoder_name, detector.text_features.shape[1])

    def rows(self, encoded: Sequence[Encoded]) -> list[VerdictRow]:
        """Rows of the next images."""
        return self._maker.rows(encoded, self._decide)

    def _decide(self, features: NDArray[np.float32]) -> tuple[Verdicts, Decided]:
        verdicts = self._detector.update(features)
        return verdicts, self.ranking.decided(verdicts, self._flag)
