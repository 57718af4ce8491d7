"""Encoded images to verdict rows: on arrival, or in hindsight."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.detection.encoding.encoding import Encoded
from zsntta_cli.detection.detector import OnlineDetector
from zsntta_cli.detection.runs.flags import Flag, Ranking, decided
from zsntta_cli.detection.runs.rows import Row, judged, woven

_SAME = 0.99  # cosine from which on a frame of a video repeats the one that was last judged


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


def matrix(encoded: Sequence[Encoded], dim: int) -> NDArray[np.float32]:
    """Features (N, D) of items that have some."""
    rows = [one.features for one in encoded if one.features is not None]
    return np.stack(rows).astype(np.float32) if rows else np.empty((0, dim), np.float32)


def in_hindsight(
    encoded: Sequence[Encoded],
    detector: OnlineDetector,
    flag: Flag,
    seed: int,
    encoder_name: str,
    clean: NDArray[np.float32] | None = None,
) -> list[Row]:
    """Rows of all images, in their order, each decided by what all of them have in common.

    `clean` (M, D) are features of images known to be clean: they are shown with the others.
    """
    repeats = Repeats().among(encoded)
    new = [
        one
        for one, again in zip(encoded, repeats, strict=True)
        if not again and one.features is not None
    ]
    dim = detector.text_features.shape[1]
    clean = np.empty((0, dim), np.float32) if clean is None else clean
    verdicts = detector.decide_all(np.concatenate([matrix(new, dim), clean]), seed=seed)
    own, margins = verdicts[: len(new)], verdicts[len(new) :].margin
    found = judged([one.item for one in new], own, decided(own, flag, margins), encoder_name)
    return woven(encoded, repeats, found, None, encoder_name)


@dataclass
class Arrivals:
    """Decides on images as they come, and learns from each."""

    detector: OnlineDetector
    flag: Flag
    encoder_name: str
    ranking: Ranking = field(default_factory=Ranking)
    _repeats: Repeats = field(default_factory=Repeats)
    _last: Row | None = None

    def rows(self, encoded: Sequence[Encoded]) -> list[Row]:
        """Rows of the next images."""
        repeats = self._repeats.among(encoded)
        new = [
            one
            for one, again in zip(encoded, repeats, strict=True)
            if not again and one.features is not None
        ]
        verdicts = self.detector.update(matrix(new, self.detector.text_features.shape[1]))
        found = list(
            judged(
                [one.item for one in new], verdicts, self.ranking.decided(verdicts, self.flag),
                self.encoder_name,
            )
        )  # fmt: skip
        rows = woven(encoded, repeats, iter(found), self._last, self.encoder_name)
        self._last = found[-1] if found else self._last
        return rows
