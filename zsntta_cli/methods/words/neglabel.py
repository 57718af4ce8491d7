"""NegLabel, arXiv 2403.20078, and CSP, arXiv 2410.08611: names against mined negative words.

AdaND taught by them (ours) is Algorithm 1 on their noise score: whatever it takes from ZS-CLIP's
u - who decides in stage 1, the pseudo-labels, the evidence - it takes from u = 1 - S. With a gap,
only what the words are sure of enters a step's loss.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods.base import Decisions, StreamData
from zsntta_cli.methods.detectors import adand
from zsntta_cli.methods.ood_scores import image_scores
from zsntta_cli.methods.threshold import OnlineThreshold
from zsntta_cli.methods.words.settings import (
    CspAdaNDSettings,
    NegLabelAdaNDSettings,
    NegLabelSettings,
)
from zsntta_cli.methods.words.vocabulary import Vocabulary
from zsntta_cli.settings import ThresholdSettings


def run(data: StreamData, options: NegLabelSettings, threshold: ThresholdSettings) -> Decisions:
    """Noise where u = 1 - S is above its online threshold; the class stays ZS-CLIP's."""
    return decided(data.class_index, id_scores(data, options), threshold)


def run_taught(
    data: StreamData,
    options: NegLabelAdaNDSettings | CspAdaNDSettings,
    threshold: ThresholdSettings,
) -> Decisions:
    """Decide as AdaND does that learns from the words' decisions instead of ZS-CLIP's."""
    own_score = 1 - id_scores(data, options)
    return adand.run(replace(data, own_score=own_score), options, threshold)


def id_scores(data: StreamData, options: NegLabelSettings) -> NDArray[np.float64]:
    """S (T,) in [0, 1]: the softmax mass of the ID names beside groups of negative words."""
    vocabulary = Vocabulary.of(data.pool, options)
    return image_scores(data, vocabulary.id_share, vocabulary.text)


def decided(
    class_index: NDArray[np.int32], id_score: NDArray[np.float64], threshold: ThresholdSettings
) -> Decisions:
    """Noise where 1 - S is above the threshold of the scores (T,) in [0, 1] up to then."""
    thresholds = OnlineThreshold(threshold)(1 - id_score)
    return Decisions(
        class_index, 1 - id_score > thresholds, id_score, detector_threshold=thresholds
    )
