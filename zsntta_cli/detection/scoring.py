"""Features to what a method is pushed, and its decisions to verdicts."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.detection.verdicts import Verdicts
from zsntta_cli.methods.base import Decisions, Pool, StreamData


@dataclass(frozen=True)
class Classes:
    """The frozen classifier: C classes as text features."""

    names: tuple[str, ...]  # (C,)
    text: NDArray[np.float32]  # (C, D) unit norm
    scale: float  # of the logits

    def stream(self, features: NDArray[np.float32], seed: int = 0) -> StreamData:
        """Raw image features (N, D) as a stream, with the scores of the frozen model."""
        pool = Pool.scored(features, self.text, self.scale)
        count = len(features)
        return StreamData(pool, np.arange(count), np.zeros(count, bool), seed)


def verdicts_of(
    data: StreamData, decisions: Decisions, classes: Classes, sources: Sequence[str | None] = ()
) -> Verdicts:
    """Decisions on a stream that the frozen model has scored, as verdicts."""
    assert decisions.is_noise is not None
    assert decisions.zero_shot_threshold is not None
    found, threshold = decisions.detector_threshold, decisions.zero_shot_threshold
    adapted = np.ones(len(data), bool) if found is None else ~np.isnan(found)
    if found is not None:
        threshold = np.where(adapted, found, threshold)
    detail = data.detail(slice(None))
    likely = np.exp((detail.top_logits - detail.top_logits[:, :1]).astype(np.float64))
    return Verdicts(
        classes.names, decisions.class_index, decisions.is_noise, 1 - decisions.id_score,
        1 - (1 - threshold),  # rounded as the score is
        adapted, detail.top_classes, likely * (1 - data.noise_score)[:, None], tuple(sources),
    )  # fmt: skip
