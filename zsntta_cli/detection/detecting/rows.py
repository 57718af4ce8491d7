"""Turn encoded images into verdict rows, on arrival or in hindsight."""

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.detection.detector import OnlineDetector
from zsntta_cli.detection.encoding import Encoded
from zsntta_cli.detection.flags import Flag, Flagged, Ranking, flagged
from zsntta_cli.detection.verdicts import FIELDS, FORMAT, Verdict, VerdictRow

_SAME = 0.99  # cosine from which on a frame of a video repeats the one that was last judged

# From features (N, D) of the images that are to be judged.
Decide = Callable[[NDArray[np.float32]], Flagged]


class RowMaker:
    """Make the rows of images in their order, from the decisions on them.

    An image that cannot be read has an error and no verdict. A frame of a video that looks like the
    last one that was judged gets the same row.
    """

    def __init__(self, decide: Decide, encoder_name: str) -> None:
        self._decide, self._encoder_name = decide, encoder_name
        self._source = ""  # of the last frame that was judged
        self._frame: NDArray[np.float32] | None = None  # its features (D,), of unit norm
        self._last: VerdictRow | None = None  # of the image that was last judged

    def rows(self, encoded: Sequence[Encoded]) -> list[VerdictRow]:
        """Rows of the next images (N,)."""
        repeats = [self._is_repeat(image) for image in encoded]
        new = [image for image, again in zip(encoded, repeats, strict=True) if not again]
        features = matrix(new)
        judged = zip(*self._decide(features), strict=True) if len(features) else iter(())
        rows = []
        for image, again in zip(encoded, repeats, strict=True):
            if image.features is None:
                rows.append(self._unreadable(image))
                continue
            if not again:
                self._last = self._judged(*next(judged))
            rows.append(cast(VerdictRow, {**(self._last or {}), **_place(image)}))
        return rows

    def _is_repeat(self, one: Encoded) -> bool:
        if one.item.frame is None or one.features is None:
            return False
        features = one.features.astype(np.float32)
        unit = features / max(float(np.linalg.norm(features)), 1e-12)
        source, frame = one.item.source, self._frame
        if source == self._source and frame is not None and unit @ frame > _SAME:
            return True
        self._source, self._frame = source, unit
        return False

    def _judged(self, verdict: Verdict, rank: int) -> VerdictRow:
        row: dict[str, Any] = {
            "format": FORMAT,
            "source": "", "frame": None, "time_s": None,
            **verdict.as_row(rank),
            "content": None, "note": None, "error": None,
            "encoder": self._encoder_name,
        }  # fmt: skip
        return cast(VerdictRow, row)

    def _unreadable(self, one: Encoded) -> VerdictRow:
        ends = {"format": FORMAT, "error": one.error, "encoder": self._encoder_name}
        return cast(VerdictRow, {**dict.fromkeys(FIELDS), **_place(one), **ends})


def _place(one: Encoded) -> dict[str, Any]:
    """The part of a row that describes its image, whatever was decided."""
    item, content = one.item, one.digest.hex() or None
    return {
        "source": item.source, "frame": item.frame, "time_s": item.time_s, "content": content,
        "note": one.note or None,
    }  # fmt: skip


def matrix(encoded: Sequence[Encoded]) -> NDArray[np.float32]:
    """Features (N, D) of the images that have features."""
    return np.array([one.features for one in encoded if one.features is not None], np.float32)


def in_hindsight(detector: OnlineDetector, flag: Flag) -> Decide:
    """The rule that decides on all images together."""
    return lambda features: flagged(detector.decide_all(features), flag)


def on_arrival(detector: OnlineDetector, flag: Flag, ranking: Ranking) -> Decide:
    """The rule that decides on images as they come and learns; `ranking` has those before."""
    return lambda features: ranking.flagged(detector.update(features), flag)
