"""CMA, "Concept Matching with Agent for Out-of-Distribution Detection", arXiv 2405.16766.

Texts that fit any image ("a photo of a thing.") stand beside the classes in the softmax. They are
repeated in turn until there are k C of them; the ID score is the largest probability of a class.
"""

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods.base import Decisions, StreamData
from zsntta_cli.methods.ood_scores import image_scores
from zsntta_cli.methods.scores import energy
from zsntta_cli.methods.settings import CmaSettings
from zsntta_cli.methods.threshold import OnlineThreshold
from zsntta_cli.settings import ThresholdSettings


def run(data: StreamData, options: CmaSettings, threshold: ThresholdSettings) -> Decisions:
    """Noise iff u = 1 - score is above the online threshold; classes are the frozen model's."""
    names, neutral = data.pool.text_features, data.pool.more_text
    assert neutral is not None
    classes = len(names)
    times = repetitions(len(neutral), options.cma_times * classes)
    weight = np.log(times[times > 0]).astype(np.float32)  # n times the same logit: log n more

    def score(logits: NDArray[np.float32]) -> NDArray[np.float32]:
        logits[:, classes:] += weight
        return np.exp(logits[:, :classes].max(axis=1) - energy(logits))

    id_score = image_scores(data, score, np.concatenate([names, neutral[times > 0]]))
    u = 1 - id_score
    thresholds = OnlineThreshold(threshold)(u)
    return Decisions(data.class_index, u > thresholds, id_score, detector_threshold=thresholds)


def repetitions(texts: int, total: int) -> NDArray[np.intp]:
    """How often each of some texts is there when they are repeated in turn up to a total."""
    return np.bincount(np.arange(total) % texts, minlength=texts)
