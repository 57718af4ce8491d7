"""Turn encoded images into verdict rows, on arrival or in hindsight."""

from bisect import bisect_right, insort
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.detection.detector import OnlineDetector
from zsntta_cli.detection.encoding import Encoded
from zsntta_cli.detection.flags import Flag, Flagged, flagged
from zsntta_cli.detection.verdicts import FIELDS, FORMAT, Verdict, VerdictRow

# From features (N, D) of the images that are to be judged.
Decide = Callable[[NDArray[np.float32]], Flagged]


def rows_of(encoded: Sequence[Encoded], decide: Decide, encoder_name: str) -> list[VerdictRow]:
    """Rows of images (N,) in their order; one that cannot be read has an error and no verdict."""
    rows = [one.features for one in encoded if one.features is not None]
    features = np.array(rows, np.float32)
    judged = zip(*decide(features), strict=True) if rows else iter(())
    return [
        _row(one, encoder_name, next(judged) if one.features is not None else None)
        for one in encoded
    ]


def _row(one: Encoded, encoder_name: str, judged: tuple[Verdict, int] | None) -> VerdictRow:
    verdict = {} if judged is None else judged[0].as_row(judged[1])
    row: dict[str, Any] = dict.fromkeys(FIELDS) | verdict | {
        "format": FORMAT, "source": one.item.source, "content": one.digest.hex() or None,
        "note": one.note or None, "error": one.error or None, "encoder": encoder_name,
    }  # fmt: skip
    return cast(VerdictRow, row)


def in_hindsight(detector: OnlineDetector, flag: Flag) -> Decide:
    """The rule that decides on all images together."""
    return lambda features: flagged(detector.decide_all(features), flag)


def on_arrival(detector: OnlineDetector) -> Decide:
    """The rule that decides on images as they come and learns; ranks are among those so far."""
    so_far: list[float] = []

    def decide(features: NDArray[np.float32]) -> Flagged:
        verdicts, ranks = detector.update(features), []
        for margin in verdicts.margin.tolist():
            insort(so_far, margin)
            ranks.append(len(so_far) - bisect_right(so_far, margin) + 1)
        return verdicts, ranks

    return decide
